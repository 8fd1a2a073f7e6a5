/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/clock.h"
#include "tuning/pause.h"

static void test_pauses_double_up_to_the_most(void **state)
{
	const uint64_t expected[] = { 20, 40, 80, 100, 100 };
	uint64_t pause = 0;

	(void)state;
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		pause = nezha_pause_longer(pause, 20, 100);
		assert_int_equal(pause, expected[i]);
	}
}

/* The most may be another one than before, and less than the least. */
static void test_the_most_counts(void **state)
{
	(void)state;
	assert_int_equal(nezha_pause_longer(640, 20, 40), 40);
	assert_int_equal(nezha_pause_longer(0, 20, 10), 10);
}

static void test_time_not_looked_at_counts_little(void **state)
{
	(void)state;
	assert_int_equal(nezha_looked(NEZHA_SEC, NEZHA_SEC), 0);
	assert_int_equal(nezha_looked(NEZHA_SEC, NEZHA_SEC + 3 * NEZHA_MSEC), 3 * NEZHA_MSEC);
	assert_int_equal(nezha_looked(NEZHA_SEC, 5 * NEZHA_SEC), NEZHA_LOOK_MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses_double_up_to_the_most),
		cmocka_unit_test(test_the_most_counts),
		cmocka_unit_test(test_time_not_looked_at_counts_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
