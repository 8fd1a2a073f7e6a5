/* SPDX-License-Identifier: BSD-3-Clause
 * Policies: which path of a link carries the next block.  Pure functions over a view of the paths.
 *
 * ecf     the paths that have room take turns by their rates as measured, or hoped (estimator.h) (fair queueing): first whose share would end first,
 *         of the block no more than a few ms counted, so that a long one on a slow path comes near to start-time fair
 *         queueing (Goyal, Vin and Cheng, SIGCOMM 1996).  A block that a slow path would finish, with its further hops,
 *         after all the rest of the call waits for a faster one (earliest completion first, after Lim et al., ECF, CoNEXT
 *         2017).  A path has room while what it has before it takes less than a few ms: so a wrong rate moves little, and
 *         every path is kept busy, and measured, until the end.
 * static  parts of the call by nominal speed (the papers' MRIB baseline), whatever happens meanwhile.
 * share   the same with parts by share.h (the Nezha paper's rule).
 * slice   of the paths with room the one with the least before it (the papers' MPTCP baseline), in turn on a tie. */
#ifndef NEZHA_RAILS_POLICY_H
#define NEZHA_RAILS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/settings.h"

struct nezha_path_view {
	bool up;             /* false: must not be picked */
	bool ready;          /* its transport takes something now */
	double rate;         /* bytes per second, > 0: nominal for static, what follows from its part of the
	                      * call for share, measured for the others */
	double share;        /* seconds of work given to it since the link was last idle */
	uint64_t in_flight;  /* bytes before the path's next one: begun and not yet acknowledged, as far as they matter (ack_delay.h), and
	                      * those of a probe that go first */
};

/* The block to be placed. */
struct nezha_block_view {
	uint64_t bytes;
	uint64_t waiting;    /* bytes that the call will still give to the link after this block */
	double after;        /* seconds that the block still needs once it has arrived: its further hops */
};

/* The path for the block, or -1: none should take it now. */
int nezha_policy_pick(enum nezha_policy_kind kind, const struct nezha_path_view *paths, size_t count,
                      const struct nezha_block_view *block);

const char *nezha_policy_name(enum nezha_policy_kind kind);

#endif
