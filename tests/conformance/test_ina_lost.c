/* SPDX-License-Identifier: BSD-3-Clause
 * Aggregators that are lost in the middle of calls: killed, stopped, restarted, or reached by no packet.  The bits are always those of the
 * ring, and what is back is used again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rails/collective.h"
#include "rails/ina.h"
#include "tests/conformance/daemons.h"
#include "tests/conformance/ina_world.h"
#include "tests/unit/skip.h"

static void one_call(struct member *member, int i)
{
	ina_call(member, NEZHA_FLOAT64, NEZHA_SUM, 100003 + (uint64_t)(i % 30) * 8191, 16384, i % 2);
}

static void test_kills(void **state)
{
	(void)state;
	for (int rails = 1; rails <= 2; rails++) {
		struct killer killer = { .memory = "64M", .calls = 150, .call = one_call };

		daemons_start(killer.memory);
		assert_int_equal(ina_run(2 + rails, rails, 1, ina_calls_under_kills, &killer), 0);
		daemons_end(SIGKILL);
	}
}

/* It is gone for a while: the links do its work; then it is used again. */
static void calls_without_and_with(struct member *member, void *argument)
{
	uint64_t before;

	(void)argument;
	EXPECT(member, ina_use(member, 0));
	if (member->rank == 0)
		daemons_end(SIGKILL);
	EXPECT(member, ina_give_up(member, 0));
	before = ina_sent(member, 0);
	for (int i = 0; i < 4; i++)
		ina_call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, ina_sent(member, 0) == before);
	world_barrier(member);
	if (member->rank == 0)
		daemons_start("64M");
	world_barrier(member);
	EXPECT(member, ina_use(member, 0));
}

static void test_return(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(3, 2, 1, calls_without_and_with, NULL), 0);
	daemons_end(SIGTERM);
}

/* The second of two is gone for a while: the first one goes on all the time, the second one is used again. */
static void one_of_two_lost(struct member *member, void *argument)
{
	uint64_t first, second;

	(void)argument;
	EXPECT(member, ina_use(member, 0));
	EXPECT(member, ina_use(member, 1));
	if (member->rank == 0)
		daemons_end_one(1, SIGKILL);
	EXPECT(member, ina_give_up(member, 1));
	first = ina_sent(member, 0);
	second = ina_sent(member, 1);
	for (int i = 0; i < 4; i++)
		ina_call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, ina_sent(member, 0) > first);
	EXPECT(member, ina_sent(member, 1) == second);
	world_barrier(member);
	if (member->rank == 0)
		daemons_start_one(1, "64M");
	EXPECT(member, ina_use(member, 1));
}

static void test_one_of_two(void **state)
{
	struct nezha_engine_config like = ina_like(2);

	(void)state;
	daemons_start_several(2);
	assert_int_equal(ina_run_calm(3, 2, &like, 0, one_of_two_lost, NULL), 0);
	daemons_end_several(2);
}

/* The first one is harassed as above; the second one has nothing to do with it. */
static void kills_of_one(struct member *member, void *argument)
{
	ina_calls_under_kills(member, argument);
	EXPECT(member, ina_sent(member, 1) > 0);
}

static void test_kills_of_one(void **state)
{
	struct killer killer = { .memory = "64M", .calls = 150, .call = one_call };
	struct nezha_engine_config like = ina_like(2);

	(void)state;
	daemons_start_several(2);
	assert_int_equal(ina_run_calm(3, 2, &like, 1, kills_of_one, &killer), 0);
	daemons_end_several(2);
}

/* A rank that loses its session between the agreement to use it and the first call takes part by handing its blocks back. */
static void lost_before_use(struct member *member, void *argument)
{
	struct nezha_team *team;
	struct nezha_ina *ina;

	(void)argument;
	for (uint64_t id = 200; id < 204; id++) {
		team = world_team(member, id);
		ina = team->collective[0].rail;
		/* mostly at once; not if the daemon was slow to answer */
		for (int i = 0; i < 2000 && !team->collective[0].agreed; i++) {
			world_call(member, team, NEZHA_INT32, NEZHA_SUM, 16411, 4096, true, 0, 0);
			pause_ms(5);
		}
		EXPECT(member, team->collective[0].agreed != 0);
		world_barrier(member);
		if (member->rank == 1) {
			nezha_fairlock_take(&member->engine->lock);
			nezha_ina_session_end(ina);
			nezha_collective_open(team, 1);
			nezha_fairlock_give(&member->engine->lock);
			EXPECT(member, team->collective[0].agreed != 0);
		}
		world_barrier(member);
		for (int i = 0; i < 12; i++)
			world_call(member, team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, (id + (uint64_t)i) % 2, 0, 0);
		world_barrier(member);
		nezha_team_destroy(team);
	}
}

static void test_lost_before_use(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(3, 2, 1, lost_before_use, NULL), 0);
	daemons_end(SIGTERM);
}

static atomic_bool any_seldom;           /* on any rank */

/* Sessions open, but no packet gets through: each costs a call the time that silence takes, so they come more and more
 * seldom; and as before once packets get through. */
static void only_control(struct member *member, void *argument)
{
	struct nezha_ina *ina = member->team->collective[0].rail;
	bool seldom = false;

	(void)argument;
	for (int i = 0; i < 2000 && !seldom; i++) {
		ina_call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
		seldom = ina->pause > 640 * NEZHA_MSEC;
		pause_ms(5);
		/* all ranks or none go on */
		world_barrier(member);
		if (seldom)
			atomic_store(&any_seldom, true);
		world_barrier(member);
		seldom = atomic_load(&any_seldom);
	}
	EXPECT(member, seldom);
	EXPECT(member, member->engine->aggregator_told[0] == (member->rank == 0));
	EXPECT(member, member->engine->stats[NEZHA_RAILS_MAX].failures < 20);
	world_barrier(member);
	if (member->rank == 0) {
		daemons_end(SIGKILL);
		unsetenv("LD_PRELOAD");
		daemons_start("64M");
	}
	world_barrier(member);
	EXPECT(member, ina_use(member, 0));
	EXPECT(member, ina->barren == 0 && ina->pause == 0);
}

static void test_only_control(void **state)
{
	(void)state;
	if (!daemons_make_lossy("100"))
		SKIP_DETAIL("a bad network: tests/conformance/lossy.so is not built");
	atomic_store(&any_seldom, false);
	daemons_start("64M");
	assert_int_equal(ina_run(3, 2, 1, only_control, NULL), 0);
	daemons_end(SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_return),
		cmocka_unit_test(test_kills),
		cmocka_unit_test(test_one_of_two),
		cmocka_unit_test(test_kills_of_one),
		cmocka_unit_test(test_lost_before_use),
		cmocka_unit_test(test_only_control),
	};
	int status = ina_prepare();

	return status ? status : cmocka_run_group_tests_name("ina_lost", tests, NULL, NULL);
}
