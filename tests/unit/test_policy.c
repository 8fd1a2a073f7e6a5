/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/policy.h"

#define MBIT 125000.0

/* Gives `blocks` blocks to a link whose paths have these rates and drain at them while the blocks come in at the sum of
 * the rates.  Counts per path. */
static void deal(enum nezha_policy_kind kind, const double *mbit, size_t paths, int blocks, uint64_t bytes, int *given)
{
	struct nezha_path_view view[8] = { 0 };
	double sum = 0;

	for (size_t i = 0; i < paths; i++) {
		view[i] = (struct nezha_path_view){ .up = true, .ready = true, .rate = mbit[i] * MBIT };
		sum += view[i].rate;
		given[i] = 0;
	}
	for (int b = 0; b < blocks;) {
		struct nezha_block_view block = { .bytes = bytes, .waiting = (uint64_t)(blocks - b - 1) * bytes };
		int pick = nezha_policy_pick(kind, view, paths, &block);

		if (pick >= 0) {
			view[pick].share += (double)bytes / view[pick].rate;
			view[pick].in_flight += bytes;
			given[pick]++;
			b++;
		}
		for (size_t i = 0; i < paths; i++) {
			uint64_t drained = (uint64_t)((double)bytes / sum * view[i].rate);

			view[i].in_flight -= drained < view[i].in_flight ? drained : view[i].in_flight;
		}
	}
}

static int pick(enum nezha_policy_kind kind, const struct nezha_path_view *paths, size_t count, uint64_t waiting,
                double after)
{
	return nezha_policy_pick(kind, paths, count,
	                         &(struct nezha_block_view){ .bytes = 65536, .waiting = waiting, .after = after });
}

static void test_shares_follow_rates(void **state)
{
	const double mbit[] = { 600, 300, 100 };
	int given[3];

	(void)state;
	deal(NEZHA_POLICY_ECF, mbit, 3, 1000, 65536, given);
	assert_in_range(given[0], 590, 610);
	assert_in_range(given[1], 290, 310);
	assert_in_range(given[2], 90, 110);
}

/* Shares are kept to, also where a path has run dry, or could take more than its part at once. */
static void assert_strict(enum nezha_policy_kind kind)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 800 * MBIT, .share = 1e-3, .in_flight = 65536 },
		{ .up = true, .ready = true, .rate = 200 * MBIT },
	};
	const double mbit[] = { 600, 300, 100 };
	int given[3];

	deal(kind, mbit, 3, 1000, 65536, given);
	assert_in_range(given[0], 599, 601);
	assert_in_range(given[1], 299, 301);
	assert_in_range(given[2], 99, 101);
	/* 64 KiB end at 2.6 ms there, at 1.7 ms here */
	assert_int_equal(pick(kind, view, 2, 0, 0), 0);
	view[0].ready = false;
	assert_int_equal(pick(kind, view, 2, 0, 0), 1);
	/* of 350 KB that were given and 64 KiB more 83 KB are this one's, which has had 250 */
	view[1].share = 10e-3;
	assert_int_equal(pick(kind, view, 2, 0, 0), -1);
	assert_int_equal(pick(kind, view, 2, 1 << 20, 0), 1);
	view[0].ready = true;
	assert_int_equal(pick(kind, view, 2, 0, 0), 0);
	/* what a lost path does not take any more is the others' */
	view[0].up = false;
	assert_int_equal(pick(kind, view, 2, 0, 0), 1);
}

static void test_fixed_parts_are_kept(void **state)
{
	(void)state;
	assert_strict(NEZHA_POLICY_STATIC);
	assert_strict(NEZHA_POLICY_SHARE);
}

/* A path that is slower than its nominal speed says does not lose blocks to one that is free. */
static void test_static_waits(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 10000 * MBIT },
		{ .up = true, .ready = false, .rate = 10000 * MBIT },
	};
	int given = 0;

	(void)state;
	for (int left = 128; left > 0 && pick(NEZHA_POLICY_STATIC, view, 2, (uint64_t)(left - 1) * 65536, 0) == 0; left--) {
		view[0].share += 65536 / view[0].rate;
		given++;
	}
	assert_int_equal(given, 64);
}

static void test_slice_takes_the_emptier(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 900 * MBIT, .in_flight = 200000 },
		{ .up = true, .ready = true, .rate = 100 * MBIT, .in_flight = 100000 },
	};

	(void)state;
	assert_int_equal(pick(NEZHA_POLICY_SLICE, view, 2, 1 << 20, 0), 1);
	view[1].ready = false;
	assert_int_equal(pick(NEZHA_POLICY_SLICE, view, 2, 1 << 20, 0), 0);
}

/* Each block has arrived before the next one is dealt out: the paths are used in turn none the less. */
static void test_slice_takes_turns_on_a_tie(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 500 * MBIT },
		{ .up = true, .ready = true, .rate = 500 * MBIT },
	};

	(void)state;
	for (int i = 0; i < 6; i++) {
		int path = pick(NEZHA_POLICY_SLICE, view, 2, 1 << 20, 0);

		assert_int_equal(path, i % 2);
		view[path].share += 1e-3;
	}
}

static void test_one_block_takes_the_fast_path(void **state)
{
	const double mbit[] = { 100, 900 };
	int given[2];

	(void)state;
	deal(NEZHA_POLICY_ECF, mbit, 2, 1, 65536, given);
	assert_int_equal(given[1], 1);
}

/* The slow path is furthest behind its share, but would finish after all the rest. */
static void test_declines_at_the_tail(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 900 * MBIT, .share = 0.1, .in_flight = 65536 },
		{ .up = true, .ready = true, .rate = 100 * MBIT, .share = 0.05 },
	};

	(void)state;
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 0, 0), 0);
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 10 << 20, 0), 1);
	/* ... or would here be in time, but not after its further hops. */
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 10 << 20, 0.2), 0);
	assert_int_equal(pick(NEZHA_POLICY_STATIC, view, 2, 0, 0), 1);
	/* The fast one is full for now: the block waits for it. */
	view[0].ready = false;
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 0, 0), -1);
}

/* A rate that is far too low must not keep a path idle: with little before it, it has room. */
static void test_a_wrong_rate_keeps_a_path_busy(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 900 * MBIT, .share = 0.02, .in_flight = 4 << 20 },
		{ .up = true, .ready = true, .rate = 1 * MBIT, .share = 5, .in_flight = 65536 },
	};

	(void)state;
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 1 << 30, 0), 1);
	view[1].in_flight = 131072;
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 1 << 30, 0), -1);
}

/* A block takes the slow path 21 ms: its turn comes while it still has something before it, not when it has run dry. */
static void test_a_long_block_takes_its_turn_early(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 800 * MBIT, .share = 0.110, .in_flight = 262144 },
		{ .up = true, .ready = true, .rate = 200 * MBIT, .share = 0.105, .in_flight = 65536 },
	};
	const struct nezha_block_view block = { .bytes = 524288, .waiting = 32 << 20 };

	(void)state;
	assert_int_equal(nezha_policy_pick(NEZHA_POLICY_ECF, view, 2, &block), 1);
	/* ... but not ahead of its turn. */
	view[1].share = 0.111;
	assert_int_equal(nezha_policy_pick(NEZHA_POLICY_ECF, view, 2, &block), 0);
	/* ... nor while it still writes: before its share ends, too, the other one goes on. */
	view[1].share = 0.105;
	view[1].ready = false;
	assert_int_equal(nezha_policy_pick(NEZHA_POLICY_ECF, view, 2, &block), 0);
	view[0].share = 0.122;
	assert_int_equal(nezha_policy_pick(NEZHA_POLICY_ECF, view, 2, &block), -1);
	/* One that has run dry goes first all the same. */
	view[0].share = 0.110;
	view[1] = (struct nezha_path_view){ .up = true, .ready = true, .rate = 200 * MBIT, .share = 0.111 };
	assert_int_equal(nezha_policy_pick(NEZHA_POLICY_ECF, view, 2, &block), 1);
}

static void test_never_a_path_that_is_down(void **state)
{
	struct nezha_path_view view[] = {
		{ .up = false, .ready = true, .rate = 900 * MBIT },
		{ .up = true, .ready = true, .rate = 100 * MBIT, .share = 5 },
		{ .up = false, .ready = true, .rate = 500 * MBIT },
	};

	(void)state;
	for (int kind = NEZHA_POLICY_ECF; kind <= NEZHA_POLICY_SHARE; kind++) {
		assert_int_equal(pick(kind, view, 3, 0, 0), 1);
		assert_int_equal(pick(kind, view, 1, 0, 0), -1);
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(nezha_policy_name(NEZHA_POLICY_ECF), "ecf");
	assert_string_equal(nezha_policy_name(NEZHA_POLICY_STATIC), "static");
	assert_string_equal(nezha_policy_name(NEZHA_POLICY_SLICE), "slice");
	assert_string_equal(nezha_policy_name(NEZHA_POLICY_SHARE), "share");
}

/* At the end a slow path takes a block only if a packet that a shaper let go ahead of its time may lie before it, too. */
static void test_leaves_room_for_a_packet(void **state)
{
	const struct nezha_path_view view[] = {
		{ .up = true, .ready = true, .rate = 800 * MBIT, .in_flight = 65536 },
		{ .up = true, .ready = true, .rate = 200 * MBIT },
	};

	(void)state;
	/* 64 KiB end there after 2.62 ms, with the packet after 3.28; all that is left at 1,000 Mbit after 2.78 and 3.30 */
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 216000, 0), 0);
	assert_int_equal(pick(NEZHA_POLICY_ECF, view, 2, 282000, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_follow_rates),
		cmocka_unit_test(test_fixed_parts_are_kept),
		cmocka_unit_test(test_static_waits),
		cmocka_unit_test(test_slice_takes_the_emptier),
		cmocka_unit_test(test_slice_takes_turns_on_a_tie),
		cmocka_unit_test(test_one_block_takes_the_fast_path),
		cmocka_unit_test(test_declines_at_the_tail),
		cmocka_unit_test(test_a_wrong_rate_keeps_a_path_busy),
		cmocka_unit_test(test_a_long_block_takes_its_turn_early),
		cmocka_unit_test(test_never_a_path_that_is_down),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_leaves_room_for_a_packet),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
