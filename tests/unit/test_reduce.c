/* SPDX-License-Identifier: BSD-3-Clause
 * Every kernel of every instruction set against a reference that works element by element on wide types. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rails/reduce.h"

#define MOST 1031              /* elements: prime, more than any vector loop unrolls */
#define ROOM (MOST * 8 + 64)
#define GUARD 0xA5

static const size_t lengths[] = {
	0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 511, MOST
};

static uint64_t rng_state = 88172645463325252u;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static bool is_signed(enum nezha_type type)
{
	return type == NEZHA_INT8 || type == NEZHA_INT16 || type == NEZHA_INT32 || type == NEZHA_INT64;
}

/* One integer element, as the low bits of the result; the operands are extended according to the type. */
static uint64_t fold_integer(enum nezha_type type, enum nezha_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case NEZHA_SUM:  return a + b;
	case NEZHA_PROD: return a * b;
	case NEZHA_MIN:  return is_signed(type) ? ((int64_t)b < (int64_t)a ? b : a) : (b < a ? b : a);
	case NEZHA_MAX:  return is_signed(type) ? ((int64_t)b > (int64_t)a ? b : a) : (b > a ? b : a);
	case NEZHA_LAND: return a && b;
	case NEZHA_LOR:  return a || b;
	case NEZHA_LXOR: return !a != !b;
	case NEZHA_BAND: return a & b;
	case NEZHA_BOR:  return a | b;
	case NEZHA_BXOR: return a ^ b;
	default:         fail_msg("no such operation: %d", op);
	}
	return 0;
}

static uint64_t load_integer(enum nezha_type type, const void *from)
{
	uint64_t value = 0;
	size_t size = nezha_type_size(type);
	unsigned shift = 64 - 8 * (unsigned)size;

	memcpy(&value, from, size);       /* little endian; checked in main */
	return is_signed(type) ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

#define FOLD_FLOAT(type) \
	type a, b, r; \
	memcpy(&a, partial, sizeof(a)); \
	memcpy(&b, own, sizeof(b)); \
	r = op == NEZHA_SUM ? a + b : op == NEZHA_PROD ? a * b : \
	    op == NEZHA_MIN ? (b < a ? b : a) : (b > a ? b : a); \
	memcpy(out, &r, sizeof(r))

static void fold_one(enum nezha_type type, enum nezha_op op, void *out, const void *partial, const void *own)
{
	if (type == NEZHA_FLOAT32) {
		FOLD_FLOAT(float);
	} else if (type == NEZHA_FLOAT64) {
		FOLD_FLOAT(double);
	} else {
		uint64_t r = fold_integer(type, op, load_integer(type, partial), load_integer(type, own));
		memcpy(out, &r, nezha_type_size(type));
	}
}

static void fill(enum nezha_type type, unsigned char *to, size_t n)
{
	static const double special[] = { 0.0,    -0.0,  1.0,    -1.0,  INFINITY, -INFINITY, NAN,
		                          1e-310, 1e308, -1e308, 1e-40, 3e38,     -3e38 };
	static const uint64_t corner[] = { 0, 1, UINT64_MAX, 0x8080808080808080u, 0x7f7f7f7f7f7f7f7fu,
	                                   0x8000800080008000u, 0x8000000080000000u, 0x8000000000000000u,
	                                   0x7fffffffffffffffu, 0x7fffffff7fffffffu, 0x7fff7fff7fff7fffu };
	size_t size = nezha_type_size(type);

	for (size_t i = 0; i < n; i++, to += size) {
		uint64_t bits = rng();
		double d = bits % 4 ? (double)(int64_t)rng() * 1e-12 :
		                      special[rng() % (sizeof(special) / sizeof(*special))];
		float f = (float)d;

		if (bits % 3 == 0)
			bits = corner[rng() % (sizeof(corner) / sizeof(*corner))];
		if (type == NEZHA_FLOAT32)
			memcpy(to, &f, size);
		else
			memcpy(to, type == NEZHA_FLOAT64 ? (void *)&d : (void *)&bits, size);
	}
}

static bool same_element(enum nezha_type type, enum nezha_op op, const unsigned char *got,
                         const unsigned char *want)
{
	/* A sum or product that is no number is only asked to be none; MIN and MAX choose, so there bits
	 * count. */
	if (op == NEZHA_SUM || op == NEZHA_PROD) {
		if (type == NEZHA_FLOAT32) {
			float g, w;
			memcpy(&g, got, sizeof(g));
			memcpy(&w, want, sizeof(w));
			if (isnan(w))
				return isnan(g);
		} else if (type == NEZHA_FLOAT64) {
			double g, w;
			memcpy(&g, got, sizeof(g));
			memcpy(&w, want, sizeof(w));
			if (isnan(w))
				return isnan(g);
		}
	}
	return memcmp(got, want, nezha_type_size(type)) == 0;
}

enum alias { APART, OUT_IS_PARTIAL, OUT_IS_OWN, ALIASES };

static unsigned char partial_room[ROOM], own_room[ROOM], out_room[ROOM], want[ROOM];

static void check(enum nezha_reduce_set set, enum nezha_type type, enum nezha_op op, size_t n,
                  enum alias alias, const size_t shift[3])
{
	nezha_reduce_fn *kernel = nezha_reduce_kernel_of(set, type, op);
	unsigned char *partial = partial_room + shift[0], *own = own_room + shift[1];
	unsigned char *out = alias == OUT_IS_PARTIAL ? partial :
	                     alias == OUT_IS_OWN     ? own :
	                                               out_room + shift[2];
	size_t size = nezha_type_size(type);

	memset(partial_room, GUARD, sizeof(partial_room));
	memset(own_room, GUARD, sizeof(own_room));
	memset(out_room, GUARD, sizeof(out_room));
	fill(type, partial, n);
	fill(type, own, n);
	for (size_t i = 0; i < n; i++)
		fold_one(type, op, want + i * size, partial + i * size, own + i * size);
	kernel(out, partial, own, n);
	for (size_t i = 0; i < n; i++)
		if (!same_element(type, op, out + i * size, want + i * size))
			fail_msg("set %d type %d op %d n %zu alias %d shifts %zu %zu %zu: element %zu is "
			         "wrong",
			         set, type, op, n, alias, shift[0], shift[1], shift[2], i);
	for (unsigned char *end = out + n * size; end < out + n * size + 32; end++)
		assert_int_equal(*end, GUARD);
	for (size_t before = 1; before <= shift[2] && alias == APART; before++)
		assert_int_equal(out[-(ptrdiff_t)before], GUARD);
}

static void test_all_pairs(void **state)
{
	static const size_t shifts[][3] = { { 0, 0, 0 }, { 1, 3, 7 }, { 8, 5, 16 }, { 31, 32, 2 } };

	(void)state;
	for (int set = 0; set < NEZHA_REDUCE_SETS; set++) {
		if (!nezha_reduce_kernel_of(set, NEZHA_INT8, NEZHA_SUM)) {
			assert_int_not_equal(set, NEZHA_REDUCE_BASE);
			print_message("[  NOTE    ] this CPU lacks instruction set %d: not tested\n", set);
			continue;
		}
		for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
			for (int op = 0; op < NEZHA_OP_COUNT; op++)
				for (size_t l = 0;
				     nezha_op_fits(op, type) && l < sizeof(lengths) / sizeof(*lengths); l++)
					for (int alias = 0; alias < ALIASES; alias++)
						check(set, type, op, lengths[l], alias,
						      shifts[(l + (size_t)alias) % 4]);
	}
}

static void test_defined_where_it_fits(void **state)
{
	(void)state;
	for (int set = 0; set < NEZHA_REDUCE_SETS; set++)
		for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
			for (int op = 0; op < NEZHA_OP_COUNT; op++) {
				bool has = nezha_reduce_kernel_of(set, NEZHA_INT8, NEZHA_SUM) != NULL;
				assert_int_equal(nezha_reduce_kernel_of(set, type, op) != NULL,
				                 has && nezha_op_fits(op, type));
				assert_int_equal(nezha_reduce_kernel(type, op) != NULL,
				                 nezha_op_fits(op, type));
			}
}

#define FOLD1(kernel_type, op, ctype, partial, own)                                                          \
	({                                                                                                   \
		ctype a_ = (partial), b_ = (own), r_;                                                        \
		nezha_reduce_kernel(kernel_type, op)(&r_, &a_, &b_, 1);                                      \
		r_;                                                                                          \
	})

static void test_signed_wraps(void **state)
{
	(void)state;
	assert_int_equal(FOLD1(NEZHA_INT8, NEZHA_SUM, int8_t, 127, 1), -128);
	assert_int_equal(FOLD1(NEZHA_INT8, NEZHA_PROD, int8_t, -128, -1), -128);
	assert_int_equal(FOLD1(NEZHA_INT16, NEZHA_SUM, int16_t, INT16_MAX, 2), INT16_MIN + 1);
	assert_int_equal(FOLD1(NEZHA_UINT16, NEZHA_PROD, uint16_t, 65535, 65535), 1);
	assert_int_equal(FOLD1(NEZHA_INT32, NEZHA_SUM, int32_t, INT32_MIN, -1), INT32_MAX);
	assert_int_equal(FOLD1(NEZHA_INT32, NEZHA_PROD, int32_t, INT32_MIN, -1), INT32_MIN);
	assert_true(FOLD1(NEZHA_INT64, NEZHA_SUM, int64_t, INT64_MAX, 1) == INT64_MIN);
	assert_true(FOLD1(NEZHA_UINT64, NEZHA_SUM, uint64_t, UINT64_MAX, 1) == 0);
}

static void test_logical_gives_0_or_1(void **state)
{
	(void)state;
	assert_int_equal(FOLD1(NEZHA_INT32, NEZHA_LAND, int32_t, 0x100, 2), 1);
	assert_int_equal(FOLD1(NEZHA_INT32, NEZHA_LAND, int32_t, 4, 0), 0);
	assert_int_equal(FOLD1(NEZHA_INT8, NEZHA_LOR, int8_t, -128, 0), 1);
	assert_int_equal(FOLD1(NEZHA_UINT64, NEZHA_LOR, uint64_t, 0, UINT64_C(1) << 40), 1);
	assert_int_equal(FOLD1(NEZHA_INT16, NEZHA_LXOR, int16_t, 6, 256), 0);
	assert_int_equal(FOLD1(NEZHA_INT16, NEZHA_LXOR, int16_t, 256, 0), 1);
}

static void test_float_min_max_keep_partial(void **state)
{
	(void)state;
	for (int type = NEZHA_FLOAT32; type <= NEZHA_FLOAT64; type++) {
		bool narrow = type == NEZHA_FLOAT32;
#define F(op, a, b) (narrow ? (double)FOLD1(NEZHA_FLOAT32, op, float, (float)(a), (float)(b)) \
                            : FOLD1(NEZHA_FLOAT64, op, double, (a), (b)))
		assert_true(signbit(F(NEZHA_MIN, -0.0, 0.0)) && !signbit(F(NEZHA_MIN, 0.0, -0.0)));
		assert_true(signbit(F(NEZHA_MAX, -0.0, 0.0)) && !signbit(F(NEZHA_MAX, 0.0, -0.0)));
		assert_true(isnan(F(NEZHA_MIN, NAN, 1.0)) && F(NEZHA_MIN, 1.0, NAN) == 1.0);
		assert_true(isnan(F(NEZHA_MAX, NAN, 1.0)) && F(NEZHA_MAX, 1.0, NAN) == 1.0);
		assert_true(F(NEZHA_MIN, INFINITY, 3.0) == 3.0 && F(NEZHA_MAX, 3.0, INFINITY) == INFINITY);
		assert_true(F(NEZHA_MIN, -INFINITY, INFINITY) == -INFINITY);
		assert_true(isnan(F(NEZHA_SUM, INFINITY, -INFINITY)) && isnan(F(NEZHA_PROD, 0.0, INFINITY)));
#undef F
	}
}

/* Many folds in a row, a*b+c like: a fused multiply-add anywhere would show in the last bit of one of the
 * sets. */
static void test_sets_give_the_same_bits(void **state)
{
	float base[MOST], other[MOST], own[MOST];
	nezha_reduce_fn *sum, *prod;

	(void)state;
	for (int set = NEZHA_REDUCE_BASE + 1; set < NEZHA_REDUCE_SETS; set++) {
		sum = nezha_reduce_kernel_of(set, NEZHA_FLOAT32, NEZHA_SUM);
		prod = nezha_reduce_kernel_of(set, NEZHA_FLOAT32, NEZHA_PROD);
		if (!sum)
			continue;
		for (size_t i = 0; i < MOST; i++)
			base[i] = other[i] = 1.0f + (float)(rng() % 1000) / 997.0f;
		for (int round = 0; round < 20; round++) {
			for (size_t i = 0; i < MOST; i++)
				own[i] = 0.5f + (float)(rng() % 1000) / 991.0f;
			nezha_reduce_kernel_of(NEZHA_REDUCE_BASE, NEZHA_FLOAT32, NEZHA_PROD)(base, base, own,
			                                                                     MOST);
			nezha_reduce_kernel_of(NEZHA_REDUCE_BASE, NEZHA_FLOAT32, NEZHA_SUM)(base, base, own,
			                                                                    MOST);
			prod(other, other, own, MOST);
			sum(other, other, own, MOST);
		}
		assert_memory_equal(base, other, sizeof(base));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs),
		cmocka_unit_test(test_defined_where_it_fits),
		cmocka_unit_test(test_signed_wraps),
		cmocka_unit_test(test_logical_gives_0_or_1),
		cmocka_unit_test(test_float_min_max_keep_partial),
		cmocka_unit_test(test_sets_give_the_same_bits),
	};
	const uint16_t one = 1;

	if (*(const unsigned char *)&one != 1) {
		printf("skipped: the reference is written for little-endian machines\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
