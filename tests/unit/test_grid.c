/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "tuning/bytes.h"
#include "tuning/grid.h"
#include "tuning/status.h"

#define K 1024u
#define M (1024u * K)

static void cuts_at_block_boundaries(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t block, blocks, last;
	} cases[] = {
		{ 1, 4 * K, 1, 1 },
		{ 4 * K - 1, 4 * K, 1, 4 * K - 1 },
		{ 4 * K, 4 * K, 1, 4 * K },
		{ 4 * K + 1, 4 * K, 2, 1 },
		{ 64 * M, 64 * K, 1024, 64 * K },
		{ 64 * M + 8, 64 * K, 1025, 8 },
		{ 100000, 12 * K, 9, 100000 - 8 * 12 * K },
		{ (uint64_t)3 * 1024 * M + 4, 4 * M, 769, 4 },
		{ (uint64_t)INT32_MAX * 4 * K, 4 * K, INT32_MAX, 4 * K },
		{ (uint64_t)INT32_MAX * 4 * M, 4 * M, INT32_MAX, 4 * M },
	};
	struct nezha_grid grid;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(nezha_grid_make(cases[i].bytes, cases[i].block, &grid), NEZHA_OK);
		assert_int_equal(grid.bytes, cases[i].bytes);
		assert_int_equal(grid.block, cases[i].block);
		assert_int_equal(grid.blocks, cases[i].blocks);
		assert_int_equal(nezha_grid_length(&grid, grid.blocks - 1), cases[i].last);
		if (grid.blocks > 1)
			assert_int_equal(nezha_grid_length(&grid, 0), cases[i].block);
	}
}

static void blocks_cover_the_vector_once(void **state)
{
	(void)state;
	for (uint64_t bytes = 1; bytes < 200000; bytes += 997) {
		for (uint32_t block = 4 * K; block <= 32 * K; block += 4 * K) {
			struct nezha_grid grid;
			uint64_t at = 0;

			assert_int_equal(nezha_grid_make(bytes, block, &grid), NEZHA_OK);
			for (uint32_t b = 0; b < grid.blocks; b++) {
				assert_int_equal(nezha_grid_offset(&grid, b), at);
				assert_in_range(nezha_grid_length(&grid, b), 1, block);
				at += nezha_grid_length(&grid, b);
			}
			assert_int_equal(at, bytes);
		}
	}
}

static void refuses_what_is_not_a_grid(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t block;
	} cases[] = {
		{ 0, 4 * K }, { 1, 0 }, { 1, 2 * K }, { 1, 4 * K - 1 }, { 1, 4 * K + 1 },
		{ 1, 4 * M + 4 * K }, { 1, UINT32_MAX }, { (uint64_t)INT32_MAX * 4 * K + 1, 4 * K },
		{ UINT64_MAX, 4 * M },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_grid grid = { 7, 7, 7 };

		assert_int_equal(nezha_grid_make(cases[i].bytes, cases[i].block, &grid), NEZHA_ERR_INVALID);
		assert_int_equal(grid.bytes, 7);
		assert_int_equal(grid.blocks, 7);
	}
}

static void reads_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0 }, { "1", 1 }, { "007", 7 }, { "4096", 4096 }, { "64K", 64 * K }, { "64k", 64 * K },
		{ "1M", M }, { "3g", (uint64_t)3 * K * M }, { "18446744073709551615", UINT64_MAX },
		{ "17179869183G", UINT64_MAX - (K * M - 1) },
	};
	static const char *const wrong[] = {
		"", "K", "-1", "+1", " 1", "1 ", "1.5M", "12abc", "1KB", "1T", "0x10", "inf", "64KiB", "1\v",
		"18446744073709551616", "17179869184G", "99999999999999999999999",
	};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(nezha_bytes_parse(cases[i].text, &bytes), NEZHA_OK);
		assert_int_equal(bytes, cases[i].bytes);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		bytes = 42;
		assert_int_equal(nezha_bytes_parse(wrong[i], &bytes), NEZHA_ERR_INVALID);
		assert_int_equal(bytes, 42);
	}
}

static void prints_bytes_as_it_reads_them(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 1023, "1023" },
		{ 1024, "1K" },
		{ 65536, "64K" },
		{ 65537, "65537" },
		{ M, "1M" },
		{ 3 * M / 2, "1536K" },
		{ (uint64_t)4096 * K * M, "4096G" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	char text[24];
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		nezha_bytes_print(cases[i].bytes, text, sizeof text);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(nezha_bytes_parse(text, &bytes), NEZHA_OK);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_at_block_boundaries),
		cmocka_unit_test(blocks_cover_the_vector_once),
		cmocka_unit_test(refuses_what_is_not_a_grid),
		cmocka_unit_test(reads_bytes),
		cmocka_unit_test(prints_bytes_as_it_reads_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
