/* SPDX-License-Identifier: BSD-3-Clause
 * The model: what one communicator has learnt of its own calls, by size class, and the decision that follows: the
 * rails or the MPI library.  It decides only where no table was given by the user, and only between what the
 * built-in rules would send over the rails and the library.
 *
 * All ranks hold the same model after the same call, without any message of its own.  What a rank measures is at first
 * only pending; a call over the rails carries the pending times as a note that is folded on its way (the least of all
 * ranks: the time of the rank that came last, which waited for nobody), and every rank learns from the folded note.
 * Which times are pending, and when a note is sent, follows from the sequence of calls, which is the same on all ranks.
 *
 * The first three calls of a class are rails, library, rails; then the cheaper one, ties to the library.  The other one is
 * tried again now and then, the more rarely the slower it was, so that trying costs less than 2 % of the time.  Above
 * a class in which the library was found far slower it is not tried.
 *
 * Pure, not locked: calls on one communicator do not overlap. */
#ifndef NEZHA_TUNING_MODEL_H
#define NEZHA_TUNING_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tuning/plan.h"

#define NEZHA_NOTE_VALUES 8       /* times that one note carries */
#define NEZHA_MODEL_CLASSES 48    /* class k: vectors of [2^k, 2^(k+1)) bytes; the last one: all above, too */
#define NEZHA_MODEL_SAMPLES 3     /* the median of so many counts */

struct nezha_model_cost {
	uint64_t samples[NEZHA_MODEL_SAMPLES]; /* the latest, picoseconds per byte */
	uint32_t count;                        /* learnt so far */
	uint32_t tried;                        /* calls made, learnt of or not */
};

struct nezha_model_class {
	struct nezha_model_cost cost[NEZHA_ALG_COUNT];
	enum nezha_algorithm best;
	uint32_t calls, retry_at, pause;       /* calls so far; when the other one is tried again; and after that */
};

struct nezha_model {
	struct nezha_model_class classes[NEZHA_MODEL_CLASSES];
	struct nezha_model_time {              /* measured here, not yet agreed upon */
		uint64_t bytes, ns;
		enum nezha_algorithm alg;
	} pending[NEZHA_NOTE_VALUES];
	uint32_t pending_count;
};

/* What the next call of `bytes` (>= 1) does. */
enum nezha_algorithm nezha_model_choose(const struct nezha_model *model, uint64_t bytes);

/* Fills the note that this call over the rails carries; false: it carries none. */
bool nezha_model_note(const struct nezha_model *model, uint64_t note[NEZHA_NOTE_VALUES]);

/* Learns from the folded note; before nezha_model_count of the call that carried it. */
void nezha_model_learn(struct nezha_model *model, const uint64_t note[NEZHA_NOTE_VALUES]);

/* A call of `bytes` has gone the way of `alg` and took `ns` on this rank. */
void nezha_model_count(struct nezha_model *model, uint64_t bytes, enum nezha_algorithm alg, uint64_t ns);

/* What `bytes` are believed to cost, in nanoseconds; 0: not known. */
uint64_t nezha_model_expect(const struct nezha_model *model, uint64_t bytes, enum nezha_algorithm alg);

#endif
