/* SPDX-License-Identifier: BSD-3-Clause
 * When a queue pair is a path and when it is not: the proof of the handshake, queue pairs that break, ports that go down or change,
 * over the provider of fake_verbs.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/verbs_end.h"
#include "tests/conformance/fake_port.h"
#include "tests/conformance/fake_verbs.h"
#include "tests/conformance/verbs_world.h"
#include "tuning/status.h"

#define FOR_EVER (1 << 30)
#define PATIENCE (10 * NEZHA_SEC)
#define OLD_PAUSE (80 * NEZHA_MSEC)     /* that of rails whose attempts cost nothing */

static int run(const char *rails, int ranks, int count, void (*body)(struct member *, void *), void *argument)
{
	return verbs_world_run(rails, ranks, count, NEZHA_POLICY_SLICE, body, argument);
}

static struct nezha_rail_stats stats_of(struct member *member, int rail)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];

	nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX);
	return stats[rail];
}

/* ---- the proof ---- */

/* Which of the rails a new communicator is told to work, after at most so many seconds. */
static uint32_t rails_of_new_team(struct member *member, uint64_t id, double timeout)
{
	struct nezha_team *team;
	uint32_t rails = 0;

	EXPECT(member, nezha_team_create(member->engine, member->world->cards, member->world->ranks, member->rank, id,
	                                 &team) == NEZHA_OK);
	EXPECT(member, nezha_team_connect(team, timeout, &rails) == NEZHA_OK);
	world_barrier(member);
	nezha_team_destroy(team);
	return rails;
}

static bool pauses_are_short(struct member *member, void *argument)
{
	bool shorter;

	(void)argument;
	nezha_fairlock_take(&member->engine->lock);
	shorter = member->team->right->paths[0].pause <= OLD_PAUSE;
	nezha_fairlock_give(&member->engine->lock);
	return shorter;
}

/* Neither end has said why it does not get through. */
static bool is_untold(struct member *member, void *argument)
{
	bool untold;

	(void)argument;
	nezha_fairlock_take(&member->engine->lock);
	untold = !member->team->right->paths[0].why_told && !member->team->left->paths[0].why_told;
	nezha_fairlock_give(&member->engine->lock);
	return untold;
}

static bool carries_nothing(struct member *member, void *argument)
{
	(void)argument;
	return !stats_of(member, 0).bytes_sent;
}

static void dead_from_the_beginning(struct member *member, void *argument)
{
	const struct nezha_path *path = &member->team->right->paths[0];
	enum fake_fault fault = *(enum fake_fault *)argument;

	EXPECT(member, (rails_of_new_team(member, 2, 10) & 3) == 2);
	EXPECT(member, verbs_world_calls_until(member, is_untold, NULL));
	if (fault != FAKE_SILENCE)      /* of which each attempt takes 2 s */
		EXPECT(member, verbs_world_calls_until(member, pauses_are_short, NULL));
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, !path->up && !path->lost);
	nezha_fairlock_give(&member->engine->lock);
	EXPECT(member, carries_nothing(member, NULL) && stats_of(member, 0).failures == 0);
	world_barrier(member);
	EXPECT(member, fake_verbs_happened(fault) > 0);
	world_barrier(member);
	/* The way is free: it is found without anything else happening. */
	if (member->rank == 0)
		fake_verbs_fault(fault, 0, 0);
	EXPECT(member, verbs_world_calls_until(member, carries_nothing, NULL));
	EXPECT(member, (rails_of_new_team(member, 3, 10) & 3) == 3);
}

/* TCP works, the queue pairs do not: such a rail is no rail, from the opening on, and not one that is lost again and again. */
static void test_dead_from_the_beginning(void **state)
{
	enum fake_fault faults[] = { FAKE_COMPLETION, FAKE_SILENCE, FAKE_MISSING };

	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		fake_verbs_fault(faults[i], 1, FOR_EVER);
		assert_int_equal(run("fake,tcp", 2, 2, dead_from_the_beginning, &faults[i]), 0);
	}
}

static void no_rail_at_all(struct member *member, void *argument)
{
	(void)argument;
	verbs_world_call(member, 100003, 16384, false);
	world_barrier(member);
	if (member->rank == 0) {
		fake_verbs_fault(FAKE_COMPLETION, 1, FOR_EVER);
		fake_verbs_break_pairs();
	}
	world_barrier(member);
	/* Nobody is in a call who would see the paths break. */
	for (int i = 0; i < 50; i++) {
		nezha_fairlock_take(&member->engine->lock);
		nezha_engine_step(member->engine);
		nezha_fairlock_give(&member->engine->lock);
	}
	EXPECT(member, rails_of_new_team(member, 2, 0.5) == 0);
	world_barrier(member);
	if (member->rank == 0)
		fake_verbs_fault(FAKE_COMPLETION, 0, 0);
}

/* With no other rail a new communicator finds out within its time that there is none, and goes without. */
static void test_no_rail_at_all(void **state)
{
	(void)state;
	assert_int_equal(run("fake", 2, 1, no_rail_at_all, NULL), 0);
}

/* ---- queue pairs that break ---- */

static void pairs_break(struct member *member, void *argument)
{
	uint64_t losses, returns;

	(void)argument;
	for (int i = 0; i < 3; i++) {
		verbs_world_call(member, 300007, 16384, i % 2);
		if (member->rank == i % 2)
			fake_verbs_break_pairs();
		EXPECT(member, verbs_world_calls_until(member, i ? verbs_world_is_down : verbs_world_is_down_or_unhurt, NULL));
	}
	verbs_world_events(member, &losses, &returns);
	EXPECT(member, losses && losses == returns);
}

static void test_pairs_in_the_error_state(void **state)
{
	(void)state;
	assert_int_equal(run("fake,tcp", 3, 2, pairs_break, NULL), 0);
	assert_int_equal(run("fake", 2, 1, pairs_break, NULL), 0);
}

/* ---- ports ---- */

struct change {
	struct fake_port port;
	enum ibv_event_type event;
	bool told;              /* the event comes; else nobody tells */
};

static void set_port(const struct change *change)
{
	fake_port_set(&change->port);
	if (change->told)
		fake_verbs_event(change->event);
}

static bool is_up(struct member *member, void *argument)
{
	(void)argument;
	return !verbs_world_is_down(member, NULL);
}

/* Whoever was at a connection of the rail when its port went down has ended it. */
static bool is_left_alone(struct member *member)
{
	uint64_t limit = nezha_now() + PATIENCE;
	struct nezha_link *link;
	bool busy = true;

	while (busy && nezha_now() < limit) {
		busy = false;
		nezha_fairlock_take(&member->engine->lock);
		LIST_FOREACH(link, &member->engine->links, entry)
			busy = busy || link->paths[0].connecting;
		nezha_fairlock_give(&member->engine->lock);
		usleep(1000);
	}
	return !busy;
}

static void port_down_and_up(struct member *member, void *argument)
{
	struct change down = { fake_port_good, IBV_EVENT_PORT_ERR, true };
	struct change *up = argument;
	long made;

	down.port.state = IBV_PORT_DOWN;
	if (member->rank == 0)
		set_port(&down);
	EXPECT(member, verbs_world_calls_until(member, is_up, NULL));
	EXPECT(member, is_left_alone(member));
	world_barrier(member);
	/* From now on nobody tries, though there is time for a retry. */
	made = fake_verbs_pairs_made();
	usleep(400000);
	EXPECT(member, fake_verbs_pairs_made() == made);
	world_barrier(member);
	if (member->rank == 0)
		set_port(up);
	EXPECT(member, verbs_world_calls_until(member, verbs_world_is_down, NULL));
}

static void test_port_down(void **state)
{
	struct change up = { fake_port_good, IBV_EVENT_PORT_ACTIVE, true };

	(void)state;
	assert_int_equal(run("fake,tcp", 2, 2, port_down_and_up, &up), 0);
	up.told = false;
	assert_int_equal(run("fake,tcp", 2, 2, port_down_and_up, &up), 0);
}

static void port_moves(struct member *member, void *argument)
{
	const struct change *change = argument;
	const struct nezha_verbs_device *device = member->engine->verbs[0];

	verbs_world_call(member, 300007, 16384, false);
	EXPECT(member, device->lid == 0 && device->mtu == 1024 && device->port.gid == 0);
	world_barrier(member);
	if (member->rank == 0)
		set_port(change);
	EXPECT(member, verbs_world_calls_until(member, verbs_world_is_down_or_unhurt, NULL));
	EXPECT(member, device->lid == change->port.lid && device->mtu == nezha_verbs_mtu(change->port.mtu));
	EXPECT(member, change->port.gids[device->port.gid] == device->gid.raw[0]);
	EXPECT(member, device->port.gid == (change->event == IBV_EVENT_GID_CHANGE ? 2 : 0));
}

/* What a connection needs to know of the port is read anew, and paths that were connected with what was are made again. */
static void test_port_moves(void **state)
{
	struct change lid = { { .state = IBV_PORT_ACTIVE, .mtu = IBV_MTU_2048, .lid = 7, .gids = { 0, 1, 2, 3 } },
	                      IBV_EVENT_LID_CHANGE, true };
	struct change gid = { { .state = IBV_PORT_ACTIVE, .mtu = IBV_MTU_512, .gids = { 9, 1, 0, 3 } },
	                      IBV_EVENT_GID_CHANGE, true };

	(void)state;
	assert_int_equal(run("fake,tcp", 2, 2, port_moves, &lid), 0);
	fake_port_set(&fake_port_good);
	assert_int_equal(run("fake,tcp", 2, 2, port_moves, &gid), 0);
	fake_port_set(&fake_port_good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead_from_the_beginning),
		cmocka_unit_test(test_no_rail_at_all),
		cmocka_unit_test(test_pairs_in_the_error_state),
		cmocka_unit_test(test_port_down),
		cmocka_unit_test(test_port_moves),
	};

	return cmocka_run_group_tests_name("verbs paths", tests, NULL, NULL);
}
