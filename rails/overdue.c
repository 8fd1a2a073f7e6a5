/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/overdue.h"

#include "rails/clock.h"

#define GRACE (60 * NEZHA_MSEC)         /* a host that is busy is late as well */
#define WATCHED (40 * NEZHA_MSEC)       /* how long it is then watched */
#define LEFT_LEAST 50e-3                /* s that it would still take, ... */
#define LEFT_FACTOR 4                   /* ... and so many times as long as over the others */

void nezha_overdue_promise(struct nezha_overdue *overdue, uint64_t now, uint64_t bytes, double rate)
{
	overdue->promised = now + (uint64_t)((double)bytes / rate * 1e9);
	overdue->since = 0;
}

bool nezha_overdue_look(struct nezha_overdue *overdue, const struct nezha_path_sample *sample, double others, double *rate)
{
	uint64_t backlog = sample->written - sample->acked;
	double delivered, left;

	if (!backlog || !sample->in_flight || sample->narrow || sample->time < overdue->promised + GRACE) {
		overdue->since = 0;
		return false;
	}
	if (!overdue->since || sample->shut != overdue->shut) {
		overdue->since = sample->time;
		overdue->acked = sample->acked;
		overdue->shut = sample->shut;
		return false;
	}
	if (sample->time - overdue->since < WATCHED)
		return false;
	delivered = (double)(sample->acked - overdue->acked) / ((double)(sample->time - overdue->since) * 1e-9);
	left = (double)backlog / (delivered > 1 ? delivered : 1);
	overdue->since = 0;
	if (others <= 0 || left < LEFT_LEAST || left < LEFT_FACTOR * (double)backlog / others)
		return false;
	*rate = delivered;
	return true;
}
