/* SPDX-License-Identifier: BSD-3-Clause
 * Results that go to a multicast group, which stays or dies. */
#include "tests/unit/aggd_bed.h"

#include <sodium.h>
#include <sys/socket.h>

#include "tuning/log.h"

#define LOOKED_AT 256                    /* results that the daemon looks at together, with BED_WINDOW */

static void ask_again(const struct bed_rank *rank, uint32_t from, uint32_t to)
{
	bed_contribute(rank, from, to);
	bed_expect(rank, from, to);
}

/* A window of chunks from `from` on, whose results come to rank 0 by the group or by asking.  Whether it has to ask. */
static bool exchange_deaf(const struct bed_rank ranks[BED_RANKS], uint32_t from)
{
	char byte;

	for (int r = 0; r < BED_RANKS; r++)
		bed_contribute(&ranks[r], from, from + BED_WINDOW);
	/* What goes to each rank goes to rank 0 first. */
	bed_expect(&ranks[1], from, from + BED_WINDOW);
	if (recv(ranks[0].udp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
		bed_expect(&ranks[0], from, from + BED_WINDOW);
		return false;
	}
	ask_again(&ranks[0], from, from + BED_WINDOW);
	return true;
}

static void check_way(const struct bed_rank ranks[BED_RANKS], uint32_t from, bool by_group)
{
	int before = atomic_load(&bed_network.to_groups);

	bed_exchange(ranks, from, from + BED_WINDOW);
	assert_true((atomic_load(&bed_network.to_groups) > before) == by_group);
}

/* Neither much loss nor a break, nor one who asks for a result many times, makes an end of the group. */
static void test_group_stays(void **state)
{
	struct bed_rank ranks[BED_RANKS];
	uint32_t seq = 0;

	(void)state;
	bed_open_session(0, ranks);
	for (; seq < 4 * LOOKED_AT; seq += BED_WINDOW) {
		bed_exchange(ranks, seq, seq + BED_WINDOW);
		for (int i = 0; i < 5; i++)      /* 5/4 of the results, but only a quarter of them */
			ask_again(&ranks[0], seq, seq + BED_WINDOW / 4);
	}
	atomic_store(&bed_network.deaf, 1);
	for (uint32_t end = seq + LOOKED_AT / 2; seq < end; seq += BED_WINDOW)
		assert_true(exchange_deaf(ranks, seq));
	atomic_store(&bed_network.deaf, 0);
	for (uint32_t end = seq + 2 * LOOKED_AT; seq < end; seq += BED_WINDOW)
		bed_exchange(ranks, seq, seq + BED_WINDOW);
	check_way(ranks, seq, true);
	bed_leave(ranks);
	bed_stop();
}

/* A group that one rank no longer hears, after many results that it has got: soon they go to each rank, unasked. */
static void test_group_dies(void **state)
{
	struct bed_rank ranks[BED_RANKS];
	uint32_t seq = 0, died;

	(void)state;
	bed_open_session(0, ranks);
	for (; seq < 16 * LOOKED_AT + 7 * BED_WINDOW; seq += BED_WINDOW)
		bed_exchange(ranks, seq, seq + BED_WINDOW);
	check_way(ranks, seq, true);
	died = seq += BED_WINDOW;
	atomic_store(&bed_network.deaf, 1);
	while (exchange_deaf(ranks, seq)) {
		seq += BED_WINDOW;
		assert_true(seq - died < 2 * LOOKED_AT);
	}
	for (uint32_t end = seq + LOOKED_AT; seq < end;) {
		seq += BED_WINDOW;
		check_way(ranks, seq, false);
	}
	bed_leave(ranks);
	bed_stop();
	assert_int_equal(bed_stats.results, seq + BED_WINDOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_group_stays, bed_start_grouped),
		cmocka_unit_test_setup(test_group_dies, bed_start_grouped),
	};

	if (sodium_init() < 0)
		return 1;
	nezha_log_open(NEZHA_LOG_ERROR, NULL, -1);
	return cmocka_run_group_tests_name("aggd_group", tests, NULL, NULL);
}
