/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/departures.h"

#include "rails/clock.h"

#define AGE_BYTES (4u << 20)    /* stretches are put together if no more than this was written meanwhile */

/* Some of what the interface had at `from` is still there at `to`: it worked all the time.  For some microseconds after it got more that
 * seems to be so, too, since what waits is told with its administration; a margin for that made little difference but to
 * leave out most of what there is to measure.  A path that was idle may have begun at any time since. */
static bool is_held(const struct nezha_path_sample *from, const struct nezha_path_sample *to)
{
	return from->acked != from->written && to->left < from->sent;
}

/* Of what is rarely held at all, as on a fast rail, the odd stretches say nothing together. */
static void forget_old(struct nezha_departures *d, const struct nezha_path_sample *to)
{
	if (d->time > 0 && to->written - d->since <= AGE_BYTES)
		return;
	d->bytes = d->time = 0;
	d->since = to->written;
}

void nezha_departures_add(struct nezha_departures *d, const struct nezha_path_sample *from,
                          const struct nezha_path_sample *to, bool counts, double longest)
{
	forget_old(d, to);
	if (!counts || !is_held(from, to)) {
		d->running = false;
		d->silence = 0;
		d->left = to->left;
		return;
	}
	d->silence += (double)(to->time - from->time) / NEZHA_SEC;
	/* Less may seem to have left than before: the administration grows as packets are made. */
	if (to->left <= d->left)
		return;
	if (d->running && d->silence <= longest) {
		d->bytes += (double)(to->left - d->left);
		d->time += d->silence;
	}
	d->running = true;
	d->silence = 0;
	d->left = to->left;
}
