/* SPDX-License-Identifier: BSD-3-Clause
 * A path that still delivers, but so much slower than it did when it was given its blocks that these would sooner be there over
 * the others: a rail whose rate has fallen to a hundredth holds a second's worth of what it took as a few milliseconds'.  A
 * slow path that is as slow as was believed keeps its promises, and one whose receiver is late is no slow path.  Pure. */
#ifndef NEZHA_RAILS_OVERDUE_H
#define NEZHA_RAILS_OVERDUE_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/estimator.h"

/* All zero at the beginning, and for each new connection. */
struct nezha_overdue {
	uint64_t promised;      /* ns: when all that the path was given should have been delivered */
	uint64_t since, acked;  /* when this was first seen not to be so, and the bytes delivered then; since 0: it is not overdue */
	uint64_t shut;
};

/* The path is given a block at `now`, with which it has `bytes` before it at a rate of `rate` bytes per second. */
void nezha_overdue_promise(struct nezha_overdue *overdue, uint64_t now, uint64_t bytes, double rate);

/* Whether what the path has not delivered would be there far sooner if it were sent again over the other paths, which together
 * have `others` bytes per second (0: there are none).  *rate: bytes per second, what it has really delivered, if so. */
bool nezha_overdue_look(struct nezha_overdue *overdue, const struct nezha_path_sample *sample, double others, double *rate);

#endif
