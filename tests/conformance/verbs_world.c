/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/verbs_world.h"

#include <stdlib.h>

#include "rails/clock.h"
#include "tests/conformance/fake_verbs.h"
#include "tuning/grid.h"
#include "tuning/status.h"

#define PATIENCE (20 * NEZHA_SEC)

int verbs_world_run(const char *rails, int ranks, int count, enum nezha_policy_kind policy,
                    void (*body)(struct member *member, void *argument), void *argument)
{
	int failures;

	nezha_verbs_api_use(&fake_verbs);
	setenv("NEZHA_TEST_VERBS", rails, 1);
	failures = world_run(ranks, count, policy, body, argument);
	unsetenv("NEZHA_TEST_VERBS");
	return failures + fake_verbs_objects();
}

void verbs_world_call(struct member *member, uint64_t count, uint32_t block, bool in_place)
{
	world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, count, block, in_place, 0, 0);
}

bool verbs_world_calls_until(struct member *member, bool (*pending)(struct member *member, void *argument), void *argument)
{
	uint64_t limit = nezha_now() + PATIENCE, waiting = 1, left = 1;

	for (uint64_t i = 0; waiting && left; i++) {
		verbs_world_call(member, 100003 + i % 7 * 8191, 16384, i % 2);
		/* All decide alike: by calls. */
		waiting = pending(member, argument);
		left = nezha_now() < limit;
		EXPECT(member, nezha_allreduce(member->team, &waiting, &waiting, 1, NEZHA_UINT64, NEZHA_SUM,
		                               &(struct nezha_way){ .block = NEZHA_BLOCK_MIN }) == NEZHA_OK);
		EXPECT(member, nezha_allreduce(member->team, &left, &left, 1, NEZHA_UINT64, NEZHA_MIN,
		                               &(struct nezha_way){ .block = NEZHA_BLOCK_MIN }) == NEZHA_OK);
	}
	return !waiting;
}

void verbs_world_events(const struct member *member, uint64_t *losses, uint64_t *returns)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX);

	*losses = *returns = 0;
	for (size_t r = 0; r < count; r++) {
		*losses += stats[r].failures;
		*returns += stats[r].returns;
	}
}

bool verbs_world_is_down(struct member *member, void *argument)
{
	uint64_t losses, returns;

	(void)argument;
	verbs_world_events(member, &losses, &returns);
	return losses != returns;
}

bool verbs_world_is_down_or_unhurt(struct member *member, void *argument)
{
	uint64_t losses, returns;

	verbs_world_events(member, &losses, &returns);
	return !losses || verbs_world_is_down(member, argument);
}
