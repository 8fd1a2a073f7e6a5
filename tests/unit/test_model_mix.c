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
			assert_true(bed.last.native <= best && bed.last.native + BLOCK > best - BLOCK);
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

/* The library's pieces are tried first, and stay where they are no slower than its blocking call alone. */
static void test_pieces(void **state)
{
	static const unsigned percent[] = { 40, 60, 100 };

	(void)state;
	for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
		struct bed bed = { .pieces = percent[i] };

		for (int k = 0; k < 8; k++)
			call(&bed, 16 * M, 40000000, 80000000);
		for (int k = 0; k < 60; k++) {
			uint64_t share = 16 * M * 200 / (200 + percent[i]);

			assert_int_equal(call(&bed, 16 * M, 40000000, 80000000), NEZHA_ALG_MIX);
			assert_true(bed.last.pieces);
			assert_true(bed.last.native <= share && bed.last.native + 2 * BLOCK > share);
		}
	}
}

/* Where they are slower, its blocking call is what a mix has, and what decides whether there is one. */
static void test_slow_pieces(void **state)
{
	static const unsigned percent[] = { 130, 200, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
		struct bed bed = { .pieces = percent[i] };

		for (int k = 0; k < 8; k++)
			call(&bed, 16 * M, 40000000, 80000000);
		for (int k = 0; k < 60; k++) {
			assert_int_equal(call(&bed, 16 * M, 40000000, 80000000), NEZHA_ALG_MIX);
			assert_false(bed.last.pieces);
			assert_true(bed.last.native > 10 * M && bed.last.native < 11 * M);
		}
	}
}

/* The first pieces were held up, which is not held against them for ever. */
static void test_pieces_held_up(void **state)
{
	struct bed bed = { .pieces = 300 };

	(void)state;
	while (!bed.last.pieces)
		call(&bed, 16 * M, 40000000, 80000000);
	bed.pieces = 60;
	for (int k = 0; k < 60; k++)
		call(&bed, 16 * M, 40000000, 80000000);
	assert_int_equal(bed.last.alg, NEZHA_ALG_MIX);
	assert_true(bed.last.pieces);
}

/* A rail that would not be worth it beside the blocking call: that the pieces are faster is found out all the same. */
static void test_pieces_beside_slow_rail(void **state)
{
	struct bed bed = { .pieces = 60 };

	(void)state;
	for (int k = 0; k < 200; k++)
		call(&bed, 16 * M, 40000000, 500000000);
	assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_MIX);
	assert_true(bed.last.pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix),
		cmocka_unit_test(test_one_network),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_mix_follows),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_slow_pieces),
		cmocka_unit_test(test_pieces_held_up),
		cmocka_unit_test(test_pieces_beside_slow_rail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
