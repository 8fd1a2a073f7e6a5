/* SPDX-License-Identifier: BSD-3-Clause
 * Any text as NEZHA_TUNE: refused with one line and the table untouched, or the first rule of every scale. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tuning/status.h"
#include "tuning/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nezha_table *table = NULL, *again = NULL;
	char *tune = malloc(size + 1), *error = NULL, *before, *after;
	int status;

	fuzz_assert(tune && nezha_table_builtin(&table) == NEZHA_OK);
	memcpy(tune, data, size);
	tune[size] = '\0';
	before = nezha_table_print(table);
	status = nezha_table_override(table, tune, &error);
	after = nezha_table_print(table);
	fuzz_assert(before && after);
	if (status == NEZHA_OK) {
		fuzz_assert(!error && strcmp(before, after));
		fuzz_assert(nezha_table_parse(after, strlen(after), "printed", &again, &error) == NEZHA_OK);
	} else {
		fuzz_assert(status == NEZHA_ERR_INVALID && error && !strchr(error, '\n') &&
		            !strcmp(before, after));
	}
	nezha_table_free(again);
	nezha_table_free(table);
	free(error);
	free(before);
	free(after);
	free(tune);
	return 0;
}
