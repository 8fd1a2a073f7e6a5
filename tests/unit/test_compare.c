/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/compare.h"

#define RANKS 8

/* The inputs of all ranks reduced in this order and in the reverse one, then compared. */
static size_t compare_orders(enum nezha_type type, enum nezha_op op, const double input[RANKS], double fault)
{
	float mine4 = (float)input[0], other4 = (float)input[RANKS - 1], weight4 = 0, one4;
	double mine8 = input[0], other8 = input[RANKS - 1], weight8 = 0, one8;
	bool single = type == NEZHA_FLOAT32;
	struct nezha_results results = { .type = type, .op = op, .ranks = RANKS, .mine = &mine8, .other = &other8,
	                                 .weight = &weight8 };
	size_t first = 99, wrong;

	if (single)
		results.mine = &mine4, results.other = &other4, results.weight = &weight4;
	for (int i = 0; i < RANKS; i++) {
		double a = input[i], b = input[RANKS - 1 - i];
		float a4 = (float)a, b4 = (float)b;

		if (i && op == NEZHA_SUM)
			mine4 += a4, other4 += b4, mine8 += a, other8 += b;
		if (i && op == NEZHA_PROD)
			mine4 *= a4, other4 *= b4, mine8 *= a, other8 *= b;
		if (i && op == NEZHA_MAX) {
			mine4 = mine4 > a4 ? mine4 : a4, other4 = other4 > b4 ? other4 : b4;
			mine8 = mine8 > a ? mine8 : a, other8 = other8 > b ? other8 : b;
		}
		nezha_compare_weight(NEZHA_FLOAT32, op, &a4, &one4, 1);
		nezha_compare_weight(NEZHA_FLOAT64, op, &a, &one8, 1);
		if (nezha_compare_fold(op) == NEZHA_PROD)
			weight4 = i ? weight4 * one4 : one4, weight8 = i ? weight8 * one8 : one8;
		else
			weight4 += one4, weight8 += one8;
	}
	mine4 += (float)fault;
	mine8 += fault;
	wrong = nezha_compare(&results, 1, &first);
	assert_true(wrong == 0 || first == 0);
	return wrong;
}

static void make_input(unsigned *seed, int spread, double out[RANKS])
{
	for (int i = 0; i < RANKS; i++)
		out[i] = (rand_r(seed) % 2 ? 1 : -1) *
		         ldexp(0.5 + rand_r(seed) / (2.0 * RAND_MAX), rand_r(seed) % (2 * spread + 1) - spread);
}

static void orders_may_differ(void **state)
{
	unsigned seed = 1;
	double input[RANKS];

	(void)state;
	for (int turn = 0; turn < 20000; turn++)
		for (int type = NEZHA_FLOAT32; type <= NEZHA_FLOAT64; type++) {
			/* up to where partial sums and products leave the type's range at either end */
			make_input(&seed, turn % 2 ? 12 : type == NEZHA_FLOAT32 ? 126 : 1020, input);
			assert_int_equal(compare_orders(type, NEZHA_SUM, input, 0), 0);
			assert_int_equal(compare_orders(type, NEZHA_PROD, input, 0), 0);
			assert_int_equal(compare_orders(type, NEZHA_MAX, input, 0), 0);
		}
}

static void errors_are_found(void **state)
{
	const double ones[RANKS] = { 1, 1, 1, 1, 1, 1, 1, 1 };

	(void)state;
	for (int type = NEZHA_FLOAT32; type <= NEZHA_FLOAT64; type++) {
		double eps = type == NEZHA_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;

		assert_int_equal(compare_orders(type, NEZHA_SUM, ones, 8 * 2 * RANKS * eps), 0);
		assert_int_equal(compare_orders(type, NEZHA_SUM, ones, 8 * 3 * RANKS * eps), 1);
		assert_int_equal(compare_orders(type, NEZHA_PROD, ones, 4 * RANKS * eps), 1);
		assert_int_equal(compare_orders(type, NEZHA_MAX, ones, 2 * eps), 1);
		for (int op = NEZHA_SUM; op <= NEZHA_MAX; op++) {
			if (op == NEZHA_MIN)
				continue;
			assert_int_equal(compare_orders(type, op, ones, NAN), 1);
			assert_int_equal(compare_orders(type, op, ones, INFINITY), 1);
		}
	}
}

/* What no order decides is not held against anybody. */
static void no_numbers(void **state)
{
	const double nan[RANKS] = { 1, NAN, 1, 1, 1, 1, 1, 1 }, inf[RANKS] = { 1, INFINITY, 1, -INFINITY, 1, 1, 1, 1 };
	const double large[RANKS] = { DBL_MAX, DBL_MAX, 1, 1, 1, 1, -DBL_MAX, -DBL_MAX };

	(void)state;
	assert_int_equal(compare_orders(NEZHA_FLOAT64, NEZHA_MAX, nan, 0), 0);
	assert_int_equal(compare_orders(NEZHA_FLOAT64, NEZHA_SUM, nan, 0), 0);
	assert_int_equal(compare_orders(NEZHA_FLOAT64, NEZHA_SUM, inf, 0), 0);
	assert_int_equal(compare_orders(NEZHA_FLOAT64, NEZHA_SUM, large, 0), 0);
}

static void integers_are_the_same(void **state)
{
	int16_t mine[1000], other[1000];
	struct nezha_results results = { .type = NEZHA_INT16, .op = NEZHA_SUM, .ranks = 4, .mine = mine, .other = other };
	size_t first = 0;
	char text[48];

	(void)state;
	for (int i = 0; i < 1000; i++)
		mine[i] = other[i] = (int16_t)(i * 77);
	assert_int_equal(nezha_compare(&results, 1000, &first), 0);
	mine[700] = -5;
	mine[999] ^= 256;
	assert_int_equal(nezha_compare(&results, 1000, &first), 2);
	assert_int_equal(first, 700);
	nezha_compare_print(NEZHA_INT16, mine, first, text, sizeof text);
	assert_string_equal(text, "-5");
	assert_int_equal(nezha_compare(&results, 700, &first), 0);
}

static void values_are_printed(void **state)
{
	const uint64_t large = UINT64_MAX;
	const double third = 1 / 3.0;
	const float half = 0.5f;
	char text[48];

	(void)state;
	nezha_compare_print(NEZHA_UINT64, &large, 0, text, sizeof text);
	assert_string_equal(text, "18446744073709551615");
	nezha_compare_print(NEZHA_INT8, &large, 3, text, sizeof text);
	assert_string_equal(text, "-1");
	nezha_compare_print(NEZHA_FLOAT64, &third, 0, text, sizeof text);
	assert_true(strtod(text, NULL) == third);
	nezha_compare_print(NEZHA_FLOAT32, &half, 0, text, sizeof text);
	assert_string_equal(text, "0.5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_may_differ),
		cmocka_unit_test(errors_are_found),
		cmocka_unit_test(no_numbers),
		cmocka_unit_test(integers_are_the_same),
		cmocka_unit_test(values_are_printed),
	};

	return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
