/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "rails/bound.h"
#include "rails/clock.h"

#define RATE 50e6       /* bytes per second */
#define BURST 16384.0

/* A shaper, asked only when it has passed all that it was given. */
struct bed {
	struct nezha_bound bound;
	struct nezha_path_sample sample;
	double tokens;
};

static void begin(struct bed *bed)
{
	*bed = (struct bed){ .sample = { .time = NEZHA_SEC }, .tokens = BURST };
	nezha_bound_begin(&bed->bound, &bed->sample);
}

static void wait_for(struct bed *bed, double seconds)
{
	bed->sample.time += (uint64_t)(seconds * NEZHA_SEC);
	bed->tokens = fmin(BURST, bed->tokens + seconds * RATE);
}

/* Passes `bytes`; the bound, if there is one. */
static double pass(struct bed *bed, uint64_t bytes, double rate)
{
	if ((double)bytes > bed->tokens) {
		bed->sample.time += (uint64_t)(((double)bytes - bed->tokens) / RATE * NEZHA_SEC);
		bed->tokens = (double)bytes;
	}
	bed->tokens -= (double)bytes;
	bed->sample.acked += bytes;
	return nezha_bound_look(&bed->bound, &bed->sample, rate);
}

/* Whatever it is given and when: no bound is above what the shaper is. */
static void test_never_too_high(void **state)
{
	unsigned seed = 11;
	struct bed bed;
	int bounds = 0;

	(void)state;
	for (int k = 1; k < 40; k++) {
		begin(&bed);
		for (int i = 0; i < 2000; i++) {
			double bound = pass(&bed, (uint64_t)rand_r(&seed) % 60000, RATE / 40 * k);

			assert_true(bound <= RATE);
			bounds += bound > 0;
			if (rand_r(&seed) % 3 == 0)
				wait_for(&bed, (double)(rand_r(&seed) % 1000) * 3e-6);
		}
	}
	assert_true(bounds > 1000);
}

/* Six portions of 28 KiB in a call of 3.5 ms, none of which alone tells much: 49 MB/s, believed to be 25. */
static void test_short_portions(void **state)
{
	double best = 0;
	struct bed bed;
	int bounds = 0;

	(void)state;
	begin(&bed);
	for (int i = 0; i < 12; i++) {
		double bound = pass(&bed, 28672, 25e6);

		bounds += bound > 0;
		best = fmax(best, bound);
		wait_for(&bed, 20e-6);
	}
	assert_in_range(bounds, 2, 4);
	assert_true(best > 0.7 * RATE);
}

/* A long pause ends the stretch: what it was worth until then is told, and the pause does not lower what follows. */
static void test_pause_ends_it(void **state)
{
	struct bed bed;
	double bound;

	(void)state;
	begin(&bed);
	assert_true(pass(&bed, 70000, 25e6) == 0);
	wait_for(&bed, 0.1);
	bound = pass(&bed, 1000, 25e6);
	assert_true(bound > 0.7 * RATE && bound <= RATE);
	assert_true(pass(&bed, 500000, 25e6) > 0.9 * RATE);
}

/* Single portions that the burst covers tell nothing. */
static void test_deaf_to_bursts(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	for (int i = 0; i < 200; i++) {
		assert_true(pass(&bed, 16384, 1e6) < 2e6);
		wait_for(&bed, 0.01);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_too_high),
		cmocka_unit_test(test_short_portions),
		cmocka_unit_test(test_pause_ends_it),
		cmocka_unit_test(test_deaf_to_bursts),
	};

	return cmocka_run_group_tests_name("bound", tests, NULL, NULL);
}
