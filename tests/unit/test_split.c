/* SPDX-License-Identifier: BSD-3-Clause
 * How many blocks each of a team's collective rails takes, in made-up clusters. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "rails/split.h"
#include "tuning/status.h"

#define CALLS 200

/* Rails in bytes per ns: rail r gives the links `tcp[r]`, as an allreduce; member i is an aggregator on rail i. */
struct cluster {
	int ranks, rails, members;
	double tcp[NEZHA_COLLECTIVES_MAX], member[NEZHA_COLLECTIVES_MAX];
};

static struct nezha_grid grid_of(uint64_t bytes, uint32_t block)
{
	struct nezha_grid grid;

	assert_int_equal(nezha_grid_make(bytes, block, &grid), NEZHA_OK);
	return grid;
}

static void init(struct nezha_split *split, const struct cluster *cluster)
{
	uint32_t occupied[NEZHA_COLLECTIVES_MAX];

	for (int i = 0; i < cluster->members; i++)
		occupied[i] = i < cluster->rails ? 1u << i : 0;
	nezha_split_init(split, cluster->ranks, (1u << cluster->rails) - 1, occupied, cluster->members);
}

static uint32_t everyone(const struct cluster *cluster)
{
	return (1u << cluster->members) - 1;
}

/* The rate of the links beside the members in `set`: all rails' if there is none to themselves. */
static double links_rate(const struct cluster *cluster, uint32_t set)
{
	double rate = 0, all = 0;

	for (int r = 0; r < cluster->rails; r++) {
		all += cluster->tcp[r];
		rate += set >> r & 1 && r < cluster->members ? 0 : cluster->tcp[r];
	}
	return rate > 0 ? rate : all;
}

static uint32_t total(const struct nezha_parts *parts)
{
	uint32_t sum = 0;

	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++)
		sum += parts->blocks[i];
	return sum;
}

static uint32_t set_of(const struct nezha_parts *parts)
{
	uint32_t set = 0;

	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++)
		set |= (parts->blocks[i] ? 1u : 0u) << i;
	return set;
}

/* One call; returns what it takes, in ns. */
static double call(struct nezha_split *split, const struct nezha_grid *grid, const struct cluster *cluster, uint32_t present,
                   struct nezha_parts *parts)
{
	uint64_t took[NEZHA_COLLECTIVES_MAX] = { 0 };
	double links, most = 0;
	uint32_t given;

	nezha_split_choose(split, grid, present, parts);
	given = total(parts);
	assert_in_range(given, 0, grid->blocks);
	assert_false(set_of(parts) & ~present);
	links = (grid->blocks - given) * (double)grid->block / links_rate(cluster, set_of(parts));
	for (int i = 0; i < cluster->members; i++) {
		double ns = parts->blocks[i] * (double)grid->block / cluster->member[i];

		took[i] = (uint64_t)ns;
		most = ns > most ? ns : most;
	}
	nezha_split_count(split, grid, parts);
	nezha_split_learn(split, grid, parts, took, (uint64_t)links);
	return links > most ? links : most;
}

/* Within the first calls the split of all is right, and stays: three blocks around the bound.  `others`: how many of the
 * first 60 calls go otherwise, to find out. */
static void converges(struct cluster cluster, uint64_t bytes, int others)
{
	struct nezha_grid grid = grid_of(bytes, 65536);
	struct nezha_split split;
	struct nezha_parts parts;
	double rate, slowest = 1e9;
	int without = 0;

	init(&split, &cluster);
	rate = nezha_split_free_rails(&split) ? links_rate(&cluster, everyone(&cluster)) : 0;
	slowest = rate > 0 ? rate : slowest;
	for (int i = 0; i < cluster.members; i++) {
		rate += cluster.member[i];
		slowest = cluster.member[i] < slowest ? cluster.member[i] : slowest;
	}
	for (int i = 0; i < CALLS; i++) {
		double ns = call(&split, &grid, &cluster, everyone(&cluster), &parts);

		if (i >= 2 && set_of(&parts) == everyone(&cluster))
			assert_true(ns < 1.03 * (double)bytes / rate + 2 * 65536 / slowest);
		else if (i >= 2 && i < 60)
			without++;
	}
	assert_int_equal(without, others);
}

static void test_shares(void **state)
{
	(void)state;
	converges((struct cluster){ 4, 2, 1, { .04, .04 }, { .06 } }, 16 << 20, 1);
	converges((struct cluster){ 4, 2, 1, { .04, .16 }, { .06 } }, 16 << 20, 1);
	converges((struct cluster){ 8, 3, 1, { .03, .005, .005 }, { .06 } }, 64 << 20, 1);
	converges((struct cluster){ 4, 2, 1, { .08, .02 }, { .6 } }, 16 << 20, 1);
}

/* Several: with a rail for the links, without one, unlike ones. */
static void test_several(void **state)
{
	(void)state;
	converges((struct cluster){ 4, 2, 2, { .04, .04 }, { .06, .06 } }, 16 << 20, 1);
	/* where rails are unlike, the links alone on a slow one seem worth a try */
	converges((struct cluster){ 4, 2, 2, { .04, .01 }, { .06, .015 } }, 16 << 20, 2);
	converges((struct cluster){ 4, 3, 2, { .04, .04, .04 }, { .06, .06 } }, 64 << 20, 1);
	converges((struct cluster){ 8, 4, 4, { .01, .02, .03, .04 }, { .018, .035, .05, .07 } }, 64 << 20, 2);
}

/* Alone on its rail it takes all; what is not worth it is left alone, but for a try now and then. */
static void test_alone(void **state)
{
	struct cluster good = { 4, 1, 1, { .04 }, { .06 } }, bad = { 4, 1, 1, { .04 }, { .02 } };
	struct nezha_grid grid = grid_of(4 << 20, 65536);
	struct nezha_split split;
	struct nezha_parts parts;
	uint32_t without = 0, with = 0;

	(void)state;
	init(&split, &good);
	for (int i = 0; i < CALLS; i++) {
		call(&split, &grid, &good, 1, &parts);
		assert_true(total(&parts) == 0 || total(&parts) == grid.blocks);
		without += !total(&parts);
	}
	assert_in_range(without, 1, 4);
	init(&split, &bad);
	for (int i = 0; i < CALLS; i++) {
		call(&split, &grid, &bad, 1, &parts);
		with += total(&parts) > 0;
	}
	assert_in_range(with, 4, 8);
}

/* Of two the one that is slower than the links would be on its rail is left out, whichever it is; both, if both are. */
static void test_slow_one(void **state)
{
	struct nezha_grid grid = grid_of(16 << 20, 65536);

	(void)state;
	for (int slow = 0; slow < 3; slow++) {
		struct cluster cluster = { 4, 2, 2, { .04, .04 }, { slow == 1 ? .06 : .01, slow == 0 ? .06 : .01 } };
		uint32_t right = slow == 0 ? 2 : slow == 1 ? 1 : 0, others = 0;
		struct nezha_split split;
		struct nezha_parts parts;

		init(&split, &cluster);
		for (int i = 0; i < CALLS; i++) {
			call(&split, &grid, &cluster, 3, &parts);
			others += i >= 20 && set_of(&parts) != right;
		}
		assert_in_range(others, 0, 4);
	}
}

/* One that goes leaves its blocks to the others; when it is back it has some again. */
static void test_presence(void **state)
{
	struct cluster cluster = { 4, 2, 2, { .04, .04 }, { .06, .06 } };
	struct nezha_grid grid = grid_of(16 << 20, 65536);
	struct nezha_split split;
	struct nezha_parts parts;

	(void)state;
	init(&split, &cluster);
	for (int i = 0; i < 20; i++)
		call(&split, &grid, &cluster, 3, &parts);
	assert_int_equal(set_of(&parts), 3);
	for (int i = 0; i < 4; i++) {
		call(&split, &grid, &cluster, 2, &parts);
		assert_int_equal(set_of(&parts), 2);
	}
	assert_in_range(parts.blocks[1], 148, 160);      /* three fifths of 256 */
	call(&split, &grid, &cluster, 0, &parts);
	assert_int_equal(total(&parts), 0);
	call(&split, &grid, &cluster, 3, &parts);
	assert_int_equal(set_of(&parts), 3);
}

/* One that was left out and comes back is measured anew at once: it may be as fast as it should be now, or not. */
static void test_renewed(void **state)
{
	struct nezha_grid grid = grid_of(16 << 20, 65536);

	(void)state;
	for (int faster = 0; faster < 2; faster++) {
		struct cluster cluster = { 4, 2, 2, { .04, .04 }, { .03, .06 } };
		struct nezha_split split;
		struct nezha_parts parts;
		int with = 0;

		init(&split, &cluster);
		for (int i = 0; i < CALLS; i++)
			call(&split, &grid, &cluster, 3, &parts);
		assert_int_equal(set_of(&parts), 2);
		cluster.member[0] = faster ? .06 : .03;
		nezha_split_renew(&split, 0);
		for (int i = 0; i < 40; i++) {
			call(&split, &grid, &cluster, 3, &parts);
			assert_true(i >= 4 || set_of(&parts) == 3);
			with += set_of(&parts) == 3;
		}
		assert_in_range(with, faster ? 36 : 4, faster ? 40 : 8);
	}
}

/* A call that failed tells nothing; neither does one of which nothing is known. */
static void test_failures(void **state)
{
	struct cluster cluster = { 4, 2, 1, { .04, .04 }, { .06 } };
	struct nezha_grid grid = grid_of(1 << 20, 65536);
	struct nezha_parts before, after;
	struct nezha_split split;

	(void)state;
	init(&split, &cluster);
	nezha_split_choose(&split, &grid, 1, &before);
	assert_in_range(before.blocks[0], 1, 15);
	nezha_split_learn(&split, &grid, &before, (uint64_t[4]){ 0 }, 1000);
	nezha_split_learn(&split, &grid, &before, (uint64_t[4]){ 1000 }, 0);
	nezha_split_learn(&split, &grid, &before, (uint64_t[4]){ 0 }, 0);
	nezha_split_choose(&split, &grid, 1, &after);
	assert_int_equal(before.blocks[0], after.blocks[0]);
}

/* Any size has a share, also the smallest; other sizes begin where the nearest one is. */
static void test_sizes(void **state)
{
	struct cluster cluster = { 4, 2, 2, { .04, .04 }, { .06, .06 } };
	struct nezha_grid grid = grid_of(16 << 20, 65536);
	struct nezha_split split;
	struct nezha_parts parts = { { 128 } };

	(void)state;
	nezha_split_init(&split, 4, 3, (uint32_t[]){ 1 }, 1);
	nezha_split_learn(&split, &grid, &parts, (uint64_t[4]){ 1000000 }, 4000000);
	grid = grid_of(8 << 20, 65536);
	nezha_split_choose(&split, &grid, 1, &parts);
	assert_in_range(parts.blocks[0], 100, 104);       /* four fifths */
	for (int members = 1; members <= 2; members++) {
		cluster.members = members;
		init(&split, &cluster);
		for (uint64_t bytes = 1; bytes < 1u << 20; bytes = bytes * 3 + 1) {
			grid = grid_of(bytes, 4096);
			nezha_split_choose(&split, &grid, everyone(&cluster), &parts);
			assert_in_range(total(&parts), 1, grid.blocks);
			assert_int_equal(set_of(&parts), grid.blocks == 1 ? 1 : everyone(&cluster));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_slow_one),
		cmocka_unit_test(test_presence),
		cmocka_unit_test(test_renewed),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
