/* SPDX-License-Identifier: BSD-3-Clause
 * The loops of reduce.c, once for each instruction set: whoever includes this defines SET(name), which
 * makes the names of that set, and TARGET, the attribute that lets the compiler use it.  Leaves one table,
 * SET(kernels)[type][op], and undefines both.
 *
 * The elements are read and written through types without alignment.  Signed integers are added and
 * multiplied as unsigned ones, so that overflow wraps; where the sign does not matter, both share a loop. */

#define LOOP(name, type, result) \
	TARGET static void SET(name)(void *out_, const void *partial_, const void *own_, size_t n) \
	{ \
		type *out = out_; \
		const type *partial = partial_, *own = own_; \
		NO_CARRIED_DEPENDENCE \
		for (size_t i = 0; i < n; i++) { \
			typeof(*partial + 0) a = partial[i], b = own[i]; \
			out[i] = (type)(result); \
		} \
	}

/* Narrow elements are promoted to int: a product of two uint16_t overflows it, so multiply as unsigned. */
#define INTEGER_LOOPS(bits) \
	LOOP(sum_##bits,  any_uint##bits, a + b) \
	LOOP(prod_##bits, any_uint##bits, 1u * a * b) \
	LOOP(land_##bits, any_uint##bits, (a != 0) & (b != 0)) \
	LOOP(lor_##bits,  any_uint##bits, (a | b) != 0) \
	LOOP(lxor_##bits, any_uint##bits, (a != 0) ^ (b != 0)) \
	LOOP(band_##bits, any_uint##bits, a & b) \
	LOOP(bor_##bits,  any_uint##bits, a | b) \
	LOOP(bxor_##bits, any_uint##bits, a ^ b) \
	LOOP(min_int##bits,  any_int##bits,  b < a ? b : a) \
	LOOP(max_int##bits,  any_int##bits,  b > a ? b : a) \
	LOOP(min_uint##bits, any_uint##bits, b < a ? b : a) \
	LOOP(max_uint##bits, any_uint##bits, b > a ? b : a)

#define FLOAT_LOOPS(bits) \
	LOOP(sum_float##bits,  any_float##bits, a + b) \
	LOOP(prod_float##bits, any_float##bits, a * b) \
	LOOP(min_float##bits,  any_float##bits, b < a ? b : a) \
	LOOP(max_float##bits,  any_float##bits, b > a ? b : a)

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)
FLOAT_LOOPS(32)
FLOAT_LOOPS(64)

#define INTEGER_ROW(sign, bits) { \
	[NEZHA_SUM] = SET(sum_##bits), [NEZHA_PROD] = SET(prod_##bits), \
	[NEZHA_MIN] = SET(min_##sign##bits), [NEZHA_MAX] = SET(max_##sign##bits), \
	[NEZHA_LAND] = SET(land_##bits), [NEZHA_LOR] = SET(lor_##bits), [NEZHA_LXOR] = SET(lxor_##bits), \
	[NEZHA_BAND] = SET(band_##bits), [NEZHA_BOR] = SET(bor_##bits), [NEZHA_BXOR] = SET(bxor_##bits) }

#define FLOAT_ROW(bits) { \
	[NEZHA_SUM] = SET(sum_float##bits), [NEZHA_PROD] = SET(prod_float##bits), \
	[NEZHA_MIN] = SET(min_float##bits), [NEZHA_MAX] = SET(max_float##bits) }

static nezha_reduce_fn *const SET(kernels)[NEZHA_TYPE_COUNT][NEZHA_OP_COUNT] = {
	[NEZHA_INT8] = INTEGER_ROW(int, 8),   [NEZHA_UINT8] = INTEGER_ROW(uint, 8),
	[NEZHA_INT16] = INTEGER_ROW(int, 16), [NEZHA_UINT16] = INTEGER_ROW(uint, 16),
	[NEZHA_INT32] = INTEGER_ROW(int, 32), [NEZHA_UINT32] = INTEGER_ROW(uint, 32),
	[NEZHA_INT64] = INTEGER_ROW(int, 64), [NEZHA_UINT64] = INTEGER_ROW(uint, 64),
	[NEZHA_FLOAT32] = FLOAT_ROW(32),      [NEZHA_FLOAT64] = FLOAT_ROW(64),
};

#undef LOOP
#undef INTEGER_LOOPS
#undef FLOAT_LOOPS
#undef INTEGER_ROW
#undef FLOAT_ROW
#undef SET
#undef TARGET
