/* SPDX-License-Identifier: BSD-3-Clause
 * The model: what one communicator has learnt of its own calls, by size class, and the decision that follows: the
 * rails, the MPI library, or both at once, each with its share.  It decides only where no table was given by the user,
 * and only of what the built-in rules would send over the rails.
 *
 * All ranks hold the same model after the same call, without any message of its own.  What a rank measures is at first
 * only pending; a call over the rails carries the pending times as a note that is folded on its way (the least of all
 * ranks: the time of the rank that came last, which waited for nobody; below 256 KiB half way between the least and
 * the most, of a run the most), and every rank learns from the folded note.
 * Which times are pending, and when a note is sent, follows from the sequence of calls, which is the same on all ranks.
 *
 * The first three calls of a class are rails, library, rails (up to five where one of them may have been held up); then the cheaper one, ties to
 * the library.  In a small class (less than 128 KiB) runs of calls count from then on, each by its median, and the other way gets one soon.  Where both at
 * once would be faster yet (they share by water-filling, so that both end together), that is tried; the library does its part in nonblocking
 * pieces or by its blocking call, whichever is cheaper there.  With a
 * collective rail the shares of the rails' first two calls are a guess (rails/split.h), which is not held against them.  What is not the
 * fastest is tried again now and then, the more rarely the slower it was, so that trying costs less than 2 % of the
 * time where the times do not change.  The library takes the place of the chosen way, except in a small class, when three of its calls in a
 * row, made one after the other's, were cheaper: what is known of it may be long ago, and one call may have been a lucky one.  Above a class in which one of the two was found far slower it is
 * not tried alone.
 *
 * While a rail is lost, the library is not tried, nor what the rails took held against them: it may hang over that very network until the
 * rail is back.  Not so where it was seen to use another one.  All ranks hear of it by the first note after the loss; a communicator's first
 * call over the rails carries one, since the rail may have been lost before.
 *
 * Pure, not locked: calls on one communicator do not overlap. */
#ifndef NEZHA_TUNING_MODEL_H
#define NEZHA_TUNING_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tuning/model_run.h"
#include "tuning/plan.h"

#define NEZHA_MODEL_PENDING 8     /* calls that one note tells of */
#define NEZHA_NOTE_VALUES (2 * NEZHA_MODEL_PENDING + 1) /* two of each, and whether any rank lacks a rail that it has had */
#define NEZHA_MODEL_CLASSES 48    /* class k: vectors of [2^k, 2^(k+1)) bytes; the last one: all above, too */
#define NEZHA_MODEL_SMALL 17      /* classes below this (less than 128 KiB): opening a connection weighs, and only runs tell */
#define NEZHA_MODEL_SAMPLES 3     /* the median of so many counts */

struct nezha_model_cost {
	uint64_t samples[NEZHA_MODEL_SAMPLES]; /* the latest, picoseconds per byte */
	uint32_t count;                        /* learnt so far */
	uint32_t tried;                        /* calls made, learnt of or not, but for quiet ones */
	bool by_run;                           /* the only sample is the latest run of calls */
	bool of_try;                           /* ... and it was a try's */
	uint64_t before;                       /* the run before that, while the way was the chosen one; 0: there was none */
};

struct nezha_model_class {
	struct nezha_model_cost cost[NEZHA_ALG_COUNT];   /* a mix's has no samples: its parts have */
	struct nezha_model_cost part[NEZHA_ALG_MIX]; /* of the library's bytes by its blocking call, and of the rails', while both are at work */
	struct nezha_model_cost nonblocking;         /* of the library's bytes in nonblocking pieces, meanwhile */
	enum nezha_algorithm best;
	bool apart;                            /* the rails were idle while the library was at work */
	uint32_t calls, retry_at, pause;       /* calls so far; when another one is tried again; and after that */
	bool doubtful;                         /* of a small class: the latest run of the rails, chosen, would have the next try sooner */
	uint32_t tries;                        /* calls of the try that is under way */
	bool extra;                            /* of a small class: the rails seem far slower by single calls; one more is asked for, the one under way if it is theirs */
	uint32_t extras;                       /* how often that was */
	uint32_t quiet;                        /* of a small class: so many calls from the next one on go the best way, and none is measured */
	uint64_t promise;                      /* what the best one cost when it was chosen */
	uint32_t claim;                        /* the library claims to be cheaper than the best one: 1 + its latest calls in a row that bear it
	                                        * out.  0: it does not.  Not in a small class */
	uint32_t shunned[NEZHA_ALG_MIX];       /* of a small class: at least so many calls between tries of what has not kept that */
};

/* What a call does. */
struct nezha_choice {
	enum nezha_algorithm alg;
	uint64_t native;          /* bytes, from the first on, that the MPI library reduces: all, none, or its share of a mix */
	bool nonblocking;         /* a mix, of which the library does its bytes in nonblocking pieces (pmpi/nonblocking.h) */
	bool carrier;             /* a mix of which the rails get one block, to carry a note */
	bool looks;               /* the library's alone: it is to be seen whether the rails are idle meanwhile */
};

/* How long the library's and the rails' bytes of a call took on this rank, in ns; 0 where it had none.  Of a call that
 * looks: whether the rails' interfaces were idle meanwhile. */
struct nezha_model_times {
	uint64_t native, rails;
	bool idle;
};

struct nezha_model {
	struct nezha_model_class classes[NEZHA_MODEL_CLASSES];
	struct nezha_model_call {              /* measured here, not yet agreed upon */
		uint64_t bytes;
		struct nezha_choice choice;
		struct nezha_model_times times;
		bool run, trial;                   /* by the median of a run; of a try of another way than the chosen one */
		bool extra;                        /* one more of the rails' single calls, after a decision against them */
	} pending[NEZHA_MODEL_PENDING];
	uint32_t pending_count;
	struct nezha_model_run under_way[NEZHA_MODEL_SMALL]; /* measured here */
	uint64_t calls;                        /* that were counted */
	bool lost;                             /* at the latest note some rank lacked a rail that it has had */
	uint32_t guesses;                      /* of so many more calls over the rails, in classes that are not small, each one's time takes the
	                                        * place of the one before: all but the last share by a guess.  Set by who makes the model */
};

/* What the next call of `bytes` (>= 1) does; the shares of a mix are whole blocks of `block` bytes. */
struct nezha_choice nezha_model_choose(const struct nezha_model *model, uint64_t bytes, uint32_t block);

/* Whether the next call of `bytes` is the library's and is not measured: then it is counted, too. */
bool nezha_model_passes(struct nezha_model *model, uint64_t bytes);

/* Whether this call over the rails carries a note. */
bool nezha_model_has_note(const struct nezha_model *model);

/* Fills the note.  whole: this rank lacks no rail that it has had. */
void nezha_model_note(const struct nezha_model *model, bool whole, uint64_t note[NEZHA_NOTE_VALUES]);

/* Learns from the folded note; before nezha_model_count of the call that carried it. */
void nezha_model_learn(struct nezha_model *model, const uint64_t note[NEZHA_NOTE_VALUES]);

/* Whether this call's times will be pending, or part of a run: else they need not be taken. */
bool nezha_model_measures(const struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice);

/* What it has come to for vectors of a class. */
struct nezha_decision {
	enum nezha_algorithm alg;
	uint16_t share;           /* of a mix: the library's, from 1 to NEZHA_SHARE_WHOLE - 1 (plan.h); else 0 */
	bool blocking;            /* of a mix: the library does it by its blocking call */
	bool trying;              /* a mix still has to show what it can do: it may be decided otherwise soon */
};

/* Whether there is a decision for vectors of `bytes`, and which.  It stands until another way is tried again. */
bool nezha_model_decided(const struct nezha_model *model, uint64_t bytes, struct nezha_decision *out);

/* A call of `bytes` has gone the way of `choice`. */
void nezha_model_count(struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice,
                       const struct nezha_model_times *times);

#endif
