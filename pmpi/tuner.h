/* SPDX-License-Identifier: BSD-3-Clause
 * What nezha-tune's worker (tune_worker.c) asks of the Nezha in its process: not for applications.  The stub exports
 * nezha_tuner_2, which the worker looks up by name; the name changes with the interface. */
#ifndef NEZHA_PMPI_TUNER_H
#define NEZHA_PMPI_TUNER_H

#include <stddef.h>

#include "pmpi/entry.h"
#include "tuning/fingerprint.h"
#include "tuning/plan.h"
#include "tuning/rail_set.h"

struct nezha_tuner_job {
	struct nezha_scale scale;          /* of the communicator */
	bool open;                         /* its ranks have rails in common */
	struct nezha_rail_set rails;       /* ... of these, those that a rule can name */
	char why[96];                      /* if it is not open: why */
	struct nezha_fingerprint here;     /* of the calling rank */
};

struct nezha_tuner_learnt {
	bool complete;                     /* more calls of this size would hardly change it */
	bool apart;                        /* the library was seen to use another network than the rails */
	char mix[96];                      /* both at once are the fastest, so, as a rule in NEZHA_TUNE's syntax; "": they are not, or that
	                                    * is not known */
};

struct nezha_tuner {
	/* From now on this rule (NEZHA_TUNE's syntax) alone decides, for calls that it does not fit nothing does:
	 * they go native.  NULL: the built-in rules do and what is learnt, as in a job without a table.
	 * Collective in meaning, local in work: all ranks call it with the same rule between the same calls, no call is
	 * in progress.  0, or -1 with one line in `error`. */
	int (*rule)(const char *rule, char *error, size_t len);

	/* What a communicator (its handle) has learnt of vectors of `bytes`, alike on all ranks.  Local.  0, or -1: it is none, or there
	 * was no memory. */
	int (*learnt)(nezha_word comm, uint64_t bytes, struct nezha_tuner_learnt *out);

	/* What is known of a communicator (its handle) after its first call that a rule sent to the rails.  Local.
	 * 0, or -1: it is none, or there was no memory. */
	int (*describe)(nezha_word comm, struct nezha_tuner_job *out);
};

/* NULL: no backend is loaded (before MPI_Init, or the MPI library has none). */
#define NEZHA_TUNER_SYMBOL "nezha_tuner_2"
typedef const struct nezha_tuner *nezha_tuner_fn(void);

/* The backend's. */
extern const struct nezha_tuner nezha_tuner;

#endif
