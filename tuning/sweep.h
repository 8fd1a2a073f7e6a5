/* SPDX-License-Identifier: BSD-3-Clause
 * The sweep over the plans that are worth trying for one size: which is measured next, how many calls at a time,
 * and when enough is known.  Candidates take turns, so that what disturbs the machine disturbs all; those that are
 * clearly behind fall out.  Pure: the caller measures.  Linked into nezha-tune's worker, so it needs libc alone.
 *
 *     nezha_sweep_begin(&sweep, &blocks, rails, rail_count);
 *     while (nezha_sweep_next(&sweep, spent, budget, &step))
 *             nezha_sweep_record(&sweep, &step, the time of one call);
 *     nezha_sweep_median(&sweep, i) of each candidate
 *
 * One struct is used for all sizes in turn, smallest first: native, or a single rail, that was far behind at two
 * sizes in a row is left out of the larger ones. */
#ifndef NEZHA_TUNING_SWEEP_H
#define NEZHA_TUNING_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_SWEEP_BLOCKS 4           /* block sizes of one size, at most */
#define NEZHA_SWEEP_RAILS 8            /* rails, at most */
#define NEZHA_SWEEP_CANDIDATES (1 + NEZHA_SWEEP_BLOCKS + NEZHA_SWEEP_RAILS + 1)
#define NEZHA_SWEEP_SAMPLES 48         /* of one candidate and size, at most */
#define NEZHA_SWEEP_RULE 96            /* bytes of a candidate's text */
#define NEZHA_SWEEP_SHORT_NS 5e6       /* a call that takes less is short: it costs little, and is easily disturbed */

struct nezha_sweep_candidate {
	char rule[NEZHA_SWEEP_RULE];       /* as NEZHA_TUNE: "alg=ring,block=65536,rails=tcp:10.1.0.0/16" */
	unsigned losses;                   /* sizes in a row at which it was far behind */
	bool out;                          /* is not measured any more */
	double estimate;                   /* ns of a call by the last sample; 0: not known */
	uint64_t calls;                    /* in all samples */
	size_t count;
	double ns[NEZHA_SWEEP_SAMPLES];    /* of one call, on the slowest rank */
};

struct nezha_sweep {
	size_t count;                      /* candidates: native; each rail alone with the first block, where
	                                    * there are several; all rails with each block; and what was added */
	struct nezha_sweep_candidate candidate[NEZHA_SWEEP_CANDIDATES];
	size_t fixed;                      /* the first so many candidates are the same at all sizes */
	size_t round, turn;
};

struct nezha_sweep_step {
	size_t candidate;
	unsigned settle;                   /* calls to be made first, and not timed */
	unsigned calls;                    /* to be made then and timed */
};

struct nezha_sweep_blocks {
	size_t count;
	uint32_t bytes[NEZHA_SWEEP_BLOCKS];
};

/* Lists the candidates of the next size.  `sweep` is all zero before the first one.  `rails`: names such as
 * "tcp:10.1.0.0/16", 1 to NEZHA_SWEEP_RAILS of them, the same for all sizes. */
void nezha_sweep_begin(struct nezha_sweep *sweep, const struct nezha_sweep_blocks *blocks,
                       const char *const *rails, size_t rail_count);

/* Adds a candidate of this size, once; as NEZHA_TUNE. */
void nezha_sweep_add(struct nezha_sweep *sweep, const char *rule);

/* What is to be measured next; false: enough is known.  `spent` and `budget` are the time used for this size and what it
 * should take, ns. */
bool nezha_sweep_next(struct nezha_sweep *sweep, double spent, double budget, struct nezha_sweep_step *out);

/* What the step took: ns of one call, on the slowest rank. */
void nezha_sweep_record(struct nezha_sweep *sweep, const struct nezha_sweep_step *step, double ns);

/* ns; 0: it was not measured. */
double nezha_sweep_median(const struct nezha_sweep *sweep, size_t candidate);

/* How much of the time for all sizes one gets, in relation to others: larger ones more, for a call takes longer there, but fewer will
 * do; small ones hardly less than each other, for a call takes a round trip however small. */
double nezha_sweep_weight(uint64_t bytes);

/* What the least that can be measured of the next size will take, ns, if a call takes `times` as long as at this one. */
double nezha_sweep_foresee(const struct nezha_sweep *sweep, double times);

#endif
