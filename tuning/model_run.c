/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model_run.h"

#include <stdlib.h>
#include <string.h>

bool nezha_run_add(struct nezha_model_run *run, uint32_t place, uint64_t ns, uint64_t bytes)
{
	if (place == 0)
		run->count = 0;
	if (place != run->count || place >= NEZHA_RUN_CALLS)
		return false;
	run->values[run->count++] = (uint64_t)((double)ns * 1000 / (double)bytes);
	return run->count == NEZHA_RUN_CALLS;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t nezha_run_time(const struct nezha_model_run *run, uint64_t bytes)
{
	uint64_t sorted[NEZHA_RUN_CALLS];
	double median;

	memcpy(sorted, run->values, sizeof sorted);
	qsort(sorted, NEZHA_RUN_CALLS, sizeof sorted[0], compare);
	median = ((double)sorted[(NEZHA_RUN_CALLS - 1) / 2] + (double)sorted[NEZHA_RUN_CALLS / 2]) / 2;
	return (uint64_t)(median * (double)bytes / 1000);
}
