/* SPDX-License-Identifier: BSD-3-Clause
 * The rule of the policy share: parts of a call, and what a link remembers. */
#include "tests/unit/unit.h"

#include <math.h>

#include "rails/share.h"

#define K UINT64_C(1024)
#define M (K * K)
#define ALL 0xffu
#define RAIL(us, mbit) { (us) * 1e-6, 8 / ((mbit) * 1e6) }

static void assert_near(double value, double wanted)
{
	if (fabs(value - wanted) > 1e-9)
		fail_msg("%.12f, wanted %.12f", value, wanted);
}

static double alone(const struct nezha_share_time *rail, double bytes)
{
	return rail->start + rail->byte * bytes;
}

/* With no latency to speak of, the parts are as the rates. */
static void parts_follow_rates(void **state)
{
	const struct nezha_share_time equal[] = { RAIL(0, 500), RAIL(0, 500) };
	const struct nezha_share_time three[] = { RAIL(0, 200), RAIL(0, 500), RAIL(0, 300) };
	double part[3];

	(void)state;
	nezha_share_split(equal, 2, ALL, M, part);
	assert_near(part[0], 0.5);
	assert_near(part[1], 0.5);
	/* The formula that is right for two rails only would give 0.26, 0.40 and 0.34. */
	nezha_share_split(three, 3, ALL, M, part);
	assert_near(part[0], 0.2);
	assert_near(part[1], 0.5);
	assert_near(part[2], 0.3);
	nezha_share_split(three, 3, ALL, 0, part);
	assert_near(part[0] + part[1] + part[2], 1);
}

/* Inversely to the time of the whole call on each. */
static void parts_heed_latency(void **state)
{
	const struct nezha_share_time rails[] = { RAIL(100, 400), RAIL(5000, 400) };
	double part[2], first, second;

	(void)state;
	for (uint64_t bytes = 2 * M; bytes <= 256 * M; bytes *= 2) {
		nezha_share_split(rails, 2, ALL, bytes, part);
		first = alone(&rails[0], (double)bytes);
		second = alone(&rails[1], (double)bytes);
		assert_near(part[0], second / (first + second));
		assert_near(part[1], first / (first + second));
	}
}

/* Cold up to the size at which both take the same time, hot above it; cold is the rail of least latency. */
static void one_switch_over(void **state)
{
	const struct nezha_share_time rails[] = { RAIL(2000, 500), RAIL(50, 400) };
	uint64_t low = 1, high = 64 * M;
	double part[2], cold, hot, times[2];

	(void)state;
	nezha_share_split(rails, 2, ALL, low, part);
	assert_near(part[1], 1);
	assert_near(part[0], 0);
	nezha_share_split(rails, 2, ALL, high, part);
	assert_true(part[0] > 0.4 && part[1] > 0.4);
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		nezha_share_split(rails, 2, ALL, middle, part);
		if (part[0] > 0)
			high = middle;
		else
			low = middle;
	}
	assert_true(low > 16 * K && high < M);
	times[0] = alone(&rails[0], (double)high);
	times[1] = alone(&rails[1], (double)high);
	cold = fmin(times[0], times[1]);
	nezha_share_split(rails, 2, ALL, high, part);
	hot = fmax(alone(&rails[0], part[0] * (double)high), alone(&rails[1], part[1] * (double)high));
	if (hot > cold || hot < 0.9999 * cold)
		fail_msg("at %llu bytes it takes %g s cold, %g s hot", (unsigned long long)high, cold, hot);
	for (uint64_t bytes = 1; bytes < 64 * M; bytes += bytes / 8 + 1) {
		nezha_share_split(rails, 2, ALL, bytes, part);
		assert_int_equal(part[0] > 0, bytes >= high);
		assert_near(part[0] + part[1], 1);
	}
}

static void tau(void **state)
{
	const struct nezha_share_time five[] = { RAIL(0, 500), RAIL(0, 100) };
	const struct nezha_share_time more[] = { RAIL(0, 505), RAIL(0, 100) };
	const struct nezha_share_time three[] = { RAIL(0, 100), RAIL(0, 600), RAIL(0, 300) };
	double part[3];

	(void)state;
	nezha_share_split(five, 2, ALL, M, part);
	assert_near(part[1], 1.0 / 6);
	nezha_share_split(more, 2, ALL, M, part);
	assert_near(part[0], 1);
	assert_near(part[1], 0);
	nezha_share_split(three, 3, ALL, M, part);
	assert_near(part[0], 0);
	assert_near(part[1], 2.0 / 3);
	assert_near(part[2], 1.0 / 3);
}

static void only_usable_rails(void **state)
{
	const struct nezha_share_time rails[] = { RAIL(0, 500), RAIL(0, 300), RAIL(0, 200) };
	double part[3];

	(void)state;
	nezha_share_split(rails, 3, 6, M, part);
	assert_near(part[0], 0);
	assert_near(part[1], 0.6);
	assert_near(part[2], 0.4);
	nezha_share_split(rails, 3, 4, M, part);
	assert_near(part[2], 1);
	nezha_share_split(rails, 3, 0, M, part);
	assert_near(part[0] + part[1] + part[2], 0);
}

/* Parts move with every ten calls of a size, to the mean of these. */
static void renewed_by_ten_calls(void **state)
{
	const struct nezha_share_time before[] = { RAIL(0, 500), RAIL(0, 500) };
	const struct nezha_share_time after[] = { RAIL(0, 500), RAIL(0, 250) };
	static struct nezha_share share;
	double part[2];

	(void)state;
	/* until there is a mean, what is measured counts */
	nezha_share_call(&share, after, 2, ALL, M, part);
	assert_near(part[0], 2.0 / 3);
	for (int i = 1; i < 10; i++)
		nezha_share_call(&share, before, 2, ALL, M + (uint64_t)i, part);
	/* the mean of 1/250 once and 1/500 nine times is 11/10 of 1/500 */
	assert_near(part[0], 11.0 / 21);
	for (int i = 0; i < 9; i++) {
		nezha_share_call(&share, after, 2, ALL, 2 * M - 1, part);
		assert_near(part[0], 11.0 / 21);
		nezha_share_call(&share, before, 2, ALL, 2 * M, part);      /* another size */
		assert_near(part[0], 0.5);
	}
	nezha_share_call(&share, after, 2, ALL, M, part);
	assert_near(part[0], 2.0 / 3);
	nezha_share_call(&share, after, 2, ALL, UINT64_MAX, part);
	assert_near(part[0], 2.0 / 3);
}

/* Where latencies differ parts by 1 / T do not end together: refined with every ten calls they come to, or as near as they may. */
static void refined_until_all_end_together(void **state)
{
	const struct nezha_share_time rails[] = { RAIL(100, 400), RAIL(3000, 400), RAIL(1000, 200) };
	const struct nezha_share_time changed[] = { RAIL(100, 400), RAIL(100, 400), RAIL(100, 400) };
	static struct nezha_share share;
	double part[3], end[3], first;

	(void)state;
	nezha_share_call(&share, rails, 3, ALL, M, part);
	first = alone(&rails[1], part[1] * M) - alone(&rails[0], part[0] * M);
	for (int i = 1; i < 200; i++) {
		nezha_share_call(&share, rails, 3, ALL, M, part);
		assert_near(part[0] + part[1] + part[2], 1);
	}
	for (int i = 0; i < 3; i++)
		end[i] = alone(&rails[i], part[i] * M);
	if (fabs(end[1] - end[0]) > first / 50 || fabs(end[2] - end[0]) > first / 50)
		fail_msg("%g, %g and %g s, at first %g s apart", end[0], end[1], end[2], first);
	/* It follows. */
	for (int i = 0; i < 200; i++)
		nezha_share_call(&share, changed, 3, ALL, M, part);
	assert_true(fabs(part[0] - 1.0 / 3) < 0.01 && fabs(part[1] - 1.0 / 3) < 0.01);
	/* Other sizes have parts of their own; cold ones none to refine. */
	nezha_share_call(&share, rails, 3, ALL, 2 * M, part);
	assert_near(part[1] / part[0], alone(&rails[0], 2 * M) / alone(&rails[1], 2 * M));
	for (int i = 0; i < 20; i++)
		nezha_share_call(&share, rails, 3, ALL, 1, part);
	assert_near(part[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_follow_rates),
		cmocka_unit_test(parts_heed_latency),
		cmocka_unit_test(one_switch_over),
		cmocka_unit_test(tau),
		cmocka_unit_test(only_usable_rails),
		cmocka_unit_test(renewed_by_ten_calls),
		cmocka_unit_test(refined_until_all_end_together),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
