/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/bound.h"

#include "rails/clock.h"

#define LEAST_BYTES 16384.0     /* so much must have come after the burst ... */
#define ENOUGH_BYTES 131072.0   /* ... and then no more: the burst is a seventh of the whole */

void nezha_bound_begin(struct nezha_bound *bound, const struct nezha_path_sample *sample)
{
	*bound = (struct nezha_bound){ .since = sample->time, .acked = sample->acked };
}

double nezha_bound_look(struct nezha_bound *bound, const struct nezha_path_sample *sample, double rate)
{
	double bytes = (double)(sample->acked - bound->acked), time = (double)(sample->time - bound->since) / NEZHA_SEC;
	double after = bytes - NEZHA_BURST_BYTES, best;

	if (after >= LEAST_BYTES && time > 0 && after / time > bound->best)
		bound->best = after / time;
	if (bytes > rate * time && after < ENOUGH_BYTES)
		return 0;
	best = bound->best;
	nezha_bound_begin(bound, sample);
	return best;
}
