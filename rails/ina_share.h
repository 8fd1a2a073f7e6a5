/* SPDX-License-Identifier: BSD-3-Clause
 * How many blocks of a call an aggregator takes, beside the links: by water-filling, so that both end together,
 *   x = S * c_links / (c_ina + c_links)   with c = measured time / bytes of the size class,
 * which for long vectors is the bound S / (B_ina + N / (2 (N-1)) * sum B_host).  Where the links alone, with the
 * aggregator's own rail as one more of theirs, were found to be faster, they get all.
 *
 * Pure; all ranks hold the same state after the same call: it changes only by calls that are the same on all ranks
 * and by times that were folded over all of them. */
#ifndef NEZHA_RAILS_INA_SHARE_H
#define NEZHA_RAILS_INA_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "tuning/grid.h"

#define NEZHA_INA_CLASSES 48

struct nezha_ina_share {
	int ranks;
	int rails;                   /* that the links have beside the aggregator's; the same on all ranks */
	struct nezha_ina_class {
		double ina, links;           /* ns per byte while both are at work; 0: unknown */
		double with, without;        /* ns per byte of the whole call; 0: unknown */
		uint32_t calls, retry_at, pause;
		uint32_t tried_with, tried_without;
	} classes[NEZHA_INA_CLASSES];
};

void nezha_ina_share_init(struct nezha_ina_share *share, int ranks, int rails);

/* How many of the grid's blocks the aggregator takes, if it is there. */
uint32_t nezha_ina_share_choose(const struct nezha_ina_share *share, const struct nezha_grid *grid);

/* A call of this grid is made, with `shared` blocks for the aggregator. */
void nezha_ina_share_count(struct nezha_ina_share *share, const struct nezha_grid *grid, uint32_t shared);

/* What such a call took, folded over all ranks: ns until the aggregator's blocks and the links' blocks were
 * final (of a side that had none: anything). */
void nezha_ina_share_learn(struct nezha_ina_share *share, const struct nezha_grid *grid, uint32_t shared, uint64_t ina,
                           uint64_t links);

#endif
