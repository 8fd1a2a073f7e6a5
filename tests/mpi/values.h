/* SPDX-License-Identifier: BSD-3-Clause
 * Made-up contributions to a reduction, and what may come out of it.  Every value is a pure function of
 * (seed, rank, index), so that any rank can make up any other's.  Knows nothing of MPI. */
#ifndef NEZHA_TESTS_MPI_VALUES_H
#define NEZHA_TESTS_MPI_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_op {
	OP_SUM, OP_PROD, OP_MIN, OP_MAX, OP_LAND, OP_LOR, OP_LXOR, OP_BAND, OP_BOR, OP_BXOR,
	OP_COUNT
};

struct value_kind {
	char family; /* 'i' signed, 'u' unsigned, 'f' floating */
	int size;    /* bytes: 1, 2, 4, 8 */
	bool tame;   /* keep sums and products of up to 16 ranks in range: libraries saturate or wrap */
};

/* buf[i] = contribution of `rank` to element first + i, i < n; fitted to `op` (no logical AND that is always
 * 0). */
void values_fill(void *buf, size_t first, size_t n, struct value_kind kind, enum value_op op, uint64_t seed,
                 int rank);

/* The index of the first element in which a and b differ by more than two orders of summing (or multiplying)
 * the contributions of `ranks` ranks may: 2 (ranks-1) eps sum|x|.  Everything but floating SUM and PROD must
 * be identical.  n if none does. */
size_t values_differ(const void *a, const void *b, size_t n, struct value_kind kind, enum value_op op,
                     uint64_t seed, int ranks);

/* A digest of bytes, chained: pass 0 first, then the last digest. */
uint64_t values_digest(uint64_t digest, const void *bytes, size_t length);

#endif
