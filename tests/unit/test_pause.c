/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/clock.h"
#include "rails/pace.h"
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

/* Within a wait: after the pause, each time. */
static void test_mpi_is_let_progress_within_a_wait(void **state)
{
	struct nezha_pace pace = { 0 };
	uint64_t now = NEZHA_SEC;

	(void)state;
	nezha_pace_begin(&pace, now);
	assert_false(nezha_pace_is_due(&pace, now + NEZHA_PACE_OFTEN - 1, NEZHA_PACE_OFTEN));
	assert_true(nezha_pace_is_due(&pace, now + NEZHA_PACE_OFTEN, NEZHA_PACE_OFTEN));
	nezha_pace_done(&pace, now += NEZHA_PACE_OFTEN);
	assert_false(nezha_pace_is_due(&pace, now + NEZHA_PACE_OFTEN - 1, NEZHA_PACE_OFTEN));
	assert_true(nezha_pace_is_due(&pace, now + NEZHA_PACE_OFTEN, NEZHA_PACE_OFTEN));
	assert_false(nezha_pace_is_due(&pace, now + NEZHA_PACE_SELDOM - 1, NEZHA_PACE_SELDOM));
	assert_true(nezha_pace_is_due(&pace, now + NEZHA_PACE_SELDOM, NEZHA_PACE_SELDOM));
}

/* Waits that are all too short for it: after so much time in them, and what lies between them does not count. */
static void test_mpi_is_let_progress_between_short_waits(void **state)
{
	const uint64_t each = NEZHA_PACE_OFTEN / 2;
	struct nezha_pace pace = { 0 };
	uint64_t now = NEZHA_SEC, waits = NEZHA_PACE_SELDOM / each;

	(void)state;
	for (uint64_t round = 0; round < 2; round++) {
		for (uint64_t i = 1; i < waits; i++) {
			nezha_pace_begin(&pace, now += NEZHA_SEC);
			assert_false(nezha_pace_is_due(&pace, now += each, NEZHA_PACE_OFTEN));
			nezha_pace_end(&pace, now);
		}
		nezha_pace_begin(&pace, now += NEZHA_SEC);
		assert_true(nezha_pace_is_due(&pace, now += each, NEZHA_PACE_OFTEN));
		nezha_pace_done(&pace, now);
		nezha_pace_end(&pace, now);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses_double_up_to_the_most),
		cmocka_unit_test(test_the_most_counts),
		cmocka_unit_test(test_time_not_looked_at_counts_little),
		cmocka_unit_test(test_mpi_is_let_progress_within_a_wait),
		cmocka_unit_test(test_mpi_is_let_progress_between_short_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
