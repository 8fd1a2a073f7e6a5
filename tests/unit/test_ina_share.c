/* SPDX-License-Identifier: BSD-3-Clause
 * How many blocks an aggregator takes, in made-up clusters. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "rails/ina_share.h"
#include "tuning/status.h"

#define CALLS 200

struct cluster {
	double ina, links, all;   /* bytes per ns: of the aggregator; of the links beside it, and with its rail, as an allreduce */
};

static struct nezha_grid grid_of(uint64_t bytes, uint32_t block)
{
	struct nezha_grid grid;

	assert_int_equal(nezha_grid_make(bytes, block, &grid), NEZHA_OK);
	return grid;
}

/* One call; returns what it takes. */
static double call(struct nezha_ina_share *share, const struct nezha_grid *grid, const struct cluster *cluster,
                   uint32_t *shared)
{
	uint32_t blocks = nezha_ina_share_choose(share, grid);
	double bytes = blocks < grid->blocks ? (double)nezha_grid_offset(grid, blocks) : (double)grid->bytes;
	double ina = bytes / cluster->ina, links = ((double)grid->bytes - bytes) / (blocks ? cluster->links : cluster->all);

	assert_in_range(blocks, 0, grid->blocks);
	nezha_ina_share_count(share, grid, blocks);
	nezha_ina_share_learn(share, grid, blocks, (uint64_t)ina, links > 0 ? (uint64_t)links : 0);
	*shared = blocks;
	return ina > links ? ina : links;
}

/* Within the first calls the split is right, and stays: 1 block and 3 % around the bound. */
static void converges(int ranks, int rails, struct cluster cluster, uint64_t bytes)
{
	struct nezha_grid grid = grid_of(bytes, 65536);
	struct nezha_ina_share share;
	double bound = (double)bytes / (cluster.ina + cluster.links);
	uint32_t shared;

	nezha_ina_share_init(&share, ranks, rails);
	for (int i = 0; i < CALLS; i++) {
		double took = call(&share, &grid, &cluster, &shared);

		if (i >= 2 && shared)
			assert_true(took < 1.03 * bound + 65536 / cluster.ina + 65536 / cluster.links);
		/* without it is tried once, and again after 64 calls and 128 more */
		if (i != 4 && i < 60)
			assert_true(shared > 0);
	}
}

static void test_shares(void **state)
{
	(void)state;
	converges(4, 1, (struct cluster){ .06, .04, .08 }, 16 << 20);
	converges(4, 1, (struct cluster){ .06, .16, .2 }, 16 << 20);
	converges(8, 2, (struct cluster){ .06, .01, .04 }, 64 << 20);
	converges(4, 1, (struct cluster){ .6, .02, .1 }, 16 << 20);
}

/* Alone on its rail it takes all; what is not worth it is left alone, but for a try now and then. */
static void test_alone(void **state)
{
	struct nezha_grid grid = grid_of(4 << 20, 65536);
	struct cluster good = { .06, .04, .04 }, bad = { .02, .04, .04 };
	struct nezha_ina_share share;
	uint32_t shared, without = 0, with = 0;

	(void)state;
	nezha_ina_share_init(&share, 4, 0);
	for (int i = 0; i < CALLS; i++) {
		call(&share, &grid, &good, &shared);
		assert_true(shared == 0 || shared == grid.blocks);
		without += !shared;
	}
	assert_in_range(without, 1, 4);
	nezha_ina_share_init(&share, 4, 0);
	for (int i = 0; i < CALLS; i++) {
		call(&share, &grid, &bad, &shared);
		with += shared > 0;
	}
	assert_in_range(with, 4, 8);
}

/* A call that failed tells nothing; neither does one of which nothing is known. */
static void test_failures(void **state)
{
	struct nezha_grid grid = grid_of(1 << 20, 65536);
	struct nezha_ina_share share;
	uint32_t before;

	(void)state;
	nezha_ina_share_init(&share, 4, 1);
	before = nezha_ina_share_choose(&share, &grid);
	assert_in_range(before, 1, 15);
	nezha_ina_share_learn(&share, &grid, before, 0, 1000);
	nezha_ina_share_learn(&share, &grid, before, 1000, 0);
	nezha_ina_share_learn(&share, &grid, before, 0, 0);
	assert_int_equal(nezha_ina_share_choose(&share, &grid), before);
}

/* Any size has a share, also the smallest; other sizes begin where the nearest one is. */
static void test_sizes(void **state)
{
	struct nezha_ina_share share;
	struct nezha_grid grid = grid_of(16 << 20, 65536);
	uint32_t blocks;

	(void)state;
	nezha_ina_share_init(&share, 4, 1);
	nezha_ina_share_learn(&share, &grid, 128, 1000000, 4000000);
	grid = grid_of(8 << 20, 65536);
	blocks = nezha_ina_share_choose(&share, &grid);
	assert_in_range(blocks, 100, 104);       /* four fifths */
	for (uint64_t bytes = 1; bytes < 1u << 20; bytes = bytes * 3 + 1) {
		grid = grid_of(bytes, 4096);
		assert_in_range(nezha_ina_share_choose(&share, &grid), 1, grid.blocks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests_name("ina_share", tests, NULL, NULL);
}
