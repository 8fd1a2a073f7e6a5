/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/ack_delay.h"

#define RATE 25e6               /* bytes per second */
#define MOST 200000             /* what goes in 8 ms */

/* So many bytes of a million are acknowledged, and so many have left the host. */
static struct nezha_path_sample sample_of(uint64_t acked, uint64_t left)
{
	return (struct nezha_path_sample){ .written = 1000000, .sent = 1000000, .acked = acked, .left = left };
}

static uint64_t late(const struct nezha_ack_delay *delay, uint64_t acked, uint64_t left)
{
	struct nezha_path_sample sample = sample_of(acked, left);

	return nezha_ack_delay_bytes(delay, &sample, RATE);
}

static void look(struct nezha_ack_delay *delay, int times, uint64_t acked, uint64_t left)
{
	struct nezha_path_sample sample = sample_of(acked, left);

	for (int i = 0; i < times; i++)
		nezha_ack_delay_look(delay, &sample);
}

/* What has left does not count, up to what the delay is worth. */
static void test_left(void **state)
{
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	assert_int_equal(late(&delay, 900000, 950000), 50000);
	assert_int_equal(late(&delay, 700000, 1000000), MOST);
	assert_int_equal(late(&delay, 500000, 1000000), MOST);
	assert_int_equal(late(&delay, 1000000, 1000000), 0);
}

/* A transport that does not tell, or takes more to be here than there is. */
static void test_unknown(void **state)
{
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	assert_int_equal(late(&delay, 900000, 0), 0);
	assert_int_equal(late(&delay, 900000, 890000), 0);
}

/* A path that something behind the host's interface holds back: nothing is ever found here, and what is not acknowledged waits there. */
static void test_held_elsewhere(void **state)
{
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	look(&delay, 100, 800000, 1000000);
	assert_int_equal(late(&delay, 800000, 1000000), 0);
	/* Now it is this host again. */
	look(&delay, 100, 800000, 900000);
	assert_int_equal(late(&delay, 800000, 1000000), MOST);
}

/* Its window keeps the rest in the socket meanwhile. */
static void test_window(void **state)
{
	struct nezha_path_sample sample = { .written = 1000000, .sent = 900000, .acked = 800000, .left = 900000 };
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		nezha_ack_delay_look(&delay, &sample);
	assert_int_equal(nezha_ack_delay_bytes(&delay, &sample, RATE), 0);
}

/* What was lost is not acknowledged late. */
static void test_lost(void **state)
{
	struct nezha_path_sample sample = sample_of(900000, 1000000);
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	sample.recovering = true;
	assert_int_equal(nezha_ack_delay_bytes(&delay, &sample, RATE), 0);
}

/* A path that runs dry now and then, as one does that was given too little. */
static void test_dry_now_and_then(void **state)
{
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		look(&delay, 1, 800000, 1000000);
		assert_int_equal(late(&delay, 800000, 1000000), MOST);
		look(&delay, 2, 800000, 980000);
	}
}

/* Two packets under way say nothing of where they wait. */
static void test_little(void **state)
{
	struct nezha_ack_delay delay = { 0 };

	(void)state;
	look(&delay, 1000, 970000, 1000000);
	assert_int_equal(late(&delay, 970000, 1000000), 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_held_elsewhere),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_dry_now_and_then),
		cmocka_unit_test(test_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
