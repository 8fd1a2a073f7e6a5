/* SPDX-License-Identifier: BSD-3-Clause
 * What a path delivers at least, however little it is given.  A shaper of rate r and burst b lets no more than r * T + b bytes pass in any time
 * T (RFC 2215, 3.6), so (bytes - b) / T is a lower bound of r, whatever pauses T has in it.  Taken from one moment at which all was
 * acknowledged to another; such a stretch goes on over pauses as long as it is ahead of a rate, so the burst is taken off once
 * for many short busy periods.  A larger burst than is taken off makes a bound too high, as long as that lasts.  Pure. */
#ifndef NEZHA_RAILS_BOUND_H
#define NEZHA_RAILS_BOUND_H

#include <stdint.h>

#include "rails/path_sample.h"

/* The first bytes after a pause say nothing of the rate: they pass in the burst that a token bucket or a NIC's queue
 * grants, or wait for slow start. */
#define NEZHA_BURST_BYTES 20480.0

struct nezha_bound {
	uint64_t since, acked;  /* where the stretch begins */
	double best;            /* bytes per second: the highest bound within it; 0: none yet */
};

/* It begins anew here. */
void nezha_bound_begin(struct nezha_bound *bound, const struct nezha_path_sample *sample);

/* All that was written is acknowledged.  Returns the bound of the stretch, bytes per second, if it ends here, since it is no longer
 * ahead of `rate` or has been for long enough; else, or if too little came for a bound, 0. */
double nezha_bound_look(struct nezha_bound *bound, const struct nezha_path_sample *sample, double rate);

#endif
