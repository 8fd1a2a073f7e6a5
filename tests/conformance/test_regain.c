/* SPDX-License-Identifier: BSD-3-Clause
 * Rails whose interface has no carrier, or has it back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tests/conformance/world.h"

static bool both_are_up(const struct member *member)
{
	return member->team->right->paths[1].up && member->team->left->paths[1].up;
}

static bool receiving_end_is_down(const struct member *member)
{
	return !member->team->left->paths[1].up;
}

static bool sending_end_is_up(const struct member *member)
{
	return member->team->right->paths[1].up;
}

static bool receiving_end_is_up(const struct member *member)
{
	return member->team->left->paths[1].up;
}

/* Rank 1's interface of rail 1 had no carrier, as it believes until it asks. */
static void believe_dark(struct member *member)
{
	nezha_fairlock_take(&member->engine->lock);
	member->engine->dark |= 1u << 1;
	nezha_fairlock_give(&member->engine->lock);
	nezha_service_kick(member->engine->service);
}

/* Rank 0 would not try for ever. */
static void told_by_the_peer(struct member *member, void *argument)
{
	(void)argument;
	EXPECT(member, world_wait_until(member, both_are_up));
	world_barrier(member);
	if (member->rank == 0)
		world_take_rail_away(member, 1);
	world_barrier(member);
	if (member->rank == 1) {
		EXPECT(member, world_wait_until(member, receiving_end_is_down));
		believe_dark(member);
		EXPECT(member, world_wait_until(member, receiving_end_is_up));
	}
	if (member->rank == 0)
		EXPECT(member, world_wait_until(member, sending_end_is_up));
	world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003, 8192, false, 0, 0);
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, !member->engine->dark);
	nezha_fairlock_give(&member->engine->lock);
	world_barrier(member);
}

static void test_told_by_the_peer(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 3, NEZHA_POLICY_ECF, told_by_the_peer, NULL), 0);
}

/* What has no carrier is left alone, but for ranks on the same host, and not for ever. */
static void without_carrier(struct member *member, void *argument)
{
	struct nezha_link *link = member->team->right;
	struct nezha_path path = { .link = link, .rail = 1, .left_at = 7 };

	(void)argument;
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, nezha_path_due(&path) == 0);
	member->engine->dark = 1u << 1;
	EXPECT(member, nezha_path_due(&path) == 0);
	link->card.host++;
	EXPECT(member, nezha_path_due(&path) > path.left_at && nezha_path_due(&path) < path.left_at + 60 * NEZHA_SEC);
	path.rail = 0;
	EXPECT(member, nezha_path_due(&path) == 0);
	link->card.host--;
	member->engine->dark = 0;
	nezha_fairlock_give(&member->engine->lock);
	world_barrier(member);
}

static void test_without_carrier(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, without_carrier, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_by_the_peer),
		cmocka_unit_test(test_without_carrier),
	};

	return cmocka_run_group_tests_name("regain", tests, NULL, NULL);
}
