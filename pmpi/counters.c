/* SPDX-License-Identifier: BSD-3-Clause
 * The backend's half of nezha_rail_counters (nezha.h). */
#include <pthread.h>
#include <stdio.h>

#include "pmpi/calls.h"
#include "pmpi/context.h"
#include "pmpi/nezha.h"
#include "rails/team.h"

size_t nezha_mpi_rail_counters(struct nezha_rail_counter *out, size_t max)
{
	struct nezha_rail_stats stats[NEZHA_STATS_MAX];
	size_t count = 0;

	pthread_mutex_lock(&nezha_context.lock);
	if (nezha_context.engine)
		count = nezha_engine_rail_stats(nezha_context.engine, stats, NEZHA_STATS_MAX);
	pthread_mutex_unlock(&nezha_context.lock);
	for (size_t i = 0; i < count && i < max; i++) {
		/* no byte of it is left unset: programs send these structs to one another */
		out[i] = (struct nezha_rail_counter){ .bytes = stats[i].bytes_sent };
		snprintf(out[i].device, sizeof(out[i].device), "%.15s", stats[i].device);
		snprintf(out[i].subnet, sizeof(out[i].subnet), "%.23s", stats[i].subnet);
	}
	return count;
}
