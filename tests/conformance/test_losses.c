/* SPDX-License-Identifier: BSD-3-Clause
 * Paths that are lost while calls go on, also where one end alone knows; and calls that are restricted to some of the rails. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

/* ---- connections that break ---- */

struct cutter {
	struct member *member;
	bool stop;
	pthread_mutex_t lock;
};

static void *cut_again_and_again(void *argument)
{
	struct cutter *cutter = argument;
	unsigned seed = 1;
	bool stop = false;

	for (int i = 0; !stop && i < 2000; i++) {
		struct timespec pause = { 0, 1000000 + rand_r(&seed) % 4000000 };

		nanosleep(&pause, NULL);
		world_cut(cutter->member, (int)(rand_r(&seed) % 64));
		pthread_mutex_lock(&cutter->lock);
		stop = cutter->stop;
		pthread_mutex_unlock(&cutter->lock);
	}
	return NULL;
}

static void calls_under_cuts(struct member *member, void *argument)
{
	struct cutter cutter = { .member = member, .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t thread;

	(void)argument;
	if (member->rank == 1 && pthread_create(&thread, NULL, cut_again_and_again, &cutter))
		abort();
	for (int i = 0; i < 30; i++)
		world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003 + (uint64_t)i * 8191, 16384, i % 2, 0, 0);
	if (member->rank == 1) {
		pthread_mutex_lock(&cutter.lock);
		cutter.stop = true;
		pthread_mutex_unlock(&cutter.lock);
		pthread_join(thread, NULL);
	}
}

static void test_cuts(void **state)
{
	uint64_t before = atomic_load(&world_lost);

	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, calls_under_cuts, NULL), 0);
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, calls_under_cuts, NULL), 0);
	assert_int_equal(world_run(4, 3, NEZHA_POLICY_SLICE, calls_under_cuts, NULL), 0);
	assert_int_equal(world_run(3, 3, NEZHA_POLICY_SHARE, calls_under_cuts, NULL), 0);
	assert_true(atomic_load(&world_lost) > before);
}

/* ---- calls that are restricted to some of the rails ---- */

/* On a machine so slow that a path is given up, others help out: a call during that shows nothing. */
static void calls_over_some_rails(struct member *member, void *argument)
{
	struct nezha_rail_set last_two;
	int shown = 0;

	(void)argument;
	EXPECT(member, nezha_rail_set_parse("tcp:127.77.2.0/24,tcp:127.77.1.0/24", 35, &last_two) == NEZHA_OK);
	if (!getenv("NEZHA_TEST_VERBS"))
		EXPECT(member, nezha_team_rails_named(member->team, &last_two) == 6);
	for (uint32_t rails = 1; rails < 8; rails++) {
		uint64_t losses, returns, unused;

		world_count_events(member, &unused, &returns);
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 500007, 8192, rails % 2, rails, 0);
		world_count_events(member, &losses, &unused);
		if (losses != returns)
			continue;
		shown++;
		for (uint32_t r = 0; r < 3; r++)
			EXPECT(member, rails >> r & 1 || !nezha_team_last_bytes(member->team, r));
	}
	EXPECT(member, shown > 0);
}

/* The one rail of a call is lost before it: the others do its work. */
static void calls_over_a_lost_rail(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 8; i++) {
		world_take_rail_away(member, 1);
		world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003, 8192, i % 2, 2, 0);
		EXPECT(member, nezha_team_last_bytes(member->team, 0) || nezha_team_last_bytes(member->team, 2));
		EXPECT(member, !nezha_team_last_bytes(member->team, 1));
		world_barrier(member);
		world_give_rail_back(member, 1);
	}
}

static void test_some_rails(void **state)
{
	(void)state;
	for (int policy = NEZHA_POLICY_ECF; policy <= NEZHA_POLICY_SHARE; policy++)
		assert_int_equal(world_run(3, 3, policy, calls_over_some_rails, NULL), 0);
	assert_int_equal(world_run(3, 3, NEZHA_POLICY_ECF, calls_over_a_lost_rail, NULL), 0);
	assert_int_equal(world_run(3, 3, NEZHA_POLICY_SHARE, calls_over_a_lost_rail, NULL), 0);
}

/* ---- losses that only one end can see ---- */

static bool both_are_up(const struct member *member)
{
	const struct nezha_path *path = &member->team->right->paths[1];

	return path->up && !path->connecting && member->team->left->paths[1].up;
}

static bool sending_end_is_down(const struct member *member)
{
	return !member->team->right->paths[1].up;
}

static bool receiving_end_is_down(const struct member *member)
{
	return !member->team->left->paths[1].up;
}

/* When the path is lost, it does not come back: it has just done so from another loss, so that this one does not make it due at once. */
static void keep_away(struct nezha_path *path)
{
	path->retry_at = UINT64_MAX;
	path->damping = (struct nezha_damping){ .up_since = nezha_now(), .until = 1 };
}

/* Rank 1 gives up what comes in over rail 1, or rank 0 what goes out; a copy of the descriptor keeps the connection
 * itself alive, so that the kernel tells the peer nothing and acknowledges whatever it sends. */
static int give_up_unseen(struct member *member, bool sender)
{
	struct nezha_path *path = &member->team->right->paths[1];
	struct nezha_inpath *inpath = &member->team->left->paths[1];
	int copy = -1;

	nezha_fairlock_take(&member->engine->lock);
	if (member->rank == 0)
		keep_away(path);
	if (sender && member->rank == 0) {
		copy = dup(path->end.fd);
		nezha_link_path_fail(path, "the test says so");
	} else if (!sender && member->rank == 1) {
		copy = dup(inpath->end.fd);
		nezha_inlink_path_fail(inpath, "the test says so");
	}
	nezha_fairlock_give(&member->engine->lock);
	return copy;
}

static atomic_int ends_that_know, ends_wanted;

static bool both_ends_know(const struct member *member)
{
	(void)member;
	return atomic_load(&ends_that_know) >= atomic_load(&ends_wanted);
}

/* The end that knows may have more to send before it can tell: it goes on until the other one knows, too. */
static void await_loss(struct member *member, int wanted)
{
	EXPECT(member, world_wait_until(member, member->rank ? receiving_end_is_down : sending_end_is_down));
	atomic_store(&ends_wanted, wanted);
	atomic_fetch_add(&ends_that_know, 1);
	EXPECT(member, world_wait_until(member, both_ends_know));
}

static void unseen_losses(struct member *member, void *argument)
{
	(void)argument;
	if (member->rank == 0)
		atomic_store(&ends_that_know, 0);
	world_barrier(member);
	for (int i = 0; i < 6; i++) {
		int copy;

		EXPECT(member, world_wait_until(member, both_are_up));
		world_barrier(member);
		copy = give_up_unseen(member, i % 2);
		if (member->rank < 2)
			await_loss(member, 2 * (i + 1));
		world_barrier(member);
		if (copy >= 0)
			close(copy);
		world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003, 8192, i % 2, 0, 0);
		world_barrier(member);
		world_give_rail_back(member, 1);
	}
}

static void test_unseen_losses(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 3, NEZHA_POLICY_ECF, unseen_losses, NULL), 0);
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, unseen_losses, NULL), 0);
}

/* ---- a connection that ends in the middle of a block ---- */

#define OF_THE_BLOCK 200000u    /* bytes that are announced */
#define PACKET 16000u           /* bytes */

static bool first_rail_is_up(const struct member *member)
{
	return member->team->right->paths[0].up && member->team->left->paths[0].up;
}

static bool nothing_comes_in(const struct member *member)
{
	return !member->team->left->paths[0].up;
}

static bool put(int fd, const void *data, size_t bytes)
{
	return send(fd, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* Some of a block, packet by packet, so that the receiver no longer asks for each; then one more, of which it hears only by the connection's
 * end. */
static bool begin_a_block(int fd)
{
	static const char zeros[PACKET];
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_PROBE, 0, 0);
	bool done;

	record.length = OF_THE_BLOCK;
	done = put(fd, &record, sizeof record);
	for (int packet = 0; packet < 4; packet++) {
		done = done && put(fd, zeros, sizeof zeros);
		usleep(5000);
	}
	return done && put(fd, zeros, sizeof zeros);
}

static void end_in_a_block(struct member *member, void *argument)
{
	struct nezha_path *path = &member->team->right->paths[0];
	const bool *reset = argument;

	if (path->ops != &nezha_tcp_rail)
		return;
	EXPECT(member, world_wait_until(member, first_rail_is_up));
	world_barrier(member);
	if (member->rank == 0) {
		nezha_fairlock_take(&member->engine->lock);
		keep_away(path);
		EXPECT(member, begin_a_block(path->end.fd));
		if (*reset)
			EXPECT(member, !connect(path->end.fd, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)));
		else
			EXPECT(member, !shutdown(path->end.fd, SHUT_WR));
		nezha_fairlock_give(&member->engine->lock);
	} else {
		EXPECT(member, world_wait_until(member, nothing_comes_in));
	}
	world_barrier(member);
	world_give_rail_back(member, 0);
	world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003, 8192, false, 0, 0);
}

static void test_end_in_a_block(void **state)
{
	bool reset = false;

	(void)state;
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, end_in_a_block, &reset), 0);
	reset = true;
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, end_in_a_block, &reset), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_some_rails),
		cmocka_unit_test(test_unseen_losses),
		cmocka_unit_test(test_end_in_a_block),
	};

	world_filter();
	return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
