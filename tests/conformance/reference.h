/* SPDX-License-Identifier: BSD-3-Clause
 * What the ranks of a world contribute, and the result that they must get. */
#ifndef NEZHA_TESTS_REFERENCE_H
#define NEZHA_TESTS_REFERENCE_H

#include <stdint.h>

#include "rails/reduce.h"

#define WORLD_MOST 8            /* ranks */

/* Element i of rank r's contribution as type, small enough for PROD over 8 ranks to stay exact in most types. */
void world_fill(void *buffer, enum nezha_type type, uint64_t count, int rank, unsigned seed);

/* The fold that the ring must give: for each block in the order owner+1, owner+2, ..., owner. */
void world_reference(void *out, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, int ranks,
                     unsigned seed);

/* The same, computed once for all ranks, of whichever thread: what it is of, */
struct reference_of {
	enum nezha_type type;
	enum nezha_op op;
	uint64_t count;
	uint32_t block;
	int ranks;
	unsigned seed;
};

/* one of them, which stays as long as it is not released, and its data. */
struct reference;
struct reference *reference_take(const struct reference_of *of);
const void *reference_data(const struct reference *reference);
void reference_release(struct reference *reference);

#endif
