/* SPDX-License-Identifier: BSD-3-Clause
 * Floats as fixed point, so that integers can be added in their place, by who has no floating point (an XDP program) and in any
 * order.  Pure.
 *
 * A vector is cut into units of NEZHA_FIXED_UNIT bytes.  All ranks use one exponent e for a unit, the greatest of those that each
 * finds there: all values are less than 2^e.  With N ranks and L = ceil(log2 N) a value x becomes the integer nearest to
 *   x * 2^s    with s = B - L - e, B = 30 for float32 in int32, 62 for float64 in int64
 * so that the sum of N of them fits; and the sum becomes the float nearest to it * 2^-s.  Each contribution is rounded by half of
 * 2^-s at most, so
 *   |result - exact sum| <= N / 2 * 2^(e + L - B) + half an ulp of the result (one, where a float64 is subnormal)
 * where 2^e is at most twice the greatest magnitude in the unit on any rank, or 2^-126 (2^-1022) if that is more.  A sum of zero is +0.  A sum beyond
 * the type's range becomes infinite.
 *
 * What cannot be so, Inf and NaN, has the exponent NEZHA_FIXED_ESCAPE. */
#ifndef NEZHA_RAILS_FIXED_H
#define NEZHA_RAILS_FIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/types.h"

#define NEZHA_FIXED_UNIT 1024u               /* bytes, from a block's beginning on; divides NEZHA_BLOCK_MIN */

/* Of a unit's exponent; what lies between is one.  In this order: the greatest of all ranks' tells of what any has. */
#define NEZHA_FIXED_UNKNOWN INT32_MIN        /* of none */
#define NEZHA_FIXED_ZERO (INT32_MIN + 1)     /* there are only zeros */
#define NEZHA_FIXED_ESCAPE INT32_MAX

/* Whether sums of the type can be so. */
static inline bool nezha_fixed_can(enum nezha_type type, enum nezha_op op)
{
	return op == NEZHA_SUM && (type == NEZHA_FLOAT32 || type == NEZHA_FLOAT64);
}

/* The integer of as many bytes that stands for such a float. */
static inline enum nezha_type nezha_fixed_type(enum nezha_type type)
{
	return type == NEZHA_FLOAT32 ? NEZHA_INT32 : NEZHA_INT64;
}

/* The exponent of `bytes` of floats, which may lie anywhere. */
int32_t nezha_fixed_exponent(enum nezha_type type, const void *data, size_t bytes);

/* What the ranks agree on when the greatest is `exponent`: that, or NEZHA_FIXED_ESCAPE if no float can have it. */
int32_t nezha_fixed_agreed(enum nezha_type type, int32_t exponent);

/* Makes integers of floats (zeros, of an escaped unit), and floats of their sum (nothing, of an escaped one).  `exponent`: agreed, and
 * known; 2 <= ranks <= NEZHA_INA_RANKS_MAX.  The buffers may lie anywhere, but not overlap. */
void nezha_fixed_pack(enum nezha_type type, int32_t exponent, int ranks, const void *from, void *to, size_t bytes);
void nezha_fixed_unpack(enum nezha_type type, int32_t exponent, int ranks, const void *from, void *to, size_t bytes);

#endif
