/* SPDX-License-Identifier: BSD-3-Clause
 * The folds of the XDP program.  The verifier walks through each loop to its end, so the bounds are constants, and each access
 * to the packet is checked against its end. */
#ifndef NEZHA_RAILS_INA_XDP_FOLD_H
#define NEZHA_RAILS_INA_XDP_FOLD_H

#include "rails/ina_xdp.h"

#define FOLD(element, result)                                                            \
	for (uint32_t i = 0; i < NEZHA_XDP_CHUNK / sizeof(element); i++) {               \
		element *to = (element *)sum + i;                                        \
		const element *from = (const element *)payload + i;                      \
                                                                                         \
		if ((i + 1) * sizeof(element) > length || (const void *)(from + 1) > end) \
			break;                                                           \
		element a = *to, b = *from;                                              \
		*to = (element)(result);                                                 \
	}                                                                                \
	break

/* (void)a: a copy does not look at what was there. */
static __always_inline void copy_chunk(uint64_t *sum, const void *payload, const void *end, uint32_t length)
{
	do {
		FOLD(uint32_t, ((void)a, b));
	} while (0);
}

static __always_inline void fold_chunk(uint8_t type, uint8_t op, uint64_t *sum, const void *payload, const void *end,
                                       uint32_t length)
{
	bool wide = type >= NEZHA_INT64;

	/* Signed sums and products wrap as unsigned ones do; bits know no width. */
	switch (op) {
	case NEZHA_SUM:
		if (wide) {
			FOLD(uint64_t, a + b);
		}
		FOLD(uint32_t, a + b);
	case NEZHA_PROD:
		if (wide) {
			FOLD(uint64_t, a * b);
		}
		FOLD(uint32_t, a * b);
	case NEZHA_BAND:
		FOLD(uint32_t, a & b);
	case NEZHA_BOR:
		FOLD(uint32_t, a | b);
	case NEZHA_BXOR:
		FOLD(uint32_t, a ^ b);
	case NEZHA_MIN:
		if (type == NEZHA_INT32) {
			FOLD(int32_t, a < b ? a : b);
		} else if (type == NEZHA_UINT32) {
			FOLD(uint32_t, a < b ? a : b);
		} else if (type == NEZHA_INT64) {
			FOLD(int64_t, a < b ? a : b);
		}
		FOLD(uint64_t, a < b ? a : b);
	case NEZHA_MAX:
		if (type == NEZHA_INT32) {
			FOLD(int32_t, a > b ? a : b);
		} else if (type == NEZHA_UINT32) {
			FOLD(uint32_t, a > b ? a : b);
		} else if (type == NEZHA_INT64) {
			FOLD(int64_t, a > b ? a : b);
		}
		FOLD(uint64_t, a > b ? a : b);
	}
}

#undef FOLD

#endif
