/* SPDX-License-Identifier: BSD-3-Clause
 * Any bytes as a tuning table: refused with one line, or a table that prints, reads back alike and plans. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tuning/grid.h"
#include "tuning/plan.h"
#include "tuning/status.h"
#include "tuning/table.h"

static const struct nezha_scale scales[] = {
	{ 2, 2, 1 }, { 4, 1, 4 }, { 64, 16, 4 }, { 1000000, 1000, 1000 }
};
static const uint64_t sizes[] = { 0, 1, 4096, 65535, 65536, 1 << 20, UINT64_C(1) << 33, UINT64_MAX };

static void check_plans(const struct nezha_table *table)
{
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
		uint64_t below = nezha_plan_native_below(table, &scales[i]);

		for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
			struct nezha_plan plan;
			struct nezha_grid grid;

			nezha_plan_make(table, &scales[i], sizes[j], &plan);
			if (plan.alg == NEZHA_ALG_NATIVE)
				continue;
			fuzz_assert(nezha_grid_make(sizes[j], plan.block, &grid) == NEZHA_OK);
			fuzz_assert(sizes[j] >= below);
			if (plan.alg == NEZHA_ALG_MIX)
				fuzz_assert(plan.native && plan.native < sizes[j] && plan.native % plan.block == 0);
			else
				fuzz_assert(!plan.native);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nezha_table *table = NULL, *again = NULL;
	char *error = NULL, *printed, *reprinted;
	int status = nezha_table_parse((const char *)data, size, "fuzz", &table, &error);

	if (status != NEZHA_OK) {
		fuzz_assert(status == NEZHA_ERR_INVALID && !table && error && !strchr(error, '\n'));
		fuzz_assert(!strncmp(error, "fuzz:", 5) && atoi(error + 5) >= 1);
		free(error);
		return 0;
	}
	check_plans(table);
	printed = nezha_table_print(table);
	fuzz_assert(printed);
	fuzz_assert(nezha_table_parse(printed, strlen(printed), "printed", &again, &error) == NEZHA_OK);
	reprinted = nezha_table_print(again);
	fuzz_assert(reprinted && !strcmp(printed, reprinted));
	free(printed);
	free(reprinted);
	nezha_table_free(table);
	nezha_table_free(again);
	return 0;
}
