/* SPDX-License-Identifier: BSD-3-Clause
 * When a path is probed again. */
#include "tests/unit/unit.h"

#include "rails/probe.h"

#define M (1u << 20)

#define LINK 2e6        /* bytes per second, of all paths */

/* Gives the link calls of `bytes` until a probe is due, but no more than `most` bytes.  Returns the bytes. */
static uint64_t until_due_of(struct nezha_probe *probe, struct nezha_estimator *estimator, double link, uint64_t bytes, uint64_t most)
{
	uint64_t given = 0;

	while (!nezha_probe_is_due(probe, estimator, link, true) && given < most) {
		nezha_probe_count(probe, estimator, bytes);
		given += bytes;
	}
	return given;
}

static uint64_t until_due(struct nezha_probe *probe, struct nezha_estimator *estimator, uint64_t bytes, uint64_t most)
{
	return until_due_of(probe, estimator, LINK, bytes, most);
}

/* At multiples of the interval. */
static void test_rarer_while_certain(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1e6);
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 32 * M);
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 32 * M);
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 64 * M);
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 128 * M);
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 128 * M);
	estimator.doubt = true;
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 5 * M);
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 27 * M);
}

/* Probed in the same call, although estimates differ and one of them was measured meanwhile: else calls would wait for one after
 * the other. */
static void test_together(void **state)
{
	struct nezha_estimator one, other;
	struct nezha_probe probe = { 0 }, probe_of_other = { 0 };

	(void)state;
	nezha_estimator_init(&one, 92e6);
	nezha_estimator_init(&other, 100e6);
	for (int i = 1; i <= 10; i++) {
		assert_int_equal(until_due_of(&probe, &one, 115e6, M / 64, 6 * M), 6 * M);
		assert_int_equal(until_due_of(&probe_of_other, &other, 125e6, M / 64, 6 * M), 6 * M);
	}
	other.measured++;
	assert_int_equal(until_due_of(&probe, &one, 115e6, M / 64, 1000 * M), 4 * M);
	assert_int_equal(until_due_of(&probe_of_other, &other, 125e6, M / 64, 1000 * M), 68 * M);
	assert_int_equal(until_due_of(&probe, &one, 115e6, M / 64, 1000 * M), 64 * M);
}

/* A path that was measured a short while before has none. */
static void test_just_measured(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1e6);
	assert_int_equal(until_due(&probe, &estimator, M, 15 * M), 15 * M);
	estimator.measured++;
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 17 * M);
	assert_int_equal(until_due(&probe, &estimator, M, 20 * M), 20 * M);
	estimator.measured++;
	assert_int_equal(until_due(&probe, &estimator, M, 1000 * M), 76 * M);
}

static void test_what_is_measured_needs_none(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1e6);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(until_due(&probe, &estimator, M, 4 * M), 4 * M);
		estimator.measured++;
	}
}

/* A doubt that a call settles by itself is none; one that stays is settled by a probe, but not by one after the other. */
static void test_doubts(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1e6);
	nezha_probe_count(&probe, &estimator, 8 * M);
	for (int i = 0; i < 4; i++) {
		estimator.doubt = true;
		assert_int_equal(until_due(&probe, &estimator, M / 2, M / 2), M / 2);
		estimator.doubt = false;
		assert_false(nezha_probe_is_due(&probe, &estimator, LINK, true));
	}
	estimator.doubt = true;
	assert_int_equal(until_due(&probe, &estimator, M / 2, 100 * M), 3 * M / 2);
	assert_false(estimator.doubt);
	estimator.doubt = true;
	assert_int_equal(until_due(&probe, &estimator, M / 2, 100 * M), 9 * M / 2);
}

/* Where calls are measured by what leaves the host, a doubt has longer to be settled by them. */
static void test_patience(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1e6);
	nezha_probe_count(&probe, &estimator, 8 * M);
	estimator.last.left = 1;
	estimator.doubt = true;
	assert_int_equal(until_due(&probe, &estimator, M / 2, 100 * M), 9 * M / 2);
}

/* What a probe sends grows with the rate, so what lies between probes does, too. */
static void test_rarer_where_fast(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1000.0 * M);
	assert_int_equal(until_due_of(&probe, &estimator, 2000.0 * M, M, 4000 * M), 1024 * M);
	assert_int_equal(until_due_of(&probe, &estimator, 2000.0 * M, M, 4000 * M), 1024 * M);
	assert_int_equal(until_due_of(&probe, &estimator, 2000.0 * M, M, 4000 * M), 2048 * M);
	estimator.doubt = true;
	assert_int_equal(until_due_of(&probe, &estimator, 2000.0 * M, M, 4000 * M), 65 * M);
	nezha_probe_count(&probe, &estimator, 100 * M);
	estimator.doubt = true;
	assert_int_equal(until_due_of(&probe, &estimator, 2000.0 * M, M, 4000 * M), 9 * M);
}

/* While the path is down, or the only one, nothing is forgotten. */
static void test_waits_until_able(void **state)
{
	struct nezha_estimator estimator;
	struct nezha_probe probe = { 0 };

	(void)state;
	nezha_estimator_init(&estimator, 1e6);
	nezha_probe_count(&probe, &estimator, 33 * M);
	assert_false(nezha_probe_is_due(&probe, &estimator, LINK, false));
	assert_true(nezha_probe_is_due(&probe, &estimator, LINK, true));
	assert_false(nezha_probe_is_due(&probe, &estimator, LINK, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rarer_while_certain),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_just_measured),
		cmocka_unit_test(test_what_is_measured_needs_none),
		cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_rarer_where_fast),
		cmocka_unit_test(test_waits_until_able),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
