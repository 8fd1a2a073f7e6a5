/* SPDX-License-Identifier: BSD-3-Clause
 * Collective rails beside the links, one and several, with every fault that mock_rail.h has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "rails/collective.h"
#include "rails/engine.h"
#include "rails/split.h"
#include "tests/conformance/mock_rail.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

static void attach_mock(struct member *member, const struct nezha_collective_ops *ops, struct mock_rail *rail,
                        struct mock_hub *hub)
{
	struct nezha_collective collective = { .ops = ops, .rail = rail };

	mock_rail_init(rail, hub, member->rank);
	EXPECT(member, nezha_team_attach(member->team, &collective) == NEZHA_OK);
}

static void with_mock(struct member *member, void *argument)
{
	struct mock_rail rail;

	attach_mock(member, &mock_rail_ops, &rail, argument);
	for (int i = 0; i < 8; i++)
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, i % 2, 0, (uint32_t)(i * 9) % 50);
	world_barrier(member);
	nezha_team_detach(member->team);
	mock_rail_end(&rail);
}

static void test_collective(void **state)
{
	(void)state;
	for (int fault = MOCK_GOOD; fault < MOCK_FAULTS; fault++)
		for (int ranks = 2; ranks <= 4; ranks++) {
			struct mock_hub *hub;
			int failures;

			if (!world_due(fault + MOCK_FAULTS * (ranks - 2)))
				continue;
			hub = mock_hub_create(ranks, fault);
			failures = world_run(ranks, 2, NEZHA_POLICY_ECF, with_mock, hub);
			if (failures)
				print_message("mock fault %d, %d ranks\n", fault, ranks);
			assert_int_equal(failures, 0);
			mock_hub_destroy(hub);
		}
}

/* Several of them, of which the last one has a fault: the others do their part none the less. */
struct mocks {
	int count;
	struct mock_hub *hubs[NEZHA_COLLECTIVES_MAX];
};

static void with_mocks(struct member *member, void *argument)
{
	const struct mocks *mocks = argument;
	struct mock_rail rails[NEZHA_COLLECTIVES_MAX];

	for (int i = 0; i < mocks->count; i++)
		attach_mock(member, &mock_token_ops, &rails[i], mocks->hubs[i]);
	for (int i = 0; i < 24; i++)
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, i % 5 ? 50021 : 300, 4096, i % 2, 0, 0);
	world_barrier(member);
	for (int i = mocks->count; i-- > 0;) {
		/* Which of them are best for later calls is a matter of times, which are not this test's. */
		EXPECT(member, rails[i].calls >= NEZHA_SPLIT_TRIES);
		EXPECT(member, i == mocks->count - 1 || rails[i].finals > 0);
		nezha_team_detach(member->team);
		mock_rail_end(&rails[i]);
	}
}

static void test_collectives(void **state)
{
	(void)state;
	for (int fault = MOCK_GOOD; fault < MOCK_FAULTS; fault++)
		for (int count = 2; count <= NEZHA_COLLECTIVES_MAX; count += 2) {
			struct mocks mocks = { count, { NULL } };
			int failures;

			for (int i = 0; i < count; i++)
				mocks.hubs[i] = mock_hub_create(2 + fault % 3, i < count - 1 ? MOCK_GOOD : (enum mock_fault)fault);
			failures = world_run(2 + fault % 3, 2, NEZHA_POLICY_ECF, with_mocks, &mocks);
			if (failures)
				print_message("%d mocks, fault %d\n", count, fault);
			assert_int_equal(failures, 0);
			for (int i = 0; i < count; i++)
				mock_hub_destroy(mocks.hubs[i]);
		}
}

/* A rank that loses the rail within the opening, and has it again before the first note, divides calls as the others do. */
struct opening {
	struct mock_hub *hub;
	struct nezha_split splits[3];  /* by rank */
};

static void with_opening(struct member *member, void *argument)
{
	struct opening *opening = argument;
	struct nezha_team *team = member->team;
	struct mock_rail rail;

	attach_mock(member, &mock_token_ops, &rail, opening->hub);
	nezha_fairlock_take(&member->engine->lock);
	rail.asked = member->rank == 1 ? MOCK_STAYS : 0;
	nezha_collective_open(team, 1);
	rail.asked = 0;
	nezha_fairlock_give(&member->engine->lock);
	for (int i = 0; i < 3; i++)
		world_call(member, team, NEZHA_FLOAT32, NEZHA_SUM, 5000, 4096, false, 0, 0);
	world_call(member, team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, false, 0, 0);
	world_barrier(member);
	opening->splits[member->rank] = *team->split;
	nezha_team_detach(team);
	mock_rail_end(&rail);
}

static void test_opening(void **state)
{
	struct opening opening = { mock_hub_create(3, MOCK_LEAVES), { { 0 } } };

	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, with_opening, &opening), 0);
	mock_hub_destroy(opening.hub);
	for (int rank = 1; rank < 3; rank++)
		for (int k = 0; k < NEZHA_SPLIT_CLASSES; k++)
			assert_memory_equal(opening.splits[rank].classes[k].tried, opening.splits[0].classes[k].tried,
			                    sizeof opening.splits[0].classes[k].tried);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collective),
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_opening),
	};

	world_filter();
	return cmocka_run_group_tests_name("collective", tests, NULL, NULL);
}
