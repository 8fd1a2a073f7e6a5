/* SPDX-License-Identifier: BSD-3-Clause
 * Who goes when too many shake hands. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "rails/strangers.h"

static void test_oldest_goes(void **state)
{
	const struct nezha_stranger all[] = { { 1, false, 30 }, { 2, false, 10 }, { 3, false, 20 } };

	(void)state;
	assert_int_equal(nezha_strangers_choose(all, 3), 1);
	assert_int_equal(nezha_strangers_choose(all, 1), 0);
}

static void test_crowd_pushes_itself_out(void **state)
{
	/* the oldest one of all is alone at its address */
	const struct nezha_stranger all[] = { { 1, false, 10 }, { 2, false, 30 }, { 2, false, 20 }, { 3, false, 15 } };

	(void)state;
	assert_int_equal(nezha_strangers_choose(all, 4), 2);
}

static void test_ours_stay(void **state)
{
	const struct nezha_stranger all[] = { { 1, true, 10 }, { 1, true, 20 }, { 2, false, 30 } };

	(void)state;
	assert_int_equal(nezha_strangers_choose(all, 3), 2);
	assert_int_equal(nezha_strangers_choose(all, 2), 0);
}

/* A thousand newcomers from few addresses, or from as many as there are: who came first from another one, or from ours, stays. */
static void test_flood(void **state)
{
	enum { ROOM = NEZHA_STRANGERS_MOST };
	struct nezha_stranger all[ROOM] = { { 7, false, 1 }, { 8, true, 2 } };

	(void)state;
	for (uint32_t addresses = 1; addresses <= 1000; addresses *= 10) {
		for (uint32_t i = 2; i < ROOM; i++)
			all[i] = (struct nezha_stranger){ 100 + i % addresses, false, i + 1 };
		for (uint32_t i = 0; i < 1000; i++) {
			size_t chosen = nezha_strangers_choose(all, ROOM);

			assert_true(chosen < ROOM && chosen != 1);
			assert_true(chosen != 0 || addresses > 100);
			all[chosen] = (struct nezha_stranger){ 100 + i % addresses, false, ROOM + i };
		}
		all[0] = (struct nezha_stranger){ 7, false, 1 };
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_goes),
		cmocka_unit_test(test_crowd_pushes_itself_out),
		cmocka_unit_test(test_ours_stay),
		cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
