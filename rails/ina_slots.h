/* SPDX-License-Identifier: BSD-3-Clause
 * The slots of one session in an aggregator: where the ranks' contributions to a chunk come together.  Pure: no
 * sockets, no clock.
 *
 * A session has `window` slots of two versions each.  Chunk s lies in slot s mod window, version (s / window) mod
 * 2.  A rank sends chunk s only after it has the result of s - window (the rule of SwitchML, Sapio et al., NSDI
 * 2021).  So a version is overwritten by chunk s only when all ranks have the result of s - 2 window,
 * and the result of any chunk that a rank may still miss is kept.
 *
 * Contributions are folded in the order owner+1, owner+2, ..., owner with owner = block mod ranks, which is the
 * ring's: a rank that is early is parked.  So the bits do not depend on who came when.  What is parked stays in the buffer that
 * it came in, while there are enough of them, and is copied else. */
#ifndef NEZHA_RAILS_INA_SLOTS_H
#define NEZHA_RAILS_INA_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/ina_buffers.h"
#include "rails/ina_wire.h"

/* Bytes for all sessions of an aggregator together. */
struct nezha_ina_budget {
	uint64_t limit, used;
};

struct nezha_ina_slots;

/* What a session needs: 2 window (ranks + 1) chunk bytes, and some for each version, and each rank of it. */
uint64_t nezha_ina_slots_bytes(int ranks, uint32_t window, uint32_t chunk);

/* 2 <= ranks <= NEZHA_INA_RANKS_MAX; window a power of two.  gaps: some chunks of the session are folded elsewhere, so that a
 * version may be overwritten by any newer chunk, when it is complete.  NEZHA_ERR_NOMEM: the budget, or the memory, is
 * used up.  The budget must outlive the slots. */
int nezha_ina_slots_create(struct nezha_ina_budget *budget, int ranks, uint32_t window, uint32_t chunk,
                           bool gaps, struct nezha_ina_slots **out);

/* Lets go of all buffers. */
void nezha_ina_slots_destroy(struct nezha_ina_slots *slots);  /* NULL is allowed */

enum nezha_ina_taken {
	NEZHA_INA_TAKEN,       /* it was new; others are missing */
	NEZHA_INA_COMPLETE,    /* it was the last one: *out is the result */
	NEZHA_INA_KEPT,        /* all had come before: *out is the result that was kept */
	NEZHA_INA_TWICE,       /* it had come before; others are missing */
	NEZHA_INA_OUTSIDE,     /* a chunk that is not expected: old, or ahead of what the rule allows */
	NEZHA_INA_DISAGREE,    /* the ranks have different ideas of the chunk: the session can go no further */
};

/* A result; valid until the version is overwritten. */
struct nezha_ina_sum {
	struct nezha_ina_header header;   /* with the token of the contributions */
	const char *data;                 /* header.length bytes */
	bool asked;                       /* NEZHA_INA_KEPT: the rank had asked for it again before */
};

/* Takes in a contribution.  The header was checked (nezha_ina_check_upward), its token is the session's.  `in`: the buffer that the
 * payload is in and may stay in; NULL: the payload is the caller's own. */
enum nezha_ina_taken nezha_ina_slots_take(struct nezha_ina_slots *slots, const struct nezha_ina_header *header,
                                          const void *payload, struct nezha_ina_buffer *in, struct nezha_ina_sum *out);

/* The result in version `at` (chunk mod 2 window); false: there is none now. */
bool nezha_ina_slots_kept(const struct nezha_ina_slots *slots, uint32_t at, struct nezha_ina_sum *out);

/* Whose contributions to chunk `seq` are missing; all, if none has come. */
void nezha_ina_slots_missing(const struct nezha_ina_slots *slots, uint32_t seq, struct nezha_ina_missing *out);

#endif
