/* SPDX-License-Identifier: BSD-3-Clause
 * What nezha-tune has measured.  It is told in lines, by its worker and, the same lines, by the journal that it
 * keeps beside its output:
 *
 *     job RANKS NODES PPN               begins what one job told; several jobs may measure the same size
 *     concluded RANKS PPN               that scale is in the table, and what was told of it before counts no more (in journals)
 *     mpi|host|topology|rails TEXT      where it ran (fingerprint.h)
 *     at BYTES                          a size is being measured (not in journals)
 *     time BYTES NS CALLS RULE          median of a call under this rule (as NEZHA_TUNE), out of so many calls
 *     size BYTES                        that size is finished
 *     skipped BYTES                     it was left out for lack of time (not in journals)
 *     failed TEXT, end                  how the job ended (not in journals) */
#ifndef NEZHA_TUNING_MEASURED_H
#define NEZHA_TUNING_MEASURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/fingerprint.h"
#include "tuning/rules.h"
#include "tuning/sweep.h"

#define NEZHA_TUNE_MARK "@nezha-tune "     /* before each line of the worker */
#define NEZHA_MEASURED_SIZES 64            /* of one scale */
#define NEZHA_MEASURED_JOBS 5              /* that measure a size, at most */

struct nezha_measured_time {
	struct nezha_rule rule;
	double ns;                         /* of one call, by all jobs: as much more or less than the library's as in the median of those
	                                    * that have measured both, since what makes a job slow makes both slow */
	uint64_t calls;
	double job_ns[NEZHA_MEASURED_JOBS];/* medians on the slowest rank; 0: that job has not told */
};

struct nezha_measured_size {
	uint64_t bytes;
	uint32_t jobs;                     /* that have finished it; another one may be at work on it */
	size_t count;
	struct nezha_measured_time time[NEZHA_SWEEP_CANDIDATES];
};

/* Of one scale; sizes in ascending order. */
struct nezha_measured {
	struct nezha_scale scale;
	struct nezha_fingerprint where;
	size_t count;
	struct nezha_measured_size size[NEZHA_MEASURED_SIZES];
};

enum nezha_measured_kind {
	NEZHA_MEASURED_JOB, NEZHA_MEASURED_WHERE, NEZHA_MEASURED_AT, NEZHA_MEASURED_TIME, NEZHA_MEASURED_SIZE,
	NEZHA_MEASURED_SKIPPED, NEZHA_MEASURED_FAILED, NEZHA_MEASURED_END,
};

/* Takes in one line without its mark and end (untrusted).  *kind says what it was, *bytes which size it was about
 * (0: none).
 * NEZHA_ERR_INVALID: no such line, or more sizes, candidates or jobs than there may be. */
int nezha_measured_take(struct nezha_measured *measured, const char *line, enum nezha_measured_kind *kind,
                        uint64_t *bytes);

/* Whether a size is finished. */
bool nezha_measured_any(const struct nezha_measured *measured);

/* The size if a job has finished it; NULL if not. */
const struct nezha_measured_size *nezha_measured_find(const struct nezha_measured *measured, uint64_t bytes);

/* ---- the choice ---- */

/* Native wins unless a rule is faster by more than this. */
#define NEZHA_CHOICE_TIE 1.02

/* The cheapest candidate; native if it is not slower by more than NEZHA_CHOICE_TIE.  NULL: nothing was measured. */
const struct nezha_measured_time *nezha_choose(const struct nezha_measured_size *size);

/* Whether they are one candidate: of a mix each job finds shares of its own, of which the first one's are kept. */
bool nezha_choice_alike(const struct nezha_rule *a, const struct nezha_rule *b);

/* Whether both rules say the same for the sizes that they are for. */
bool nezha_choice_equal(const struct nezha_rule *a, const struct nezha_rule *b);

/* Whether the choice between the library and the rails should rest on one more job.  Short calls take 10 to 20 % more or less in one job
 * than in the next (where its processes run, whom they wake), and alike within one: Hunold and Carpen-Amarie, Reproducible MPI
 * Benchmarking is Still Not as Easy as You Think, IEEE TPDS 2016. */
bool nezha_choice_is_close(const struct nezha_measured_size *size);

/* The rules that decide as measured: finished sizes with the same choice in a row share one, between two choices the
 * border is the
 * geometric mean of their sizes.  What is smaller than all goes native, what is larger than all goes as the largest.
 * `out` is zeroed but for the rules, ->measured and ->measured_ppn, all owned by the caller, as nezha_scales_put (scales.h) wants it.
 * NEZHA_ERR_INVALID: no size is finished; NEZHA_ERR_NOMEM. */
int nezha_choose_rules(const struct nezha_measured *measured, struct nezha_rule_group *out);

#endif
