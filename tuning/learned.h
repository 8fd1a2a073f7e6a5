/* SPDX-License-Identifier: BSD-3-Clause
 * From what a job's communicators have learnt (model.h) to a tuning table, so that the next job need not find it out
 * again; as some MPI libraries' own tuners write down what they have found in a job.
 *
 * A scale's rules are those by which the job ran (the built-in ones), but for the size classes that were found to be
 * the MPI library's, or one for both at once: these go native, or are a mix with the shares that were found.  Classes that were
 * not seen, or not often enough for a decision, stay as they are in the table that is there. */
#ifndef NEZHA_TUNING_LEARNED_H
#define NEZHA_TUNING_LEARNED_H

#include <stdint.h>

#include "tuning/fingerprint.h"
#include "tuning/model.h"
#include "tuning/rules.h"

/* For each number of ranks, on a node and in all, the model of one communicator: of those that came to a decision, the
 * one with most calls. */
struct nezha_learned {
	size_t count;
	struct nezha_learned_scale {
		struct nezha_scale scale;
		uint64_t calls;
		struct nezha_model model;
	} *of;                         /* owned; in the order of coming, NEZHA_TABLE_GROUPS at most */
};

/* Keeps a copy of a communicator's model, if it is the one to be kept for its scale.  NEZHA_ERR_NOMEM: logged, all is as it was. */
int nezha_learned_keep(struct nezha_learned *learned, const struct nezha_scale *scale, const struct nezha_model *model);

/* The rules of one scale: what was learnt; for sizes of which nothing was, those `known` before, which a job with that table would have gone by (NULL: there are none), or else
 * those of `base`, which the job ran by, but for NEZHA_TUNE's.  out->rules is the caller's, the rest as nezha_scales_put (scales.h)
 * wants it.  NEZHA_ERR_NOMEM. */
int nezha_learned_rules(const struct nezha_model *model, const struct nezha_table *base, const struct nezha_rule_group *known,
                        const struct nezha_scale *scale, struct nezha_rule_group *out);

/* Whether the table at `path`, if there is one, was measured where this job runs, and so may be extended.
 * NEZHA_ERR_INVALID: it was not, or it cannot be read or parsed; logged as one warning. */
int nezha_learned_check(const char *path, const struct nezha_fingerprint *here);

/* Writes all that is kept into the table at `path`, made if there is none: what was learnt of its scales takes the place of
 * what is there, all else stays.  Waits for others that do the same (NEZHA_FILE_PATIENCE).  Logs what keeps it from
 * doing so, in one line; the file is then as it was. */
int nezha_learned_write(const struct nezha_learned *learned, const struct nezha_table *base,
                        const struct nezha_fingerprint *here, const char *path);

/* Forgets all. */
void nezha_learned_clear(struct nezha_learned *learned);

#endif
