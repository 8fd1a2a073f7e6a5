/* SPDX-License-Identifier: BSD-3-Clause
 * Any bytes as rank 0's settings: refused, or settings that pack and unpack alike. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tuning/settings.h"
#include "tuning/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nezha_settings settings, again;
	char *packed, *repacked;
	static int quiet;
	int status;

	if (!quiet++)
		nezha_log_open(NEZHA_LOG_ERROR, "/dev/null", -1);   /* a line for each refusal */
	status = nezha_settings_unpack((const char *)data, size, &settings);
	if (status != NEZHA_OK) {
		fuzz_assert(status == NEZHA_ERR_INVALID);
		return 0;
	}
	packed = nezha_settings_pack(&settings);
	fuzz_assert(packed && nezha_settings_unpack(packed, strlen(packed), &again) == NEZHA_OK);
	repacked = nezha_settings_pack(&again);
	fuzz_assert(repacked && !strcmp(packed, repacked));
	free(packed);
	free(repacked);
	nezha_settings_free(&settings);
	nezha_settings_free(&again);
	return 0;
}
