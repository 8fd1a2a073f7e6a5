/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/aggd_shun.h"
#include "rails/clock.h"

#define START (1000 * NEZHA_SEC)
#define HOUR (3600 * NEZHA_SEC)

static struct in_addr host(uint32_t number)
{
	return (struct in_addr){ .s_addr = htonl(0x0a4d0000u + number) };
}

/* How long `number` is shunned from `now` on, in seconds. */
static uint64_t shunned_for(const struct aggd_shun *shun, uint32_t number, uint64_t now)
{
	uint64_t seconds = 0;

	while (aggd_shun_has(shun, host(number), now + seconds * NEZHA_SEC))
		seconds++;
	return seconds;
}

static void test_once_is_chance(void **state)
{
	struct aggd_shun shun = { 0 };

	(void)state;
	assert_false(aggd_shun_has(&shun, host(1), START));
	for (uint64_t now = START; now < START + HOUR; now += 61 * NEZHA_SEC) {
		assert_true(aggd_shun_add(&shun, host(1), now));
		assert_false(aggd_shun_has(&shun, host(1), now));
	}
}

static void test_longer_each_time(void **state)
{
	struct aggd_shun shun = { 0 };
	uint64_t now = START, seconds;

	(void)state;
	assert_true(aggd_shun_add(&shun, host(1), now));
	for (uint64_t expected = 1; expected <= 2048; expected *= 2) {
		assert_true(aggd_shun_add(&shun, host(1), now));
		assert_int_equal(shunned_for(&shun, 1, now), expected);
		assert_false(aggd_shun_has(&shun, host(2), now));
		now += expected * NEZHA_SEC;
	}
	for (int i = 0; i < 3; i++, now += seconds * NEZHA_SEC) {
		assert_true(aggd_shun_add(&shun, host(1), now));
		seconds = shunned_for(&shun, 1, now);
		assert_int_equal(seconds, 3600);
	}
	/* Good for an hour less a second is not enough, for an hour is. */
	assert_true(aggd_shun_add(&shun, host(1), now + HOUR - NEZHA_SEC));
	assert_true(aggd_shun_has(&shun, host(1), now + HOUR));
	now += 2 * HOUR - NEZHA_SEC;
	assert_true(aggd_shun_add(&shun, host(1), now + HOUR));
	assert_false(aggd_shun_has(&shun, host(1), now + HOUR));
}

static void test_full(void **state)
{
	struct aggd_shun shun = { 0 };

	(void)state;
	for (uint32_t i = 0; i < AGGD_SHUN_MOST; i++) {
		assert_false(aggd_shun_has(&shun, host(1000), START));
		assert_true(aggd_shun_add(&shun, host(i), START + i));
	}
	assert_false(aggd_shun_add(&shun, host(1000), START + NEZHA_SEC));
	assert_true(aggd_shun_has(&shun, host(1000), START + NEZHA_SEC));
	assert_false(aggd_shun_has(&shun, host(1), START + NEZHA_SEC));
	/* The others were good for a while. */
	assert_false(aggd_shun_has(&shun, host(1000), START + 60 * NEZHA_SEC));
	assert_true(aggd_shun_add(&shun, host(1000), START + 60 * NEZHA_SEC));
	assert_true(aggd_shun_add(&shun, host(1000), START + 60 * NEZHA_SEC));
	assert_true(aggd_shun_has(&shun, host(1000), START + 60 * NEZHA_SEC));
	assert_true(aggd_shun_add(&shun, host(AGGD_SHUN_MOST - 1), START + 60 * NEZHA_SEC));
	assert_true(aggd_shun_has(&shun, host(AGGD_SHUN_MOST - 1), START + 60 * NEZHA_SEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_is_chance),
		cmocka_unit_test(test_longer_each_time),
		cmocka_unit_test(test_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
