/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/model_bed.h"
#include "tuning/model_price.h"

static void test_first_calls(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	assert_int_equal(call(&bed, S, 20000000, 10000000), NEZHA_ALG_RING);
	assert_int_equal(call(&bed, S, 20000000, 10000000), NEZHA_ALG_NATIVE);
	for (int i = 0; i < 60; i++)
		assert_int_equal(call(&bed, S, 20000000, 10000000), NEZHA_ALG_RING);
	memset(&bed, 0, sizeof bed);
	for (int i = 0; i < 3; i++)
		call(&bed, S, 4000000, 10000000);
	for (int i = 0; i < 60; i++)
		assert_int_equal(call(&bed, S, 4000000, 10000000), NEZHA_ALG_NATIVE);
}

/* The cold first call is not held against the rails. */
static void test_cold(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	call(&bed, S, 12000000, 15000000);
	for (int i = 0; i < 3; i++)
		call(&bed, S, 12000000, 10000000);
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 40; i++)
		call(&bed, S, 12000000, 10000000);
	assert_true(bed.calls[NEZHA_ALG_RING] >= 38);
}

/* Rails of which a collective one is slower than it was guessed: what calls by a guess took is not held against them, unless it is far
 * more than the library takes. */
static void test_guesses(void **state)
{
	static const uint64_t rails[] = { 70000000, 68000000, 31000000 };
	struct bed bed = { .model.guesses = 3, .one_network = true, .busy = true };

	(void)state;
	for (int i = 0; i < 40; i++)
		call(&bed, 16 * M, 60000000, rails[bed.calls[NEZHA_ALG_RING] < 2 ? bed.calls[NEZHA_ALG_RING] : 2]);
	assert_true(bed.calls[NEZHA_ALG_RING] >= 38);
	/* The shares are known from the other class. */
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 40; i++)
		call(&bed, 64 * M, 100000000, 150000000);
	assert_true(bed.calls[NEZHA_ALG_RING] <= 3);
	bed = (struct bed){ .model.guesses = 3, .one_network = true, .busy = true };
	for (int i = 0; i < 40; i++)
		call(&bed, 16 * M, 25000000, rails[bed.calls[NEZHA_ALG_RING] < 2 ? bed.calls[NEZHA_ALG_RING] : 2]);
	assert_true(bed.calls[NEZHA_ALG_RING] <= 5);
	bed = (struct bed){ .model.guesses = 3, .one_network = true, .busy = true };
	for (int i = 0; i < 40; i++)
		call(&bed, 16 * M, 16000000, rails[0]);
	assert_int_equal(bed.calls[NEZHA_ALG_RING], 2);
}

static void test_tie(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		call(&bed, S, 10100000, 10000000);
	assert_int_equal(call(&bed, S, 10100000, 10000000), NEZHA_ALG_NATIVE);
	/* 4 % apart: no reason to change, whatever the other turns out to be */
	for (int i = 0; i < 1000; i++)
		call(&bed, S, 10400000, 10000000);
	assert_int_equal(bed.model.classes[19].best, NEZHA_ALG_NATIVE);
}

/* The library's first time was a lucky one: that is noticed at once, not when the rails are tried again. */
static void test_lucky(void **state)
{
	static const uint64_t sizes[] = { S, 16 * M };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct bed bed = { .busy = true };

		for (int k = 0; k < 12; k++)
			call(&bed, sizes[i], bed.calls[NEZHA_ALG_NATIVE] > 0 ? 19000000 : 9500000, 10000000);
		memset(bed.calls, 0, sizeof bed.calls);
		for (int k = 0; k < 40; k++)
			call(&bed, sizes[i], 19000000, 10000000);
		/* below 1 MiB it is looked at again after 16 calls */
		assert_true(bed.calls[NEZHA_ALG_RING] >= (sizes[i] < M ? 38 : 40));
	}
}

/* The library's first calls all were lucky, as in a shaper's burst: noticed after a few more, not after hundreds. */
static void test_lucky_at_first(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&bed, 16 * K, 240000, 350000);
	assert_int_equal(call(&bed, 16 * K, 650000, 350000), NEZHA_ALG_NATIVE);
	for (int i = 0; i < 30; i++)
		call(&bed, 16 * K, 650000, 350000);
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 100; i++)
		call(&bed, 16 * K, 650000, 350000);
	assert_true(bed.calls[NEZHA_ALG_RING] >= 90);
}

/* The library's only call of a large class was held up: noticed after a few more, not after hundreds. */
static void test_held_up(void **state)
{
	struct bed bed = { .one_network = true, .busy = true };

	(void)state;
	for (int i = 0; i < 3; i++)
		call(&bed, 16 * M, 150000000, 100000000);
	for (int i = 0; i < 20; i++)
		call(&bed, 16 * M, 40000000, 100000000);
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 40; i++)
		call(&bed, 16 * M, 40000000, 100000000);
	assert_true(bed.calls[NEZHA_ALG_NATIVE] >= 39);
}

/* Of two ranks one leaves the library's calls long before the other: the rails, which let both go together, are the faster way. */
static void test_uneven(void **state)
{
	static const uint64_t native[] = { 300000, 900000 }, rails[] = { 380000, 400000 };
	struct nezha_model models[2] = { 0 };
	int by_rails = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct nezha_choice choice = call_of_two(models, 16 * K, native, rails);

		by_rails += i >= 50 && choice.alg == NEZHA_ALG_RING;
	}
	assert_true(by_rails >= 40);
	assert_memory_equal(models[0].classes, models[1].classes, sizeof models[0].classes);
}

/* The library's first call opened connections. */
static void test_library_cold(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	assert_int_equal(call(&bed, 16 * K, 260000, 350000), NEZHA_ALG_RING);
	assert_int_equal(call(&bed, 16 * K, 700000, 350000), NEZHA_ALG_NATIVE);
	assert_int_equal(call(&bed, 16 * K, 260000, 350000), NEZHA_ALG_RING);
	assert_int_equal(call(&bed, 16 * K, 260000, 350000), NEZHA_ALG_NATIVE);
	for (int i = 0; i < 4; i++)
		call(&bed, 16 * K, 260000, 350000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_NATIVE);
}

/* Over 1,000 calls trying costs less than 2 %, however they compare. */
static void test_budget(void **state)
{
	static const uint64_t native[] = { 1, 5, 9, 10, 11, 15, 20, 50, 200 };

	(void)state;
	for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
		struct bed bed = { 0 };

		for (int k = 0; k < 1000; k++)
			call(&bed, S, native[i] * 1000000, 10000000);
		/* the one call that has to find out is all that may cost more */
		assert_true(bed.spent <= bed.least * 102 / 100 + 2 * 10000000 * (native[i] < 10) +
		            native[i] * 1000000 * (native[i] > 10));
	}
}

/* What changes for good is noticed: the chosen way when the next of its calls are learnt of, the other one when it is tried again. */
static void test_change(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		call(&bed, S, 20000000, 10000000);
	for (int i = 0; i < 40; i++)
		call(&bed, S, 20000000, 50000000);
	assert_int_equal(call(&bed, S, 20000000, 50000000), NEZHA_ALG_NATIVE);
	for (int i = 0; i < 4000; i++)
		call(&bed, S, 20000000, 10000000);
	assert_int_equal(bed.model.classes[19].best, NEZHA_ALG_RING);
}

/* From 1 MiB on every call over the rails is learnt of; a mix is tried, where the library's network is the rails' in vain. */
static void test_large_change(void **state)
{
	(void)state;
	for (uint64_t bytes = M; bytes <= 64 * M; bytes *= 2) {
		struct bed bed = { .one_network = true };

		for (int i = 0; i < 100; i++)
			call(&bed, bytes, 20000000, 10000000);
		for (int i = 0; i < 15; i++)
			call(&bed, bytes, 20000000, 50000000);
		assert_int_equal(bed.model.classes[nezha_price_class(bytes)].best, NEZHA_ALG_NATIVE);
	}
}

/* One call that took very long changes nothing. */
static void test_outlier(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 8; i++)
		call(&bed, S, 20000000, 10000000);
	for (int i = 0; i < 200; i++) {
		call(&bed, S, 20000000, i % 32 == 7 ? 1000000000 : 10000000);
		assert_int_equal(bed.model.classes[19].best, NEZHA_ALG_RING);
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
	struct bed bed = { .one_network = true };

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

/* A program that has gone through them twice, and stays with one: that one gets its decision, too. */
static void test_full_note(void **state)
{
	(void)state;
	for (uint64_t last = 16 * K; last <= 16 * M; last *= 2) {
		struct bed bed = { .one_network = true };

		for (int i = 0; i < 2; i++)
			for (uint64_t bytes = 16 * K; bytes <= 16 * M; bytes *= 2)
				call(&bed, bytes, bytes * 3 / 2, bytes);
		bed.calls[NEZHA_ALG_NATIVE] = 0;
		for (int i = 0; i < 100; i++)
			call(&bed, last, last * 3 / 2, last);
		assert_in_range(bed.calls[NEZHA_ALG_NATIVE], 0, 20);
	}
}

/* A rail twenty times slower has nothing to add. */
static void test_slow_rail(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int k = 0; k < 60; k++)
		call(&bed, 16 * M, 10000000, 200000000);
	assert_int_equal(bed.calls[NEZHA_ALG_MIX], bed.carriers);
	assert_true(bed.calls[NEZHA_ALG_RING] <= 2);
	/* nor in the class above, where it is not even tried alone */
	bed.calls[NEZHA_ALG_RING] = 0;
	for (int k = 0; k < 60; k++)
		call(&bed, 32 * M, 20000000, 400000000);
	assert_int_equal(bed.calls[NEZHA_ALG_RING], 0);
	assert_int_equal(bed.model.classes[25].best, NEZHA_ALG_NATIVE);
}

/* Rails whose smallest call takes longer than the library's largest cost less than 2 %, after those that find out. */
static void test_slow_start(void **state)
{
	struct bed bed = { .start = 4000000 };

	(void)state;
	for (int k = 0; k < 10; k++)
		call(&bed, M, 250000, 16000000);
	bed.spent = bed.least = 0;
	for (int k = 0; k < 3000; k++)
		call(&bed, M, 250000, 16000000);
	assert_true(bed.spent <= bed.least * 102 / 100);
}

/* Where the library was far slower in a class below, it is tried in the end. */
static void test_far_ends(void **state)
{
	struct bed bed = { .busy = true };

	(void)state;
	for (int i = 0; i < 3; i++)
		call(&bed, S, 2500000, 1000000);
	for (int i = 0; i < 600; i++)
		call(&bed, 16 * M, 5000000, 32000000);
	assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_NATIVE);
	assert_int_equal(bed.last.alg, NEZHA_ALG_NATIVE);
}

/* Rails that were far slower in a class below and are hardly so here. */
static void test_far_rails_end(void **state)
{
	struct bed bed = { .busy = true };

	(void)state;
	for (int i = 0; i < 10; i++)
		call(&bed, S, 1000000, 5000000);
	for (int i = 0; i < 3000; i++)
		call(&bed, 16 * M, 32000000, 35000000);
	assert_true(bed.carriers < 20);
	assert_true(bed.model.classes[24].cost[NEZHA_ALG_RING].count > 0);
	for (int i = 0; i < 9000; i++)
		call(&bed, 16 * M, 32000000, 16000000);
	assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_RING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_calls),
		cmocka_unit_test(test_cold),
		cmocka_unit_test(test_tie),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_lucky),
		cmocka_unit_test(test_lucky_at_first),
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_library_cold),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_change), cmocka_unit_test(test_large_change),
		cmocka_unit_test(test_outlier),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_many_classes),
		cmocka_unit_test(test_full_note),
		cmocka_unit_test(test_slow_rail),
		cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_far_ends),
		cmocka_unit_test(test_far_rails_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
