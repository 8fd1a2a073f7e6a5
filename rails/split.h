/* SPDX-License-Identifier: BSD-3-Clause
 * How many blocks of a call each of a team's collective rails takes, beside the links: by water-filling, so that all end
 * together,
 *   x_i = S * (1 / c_i) / (sum of 1 / c)   with c = measured time / bytes of the size class,
 * which for long vectors and aggregators is the bound S / (sum B_ina + N / (2 (N-1)) * sum B_host).  A rail is left out
 * where the others, with the links on its network, too, were found to be faster.
 *
 * Pure; all ranks hold the same state after the same call: it changes only by calls that are the same on all ranks
 * and by times that were folded over all of them. */
#ifndef NEZHA_RAILS_SPLIT_H
#define NEZHA_RAILS_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/rail.h"
#include "tuning/grid.h"

#define NEZHA_SPLIT_CLASSES 48
#define NEZHA_SPLIT_GUESSES 2    /* the first calls, which share by a guess: what the first one took is heard in the second */
#define NEZHA_SPLIT_TRIES 4      /* calls of a class with all that are there before others are tried */
#define NEZHA_SPLIT_SETS (1 << NEZHA_COLLECTIVES_MAX)   /* bit i: collective rail i takes part */

struct nezha_split {
	int ranks, members;
	uint32_t rails;                                  /* the links': bit c for rail c that all ranks have in common */
	uint32_t occupied[NEZHA_COLLECTIVES_MAX];        /* of these: the ones that the member's packets go over */
	struct nezha_split_class {
		double cost[NEZHA_COLLECTIVES_MAX];      /* ns per byte of a member at work; 0: unknown */
		double links[NEZHA_SPLIT_SETS];          /* ns per byte of the links beside the set; 0: unknown */
		double whole[NEZHA_SPLIT_SETS];          /* ns per byte of the whole call; 0: unknown */
		uint32_t tried[NEZHA_SPLIT_SETS];        /* calls */
		uint32_t calls, retry_at, pause, turn;
	} classes[NEZHA_SPLIT_CLASSES];
};

/* What a call's members get, in this order from the first block on; the links get the rest. */
struct nezha_parts {
	uint32_t blocks[NEZHA_COLLECTIVES_MAX];
};

/* `occupied`: per member, as above. */
void nezha_split_init(struct nezha_split *split, int ranks, uint32_t rails, const uint32_t *occupied, int members);

/* How many rails the links have beside all members. */
int nezha_split_free_rails(const struct nezha_split *split);

/* The parts of a call; `present`: the members that are there. */
void nezha_split_choose(const struct nezha_split *split, const struct nezha_grid *grid, uint32_t present,
                        struct nezha_parts *parts);

/* Member i has come back, perhaps as another one: whether it is worth its place is measured anew. */
void nezha_split_renew(struct nezha_split *split, int i);

/* Such a call is made. */
void nezha_split_count(struct nezha_split *split, const struct nezha_grid *grid, const struct nezha_parts *parts);

/* What such a call took, folded over all ranks: ns until the members' blocks and the links' blocks were final (of one that
 * had none: anything; of one that had some, 0: unknown). */
void nezha_split_learn(struct nezha_split *split, const struct nezha_grid *grid, const struct nezha_parts *parts,
                       const uint64_t took[NEZHA_COLLECTIVES_MAX], uint64_t links);

#endif
