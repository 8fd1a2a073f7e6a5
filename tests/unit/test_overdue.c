/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/clock.h"
#include "rails/overdue.h"

#define START (1000 * NEZHA_SEC)
#define BELIEVED 60e6           /* bytes per second */
#define GIVEN 1000000u

/* A path that was given GIVEN bytes at the believed rate and delivers `rate`; ms after which it is given up, 0: never. */
static int given_up_after(double rate, double others, bool narrow, double *seen)
{
	struct nezha_overdue overdue = { 0 };

	nezha_overdue_promise(&overdue, START, GIVEN, BELIEVED);
	for (int ms = 1; ms < 3000; ms++) {
		uint64_t acked = (uint64_t)(rate * ms * 1e-3);
		struct nezha_path_sample sample = {
			.time = START + (uint64_t)ms * NEZHA_MSEC, .written = GIVEN,
			.acked = acked < GIVEN ? acked : GIVEN, .in_flight = acked < GIVEN, .narrow = narrow,
		};

		if (nezha_overdue_look(&overdue, &sample, others, seen))
			return ms;
	}
	return 0;
}

static void test_crawling(void **state)
{
	double seen = 0;
	int ms = given_up_after(BELIEVED / 100, BELIEVED, false, &seen);

	(void)state;
	assert_in_range(ms, 20, 200);
	assert_true(seen > BELIEVED / 110 && seen < BELIEVED / 90);
}

/* What keeps its promises, is a little late, has no substitute, or waits for its receiver, stays. */
static void test_patience(void **state)
{
	double seen = 0;

	(void)state;
	assert_int_equal(given_up_after(BELIEVED, BELIEVED, false, &seen), 0);
	assert_int_equal(given_up_after(BELIEVED / 3, BELIEVED, false, &seen), 0);
	assert_int_equal(given_up_after(BELIEVED / 100, 0, false, &seen), 0);
	assert_int_equal(given_up_after(BELIEVED / 100, BELIEVED / 100, false, &seen), 0);
	assert_int_equal(given_up_after(BELIEVED / 100, BELIEVED, true, &seen), 0);
}

/* A slow path that is known to be slow. */
static void test_slow_by_nature(void **state)
{
	struct nezha_overdue overdue = { 0 };
	double seen = 0;

	(void)state;
	nezha_overdue_promise(&overdue, START, GIVEN, BELIEVED / 100);
	for (int ms = 1; ms < 1600; ms++) {
		struct nezha_path_sample sample = {
			.time = START + (uint64_t)ms * NEZHA_MSEC, .written = GIVEN,
			.acked = (uint64_t)(BELIEVED / 100 * ms * 1e-3), .in_flight = true,
		};

		assert_false(nezha_overdue_look(&overdue, &sample, BELIEVED, &seen));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crawling),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_slow_by_nature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
