/* SPDX-License-Identifier: BSD-3-Clause
 * The element types and the reductions that Nezha can do itself.  MPI's handles are mapped to
 * these in pmpi/; rails/ and tuning/ know nothing of MPI. */
#ifndef NEZHA_TUNING_TYPES_H
#define NEZHA_TUNING_TYPES_H

#include <stdbool.h>
#include <stddef.h>

enum nezha_type {
	NEZHA_INT8, NEZHA_UINT8, NEZHA_INT16, NEZHA_UINT16,
	NEZHA_INT32, NEZHA_UINT32, NEZHA_INT64, NEZHA_UINT64,
	NEZHA_FLOAT32, NEZHA_FLOAT64,
	NEZHA_TYPE_COUNT
};

enum nezha_op {
	NEZHA_SUM, NEZHA_PROD, NEZHA_MIN, NEZHA_MAX,
	NEZHA_LAND, NEZHA_LOR, NEZHA_LXOR,      /* integers only; the result is 0 or 1 */
	NEZHA_BAND, NEZHA_BOR, NEZHA_BXOR,      /* integers only */
	NEZHA_OP_COUNT
};

#define NEZHA_TYPE_SIZE_MAX 8

/* Bytes of one element; 1, 2, 4 or 8. */
static inline size_t nezha_type_size(enum nezha_type type)
{
	static const unsigned char size[NEZHA_TYPE_COUNT] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8 };
	return size[type];
}

/* Whether the reduction is defined on the type (logical and bitwise ones: integers only). */
static inline bool nezha_op_fits(enum nezha_op op, enum nezha_type type)
{
	return op < NEZHA_LAND || type < NEZHA_FLOAT32;
}

#endif
