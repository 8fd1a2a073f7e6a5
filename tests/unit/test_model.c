/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <string.h>

#include "tuning/model.h"

#define K UINT64_C(1024)
#define M (K * K)

/* A communicator of one rank, for which folding a note changes nothing. */
struct bed {
	struct nezha_model model;
	uint64_t spent, least;            /* ns, and what the cheaper way would have taken each time */
	int calls[NEZHA_ALG_COUNT];
};

static enum nezha_algorithm call(struct bed *bed, uint64_t bytes, uint64_t native, uint64_t rails)
{
	enum nezha_algorithm alg = nezha_model_choose(&bed->model, bytes);
	uint64_t note[NEZHA_NOTE_VALUES], ns = alg == NEZHA_ALG_RING ? rails : native;

	if (alg == NEZHA_ALG_RING && nezha_model_note(&bed->model, note))
		nezha_model_learn(&bed->model, note);
	nezha_model_count(&bed->model, bytes, alg, ns);
	bed->spent += ns;
	bed->least += native < rails ? native : rails;
	bed->calls[alg]++;
	return alg;
}

static void test_first_calls(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	assert_int_equal(call(&bed, M, 20000000, 10000000), NEZHA_ALG_RING);
	assert_int_equal(call(&bed, M, 20000000, 10000000), NEZHA_ALG_NATIVE);
	for (int i = 0; i < 60; i++)
		assert_int_equal(call(&bed, M, 20000000, 10000000), NEZHA_ALG_RING);
	memset(&bed, 0, sizeof bed);
	for (int i = 0; i < 3; i++)
		call(&bed, M, 4000000, 10000000);
	for (int i = 0; i < 60; i++)
		assert_int_equal(call(&bed, M, 4000000, 10000000), NEZHA_ALG_NATIVE);
}

/* The cold first call is not held against the rails. */
static void test_cold(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	call(&bed, M, 12000000, 15000000);
	for (int i = 0; i < 3; i++)
		call(&bed, M, 12000000, 10000000);
	for (int i = 0; i < 40; i++)
		assert_int_equal(call(&bed, M, 12000000, 10000000), NEZHA_ALG_RING);
}

static void test_tie(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		call(&bed, M, 10100000, 10000000);
	assert_int_equal(call(&bed, M, 10100000, 10000000), NEZHA_ALG_NATIVE);
	/* 4 % apart: no reason to change, whatever the other turns out to be */
	for (int i = 0; i < 1000; i++)
		call(&bed, M, 10400000, 10000000);
	assert_int_equal(bed.model.classes[20].best, NEZHA_ALG_NATIVE);
}

/* Over 1,000 calls trying costs less than 2 %, however they compare. */
static void test_budget(void **state)
{
	static const uint64_t native[] = { 1, 5, 9, 10, 11, 15, 20, 50, 200 };

	(void)state;
	for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
		struct bed bed = { 0 };

		for (int k = 0; k < 1000; k++)
			call(&bed, M, native[i] * 1000000, 10000000);
		/* the one call that has to find out is all that may cost more */
		assert_true(bed.spent <= bed.least * 102 / 100 + 2 * 10000000 * (native[i] < 10) +
		            native[i] * 1000000 * (native[i] > 10));
	}
}

/* What changes for good is noticed: the chosen way at once, the other one when it is tried again. */
static void test_change(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		call(&bed, M, 20000000, 10000000);
	for (int i = 0; i < 64; i++)
		call(&bed, M, 20000000, 50000000);
	assert_int_equal(call(&bed, M, 20000000, 50000000), NEZHA_ALG_NATIVE);
	for (int i = 0; i < 4000; i++)
		call(&bed, M, 20000000, 10000000);
	assert_int_equal(bed.model.classes[20].best, NEZHA_ALG_RING);
}

/* One call that took very long changes nothing. */
static void test_outlier(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 8; i++)
		call(&bed, M, 20000000, 10000000);
	for (int i = 0; i < 200; i++) {
		call(&bed, M, 20000000, i % 32 == 7 ? 1000000000 : 10000000);
		assert_int_equal(bed.model.classes[20].best, NEZHA_ALG_RING);
	}
}

/* Where a class below was far in favour of the rails, the library is not tried. */
static void test_far(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 5; i++)
		call(&bed, M, 50000000, 10000000);
	for (int i = 0; i < 50; i++)
		assert_int_equal(call(&bed, 32 * M, 1600000000, 320000000), NEZHA_ALG_RING);
	assert_int_equal(bed.calls[NEZHA_ALG_NATIVE], 1);
	/* a small one says nothing of large ones */
	memset(&bed, 0, sizeof bed);
	for (int i = 0; i < 5; i++)
		call(&bed, 64 * K, 5000000, 1000000);
	call(&bed, 4 * M, 5000000, 1000000);
	assert_int_equal(call(&bed, 4 * M, 5000000, 1000000), NEZHA_ALG_NATIVE);
}

/* More classes than a note has room for, and library calls that no note has yet reported. */
static void test_many_classes(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 400; i++)
		for (uint64_t bytes = 64 * K; bytes <= 512 * M; bytes *= 2)
			call(&bed, bytes, bytes * 3 / 2, bytes);
	for (int k = 16; k <= 29; k++)
		assert_int_equal(bed.model.classes[k].best, NEZHA_ALG_RING);
	for (int i = 0; i < 400; i++)
		call(&bed, UINT64_MAX, 1, 1);
	assert_true(bed.model.classes[NEZHA_MODEL_CLASSES - 1].calls == 400);
}

static void test_expect(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	assert_int_equal(nezha_model_expect(&bed.model, M, NEZHA_ALG_RING), 0);
	for (int i = 0; i < 10; i++)
		call(&bed, M, 20 * M, 10 * M);
	assert_int_equal(nezha_model_expect(&bed.model, M, NEZHA_ALG_RING), 10 * M);
	assert_int_equal(nezha_model_expect(&bed.model, M + M / 2, NEZHA_ALG_NATIVE), 30 * M);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_calls), cmocka_unit_test(test_cold),   cmocka_unit_test(test_tie),
		cmocka_unit_test(test_budget),      cmocka_unit_test(test_change), cmocka_unit_test(test_outlier),
		cmocka_unit_test(test_far),         cmocka_unit_test(test_many_classes),
		cmocka_unit_test(test_expect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
