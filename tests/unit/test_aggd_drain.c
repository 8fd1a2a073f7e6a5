/* SPDX-License-Identifier: BSD-3-Clause
 * An aggregation daemon that is to end: those that it serves may go on, for a while; nobody else comes in. */
#include "tests/unit/aggd_bed.h"

#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tuning/log.h"

#define LIMIT 10                         /* s, after the order */

static void leave(const struct bed_rank *rank)
{
	close(rank->control);
	close(rank->udp);
}

/* The daemon's last word to the rank. */
static void expect_end(const struct bed_rank *rank, enum nezha_ina_record_kind kind, const char *why)
{
	struct nezha_ina_record record;

	bed_hear(rank, kind, &record);
	assert_string_equal(record.text, why);
	assert_int_equal(recv(rank->control, &record, 1, 0), 0);
}

/* A rank of session 1, which waits there for the other one.  It joins twice: once the daemon has closed the first connection, it has taken in
 * the second one. */
static struct bed_rank join_alone(void)
{
	struct bed_rank before = bed_join(1, 0, bed_key), alone = bed_join(1, 0, bed_key);
	char byte;

	assert_int_equal(recv(before.control, &byte, 1, 0), 0);
	leave(&before);
	return alone;
}

/* Until the order is obeyed: who waits for others is told. */
static void drain(void)
{
	struct bed_rank alone = join_alone();

	bed_drain();
	expect_end(&alone, NEZHA_INA_OVER, "the aggregator is going down");
	leave(&alone);
}

static void test_last_one_leaves(void **state)
{
	struct bed_rank ranks[BED_RANKS], late;

	(void)state;
	bed_open_session(0, ranks);
	drain();
	late = bed_join(1, 0, bed_key);
	expect_end(&late, NEZHA_INA_REFUSED, "it is going down");
	leave(&late);
	bed_exchange(ranks, 0, 8);
	bed_leave(ranks);
	assert_true(bed_has_ended());
	assert_int_equal(bed_stats.sessions, 1);
	assert_int_equal(bed_stats.refused, 1);
	assert_int_equal(bed_stats.results, 8);
}

/* It ends though a session is open, whose ranks are told. */
static void expect_cut_off(const struct bed_rank ranks[BED_RANKS])
{
	assert_true(bed_has_ended());
	for (int r = 0; r < BED_RANKS; r++)
		expect_end(&ranks[r], NEZHA_INA_OVER, "the aggregator has ended");
	bed_leave(ranks);
}

static void test_limit(void **state)
{
	struct bed_rank ranks[BED_RANKS];

	(void)state;
	bed_open_session(0, ranks);
	drain();
	atomic_fetch_add(&bed_network.ahead, LIMIT / 2);
	bed_exchange(ranks, 0, 8);
	bed_exchange(ranks, 8, 16);
	atomic_fetch_add(&bed_network.ahead, LIMIT / 2 + 1);
	expect_cut_off(ranks);
	assert_int_equal(bed_stats.results, 16);
}

static void test_second_order(void **state)
{
	struct bed_rank ranks[BED_RANKS];

	(void)state;
	bed_open_session(0, ranks);
	drain();
	bed_exchange(ranks, 0, 8);
	bed_drain();
	expect_cut_off(ranks);
	assert_int_equal(bed_stats.results, 8);
}

/* Nobody is in: it has nothing to wait for. */
static void test_idle(void **state)
{
	(void)state;
	bed_drain();
	assert_true(bed_has_ended());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_last_one_leaves, bed_start),
		cmocka_unit_test_setup(test_limit, bed_start),
		cmocka_unit_test_setup(test_second_order, bed_start),
		cmocka_unit_test_setup(test_idle, bed_start),
	};

	if (sodium_init() < 0)
		return 1;
	nezha_log_open(NEZHA_LOG_ERROR, NULL, -1);
	return cmocka_run_group_tests_name("aggd_drain", tests, NULL, NULL);
}
