/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/clock.h"
#include "rails/damping.h"

#define START (1000 * NEZHA_SEC)

/* The pause after a loss at `now`, `up` ns after the path had come up. */
static uint64_t pause_after(struct nezha_damping *damping, uint64_t *now, uint64_t up, uint64_t dice)
{
	bool steady;

	nezha_damping_up(damping, *now);
	*now += up;
	steady = nezha_damping_lost(damping, *now, dice);
	assert_true(nezha_damping_due(damping, 0) >= *now);
	assert_int_equal(steady, nezha_damping_due(damping, *now) == *now);
	return nezha_damping_due(damping, *now) - *now;
}

static void test_single_loss(void **state)
{
	struct nezha_damping damping = { 0 };
	uint64_t now = START;

	(void)state;
	assert_int_equal(nezha_damping_due(&damping, now), now);
	assert_int_equal(pause_after(&damping, &now, NEZHA_SEC / 10, 7), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(pause_after(&damping, &now, 10 * NEZHA_SEC, 7), 0);
}

/* Pauses grow, but not without end: a rail that has settled must not be missed for long. */
static void test_flapping(void **state)
{
	struct nezha_damping damping = { 0 };
	uint64_t now = START, before = 0;

	(void)state;
	pause_after(&damping, &now, 10 * NEZHA_SEC, 0);
	for (int i = 0; i < 5; i++) {
		uint64_t pause = pause_after(&damping, &now, NEZHA_SEC / 10, 0);

		assert_true(pause > before);
		now += pause;
		before = pause;
	}
	for (int i = 0; i < 20; i++)
		before = pause_after(&damping, &now, NEZHA_SEC / 10, UINT64_MAX);
	assert_true(before >= NEZHA_SEC && before <= 3 * NEZHA_SEC);
	assert_int_equal(pause_after(&damping, &now, 10 * NEZHA_SEC, 0), 0);
}

/* Two paths that were lost together come back at different times, what is due later stays so. */
static void test_jitter(void **state)
{
	struct nezha_damping damping = { 0 };
	uint64_t now = START, least = UINT64_MAX, most = 0;

	(void)state;
	for (int i = 0; i < 30; i++)
		pause_after(&damping, &now, NEZHA_SEC / 10, 0);
	for (uint64_t dice = 0; dice < 100; dice++) {
		uint64_t pause = pause_after(&damping, &now, NEZHA_SEC / 10, dice * 12345678901);

		least = pause < least ? pause : least;
		most = pause > most ? pause : most;
	}
	assert_true(most > least + least / 4);
	assert_int_equal(nezha_damping_due(&damping, now + NEZHA_SEC * 60), now + NEZHA_SEC * 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single_loss),
		cmocka_unit_test(test_flapping),
		cmocka_unit_test(test_jitter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
