/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/departures.h"

#include "rails/clock.h"

void nezha_departures_add(struct nezha_departures *d, const struct nezha_path_sample *from,
                          const struct nezha_path_sample *to, bool counts, double longest)
{
	if (!counts || to->left >= from->sent) {
		d->running = false;
		d->silence = 0;
		d->left = to->left;
		return;
	}
	d->silence += (double)(to->time - from->time) / NEZHA_SEC;
	/* Less may seem to have left than before: what waits is told with its administration, and that grows as packets are made. */
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
