/* SPDX-License-Identifier: BSD-3-Clause
 * Calls whose floats go to an aggregator as fixed point (fixed.h).  The ranks agree on the exponents of the units through the
 * aggregator itself: the call's first chunks carry them, as int32 folded with MAX, 4 bytes for each 1024 of the vector; a chunk
 * of data is sent when the exponents of its units have come back.  A block with an escaped unit goes back to the links, on all
 * ranks, when its chunks, in which such units are zeros, have been answered: so chunks are numbered alike whatever is in
 * them.  The engine's lock is held. */
#ifndef NEZHA_RAILS_INA_FIXED_H
#define NEZHA_RAILS_INA_FIXED_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/ina_wire.h"

struct nezha_ina;

struct nezha_ina_fixed {
	bool on;                         /* in the call in progress */
	bool escaped;                    /* ... a block has gone back for its values */
	bool often;                      /* ... so one did in the call before */
	uint32_t chunks;                 /* of exponents, before those of data; 0: it is off */
	uint32_t per_block, units;       /* of a whole block; of all */
	int32_t *exponents;              /* agreed, or unknown; `room` entries */
	uint32_t room;
	char *buffer;                    /* payloads of a run, and of one chunk more; NULL: never needed so far */
};

/* Where a chunk of a call lies. */
struct nezha_ina_place {
	bool exponents;                  /* `offset` is that among the exponents, in bytes */
	uint32_t block, offset, length;  /* its block, the offset of it in the block, its bytes */
};

/* The call's blocks are known: whether it is one of these, and its units.  NEZHA_ERR_NOMEM. */
int nezha_ina_fixed_begin(struct nezha_ina *ina);
void nezha_ina_fixed_free(struct nezha_ina_fixed *fixed);

/* The i-th chunk of exponents. */
struct nezha_ina_place nezha_ina_fixed_place(const struct nezha_ina *ina, uint32_t i);

/* What its header says of a chunk of such a call. */
enum nezha_type nezha_ina_fixed_type(const struct nezha_ina *ina, const struct nezha_ina_place *place);
enum nezha_op nezha_ina_fixed_op(const struct nezha_ina *ina, const struct nezha_ina_place *place);

/* Whether it can be sent; its payload, into `to` (place->length bytes). */
bool nezha_ina_fixed_ready(const struct nezha_ina *ina, const struct nezha_ina_place *place);
void nezha_ina_fixed_fill(const struct nezha_ina *ina, const struct nezha_ina_place *place, char *to);

/* A result: of exponents; of data, as floats into `to`. */
void nezha_ina_fixed_learn(struct nezha_ina *ina, const struct nezha_ina_place *place, const char *data);
void nezha_ina_fixed_convert(const struct nezha_ina *ina, const struct nezha_ina_place *place, const char *data, char *to);

/* The call has ended: whether the time it took tells of those to come.  A call in which blocks have gone back for their values does so only
 * if it is not the first one: where that goes on, it is what the aggregator takes. */
bool nezha_ina_fixed_tells(struct nezha_ina_fixed *fixed);

/* Whether block b is known to have an escaped unit. */
bool nezha_ina_fixed_escapes(const struct nezha_ina *ina, uint32_t b);

#endif
