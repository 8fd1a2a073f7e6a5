/* SPDX-License-Identifier: BSD-3-Clause
 * The library and the rails at once: when, with which shares, and which way the library does its own. */
#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/model_bed.h"

/* The library has a network of its own: both end together, each with what it can do meanwhile. */
static void test_mix(void **state)
{
	static const uint64_t ratio[] = { 1, 2, 4, 10 };

	(void)state;
	for (size_t i = 0; i < sizeof ratio / sizeof ratio[0]; i++) {
		struct bed bed = { 0 };
		uint64_t native = 10000000, rails = native * ratio[i];
		uint64_t best = 16 * M * ratio[i] / (1 + ratio[i]);

		for (int k = 0; k < 8; k++)
			call(&bed, 16 * M, native, rails);
		for (int k = 0; k < 60; k++) {
			assert_int_equal(call(&bed, 16 * M, native, rails), NEZHA_ALG_MIX);
			assert_int_equal(bed.last.native % BLOCK, 0);
			assert_true(bed.last.native < best + BLOCK && bed.last.native + BLOCK > best);
		}
	}
}

/* They use the same network: that is found out, and left alone. */
static void test_one_network(void **state)
{
	static const uint64_t native[] = { 5, 9, 11, 15, 25 };

	(void)state;
	for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
		struct bed bed = { .one_network = true };

		for (int k = 0; k < 1000; k++)
			call(&bed, 16 * M, native[i] * 1000000, 10000000);
		assert_true(bed.spent <= bed.least * 102 / 100);
		assert_int_equal(bed.model.classes[24].best, native[i] < 10 ? NEZHA_ALG_NATIVE : NEZHA_ALG_RING);
	}
}

/* Where it can be seen that they do, it is not even tried. */
static void test_busy(void **state)
{
	struct bed bed = { .one_network = true, .busy = true };

	(void)state;
	for (int k = 0; k < 200; k++)
		call(&bed, 16 * M, 15000000, 10000000);
	assert_int_equal(bed.calls[NEZHA_ALG_MIX], 0);
}

/* The shares follow when one of the two becomes slower or faster. */
static void test_mix_follows(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int k = 0; k < 40; k++)
		call(&bed, 16 * M, 20000000, 20000000);
	for (int k = 0; k < 5; k++)
		call(&bed, 16 * M, 20000000, 60000000);
	assert_int_equal(call(&bed, 16 * M, 20000000, 60000000), NEZHA_ALG_MIX);
	assert_true(bed.last.native >= 11 * M && bed.last.native <= 13 * M);
	for (int k = 0; k < 5; k++)
		call(&bed, 16 * M, 20000000, 20000000);
	assert_int_equal(call(&bed, 16 * M, 20000000, 20000000), NEZHA_ALG_MIX);
	assert_true(bed.last.native >= 7 * M && bed.last.native <= 9 * M);
}

/* A mix has a part for each of the two, whatever the sizes. */
static void test_shares(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (uint64_t bytes = M; bytes < 4 * M; bytes += 12345) {
		call(&bed, bytes, bytes, 2 * bytes);
		if (bed.last.alg == NEZHA_ALG_MIX)
			assert_true(bed.last.native >= BLOCK && bed.last.native < bytes && bed.last.native % BLOCK == 0);
	}
	assert_true(bed.calls[NEZHA_ALG_MIX] > 100);
	for (uint32_t block = 4096; block <= M; block *= 2) {
		struct nezha_choice choice = nezha_model_choose(&bed.model, M + 4, block);

		assert_true(choice.alg != NEZHA_ALG_MIX || (choice.native && choice.native < M + 4));
	}
}

/* Mixes beside a rail of half the blocking call's rate, pieces taking `percent` of its time: which way they go, with the share that fits. */
static void check_way(unsigned percent, bool nonblocking)
{
	struct bed bed = { .nonblocking = percent };
	uint64_t share = 16 * M * 200 / (200 + (nonblocking ? percent : 100));

	for (int k = 0; k < 8; k++)
		call(&bed, 16 * M, 40000000, 80000000);
	for (int k = 0; k < 60; k++) {
		assert_int_equal(call(&bed, 16 * M, 40000000, 80000000), NEZHA_ALG_MIX);
		assert_true(bed.last.nonblocking == nonblocking);
		assert_true(bed.last.native < share + BLOCK && bed.last.native + BLOCK > share);
	}
}

/* The library's nonblocking pieces are tried first, and stay where they are no slower than its blocking call alone; else that is what a
 * mix has, and what decides whether there is one. */
static void test_nonblocking(void **state)
{
	(void)state;
	check_way(40, true);
	check_way(60, true);
	check_way(100, true);
	check_way(130, false);
	check_way(200, false);
	check_way(1000, false);
}

/* A call of 16 MiB and one of the rails in a smaller class: its note tells of the mix before the next one is chosen. */
static void call_told(struct bed *bed, uint64_t native, uint64_t rails)
{
	call(bed, 16 * M, native, rails);
	bed->held_up = 0;
	if (call(bed, S, 1500000, 1000000) != NEZHA_ALG_RING)
		call(bed, S, 1500000, 1000000);
}

/* The only one of either way was held up, which is not held against it for ever; nor is the mix given up for it. */
static void test_held_up_once(void **state)
{
	static const unsigned percent[] = { 60, 200 };

	(void)state;
	for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++)
		for (int slow_mix = 1; slow_mix <= 3; slow_mix++) {
			struct bed bed = { .nonblocking = percent[i] };

			for (int k = 0; k < 60; k++) {
				bed.held_up = bed.calls[NEZHA_ALG_MIX] + 1 == slow_mix ? 10 : 0;
				call_told(&bed, 40000000, 40000000);
			}
			assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_MIX);
			assert_true(nezha_model_choose(&bed.model, 16 * M, BLOCK).nonblocking == (percent[i] < 100));
		}
}

/* The way that mixes went was held up twice, and the other one took its place: that ends when ways are tried again. */
static void test_held_up_twice(void **state)
{
	struct bed bed = { .nonblocking = 50 };
	int blocking = 0;

	(void)state;
	for (int k = 0; k < 20; k++)
		call(&bed, 16 * M, 40000000, 160000000);
	assert_true(bed.last.nonblocking);
	bed.nonblocking = 150;
	for (int k = 0; k < 3; k++)
		call(&bed, 16 * M, 40000000, 160000000);
	bed.nonblocking = 50;
	for (int k = 0; k < 1000; k++) {
		call(&bed, 16 * M, 40000000, 160000000);
		blocking += bed.last.alg == NEZHA_ALG_MIX && !bed.last.nonblocking;
	}
	assert_true(bed.last.nonblocking);
	assert_true(blocking > 0 && blocking < 300);
}

/* Looking at the other way again costs less than 2 %. */
static void test_other_way_is_cheap(void **state)
{
	static const unsigned percent[] = { 30, 80, 100, 130, 200, 350, 500, 2000 };
	static const uint64_t rails[] = { 40000000, 80000000, 200000000, 400000000 };

	(void)state;
	for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++)
		for (size_t r = 0; r < sizeof rails / sizeof rails[0]; r++) {
			struct bed bed = { .nonblocking = percent[i] };
			uint64_t one;

			for (int k = 0; k < 30; k++)
				call(&bed, 16 * M, 40000000, rails[r]);
			one = bed.spent;
			call(&bed, 16 * M, 40000000, rails[r]);
			one = bed.spent - one;
			bed.spent = 0;
			for (int k = 0; k < 1000; k++)
				call(&bed, 16 * M, 40000000, rails[r]);
			assert_true(bed.spent <= 1020 * one);
		}
}

/* A rail that hardly adds to the blocking call: beside it is found out that the pieces are faster. */
static void test_nonblocking_beside_slow_rail(void **state)
{
	struct bed bed = { .nonblocking = 60 };

	(void)state;
	for (int k = 0; k < 200; k++)
		call(&bed, 16 * M, 40000000, 500000000);
	assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_MIX);
	assert_true(bed.last.nonblocking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix),
		cmocka_unit_test(test_one_network),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_mix_follows),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_nonblocking),
		cmocka_unit_test(test_held_up_once),
		cmocka_unit_test(test_held_up_twice),
		cmocka_unit_test(test_other_way_is_cheap),
		cmocka_unit_test(test_nonblocking_beside_slow_rail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
