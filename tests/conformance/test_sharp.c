/* SPDX-License-Identifier: BSD-3-Clause
 * The rail of SHARP with a library of our own in NVIDIA's place (fake_sharp.c): absent, good, refusing and hanging. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rails/collective.h"
#include "rails/sharp.h"
#include "tests/conformance/world.h"
#include "tuning/log.h"
#include "tuning/status.h"

static struct nezha_engine_config like = { .sharp = { .wanted = true, .leader = true } };

static uint64_t sent(const struct member *member)
{
	struct nezha_rail_stats stats[NEZHA_STATS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_STATS_MAX);

	return count && !strcmp(stats[count - 1].device, "sharp") ? stats[count - 1].bytes_sent : 0;
}

static void call(struct member *member, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, bool in_place)
{
	world_call(member, member->team, type, op, count, block, in_place, 0, 0);
}

static int run(const char *mode, int ranks, int rails, void (*body)(struct member *member, void *argument))
{
	setenv("FAKE_SHARP", mode, 1);
	return world_run_like(ranks, rails, NEZHA_POLICY_ECF, &like, body, NULL);
}

/* All whose bits do not depend on the order. */
static void all_types(struct member *member, void *argument)
{
	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++) {
			uint64_t before = sent(member);
			bool ours = op == NEZHA_SUM || op == NEZHA_MIN || op == NEZHA_MAX || op >= NEZHA_BAND;

			if (!nezha_op_fits(op, type) || (op == NEZHA_SUM && type >= NEZHA_FLOAT32))
				continue;
			call(member, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2);
			EXPECT(member, ours || sent(member) == before);
		}
	for (uint64_t count = 1; count < 1 << 20; count = count * 5 + 3)
		for (int i = 0; i < 4; i++)
			call(member, NEZHA_INT32, NEZHA_SUM, count, i < 2 ? 4096 : 65536, i % 2);
	EXPECT(member, sent(member) > 0);
}

static void test_good(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= 4; ranks++)
		assert_int_equal(run("good", ranks, 1 + ranks % 2, all_types), 0);
}

/* Sums of floats: the same bits on all ranks, and as near as can be to the ring's. */
#define FLOATS 100003
static float sums[WORLD_MOST][FLOATS];

static void float_sums(struct member *member, void *argument)
{
	float *reference = malloc(sizeof sums[0]);

	(void)argument;
	world_reference(reference, NEZHA_FLOAT32, NEZHA_SUM, FLOATS, 8192, member->world->ranks, 5);
	for (int i = 0; i < 6; i++) {
		world_fill(sums[member->rank], NEZHA_FLOAT32, FLOATS, member->rank, 5);
		EXPECT(member, nezha_allreduce(member->team, sums[member->rank], sums[member->rank], FLOATS, NEZHA_FLOAT32, NEZHA_SUM,
		                               &(struct nezha_way){ .block = 8192 }) == NEZHA_OK);
		world_barrier(member);
		EXPECT(member, !memcmp(sums[0], sums[member->rank], sizeof sums[0]));
		for (int k = 0; k < FLOATS; k++)
			if (fabsf(sums[member->rank][k] - reference[k]) > 8)   /* of 2^23 */
				member->failures++;
		world_barrier(member);
	}
	free(reference);
}

static void used_float_sums(struct member *member, void *argument)
{
	(void)argument;
	float_sums(member, NULL);
	EXPECT(member, sent(member) > 0);
}

static void unused(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent(member) == 0);
}

static void test_floats(void **state)
{
	(void)state;
	assert_int_equal(run("good", 3, 2, used_float_sums), 0);
	assert_int_equal(run("no-float", 3, 2, unused), 0);
	like.reproducible = true;
	assert_int_equal(run("good", 3, 2, unused), 0);
	like.reproducible = false;
}

static void test_refusals(void **state)
{
	(void)state;
	assert_int_equal(run("refuses", 3, 2, unused), 0);
	assert_int_equal(run("refuses-group", 3, 1, unused), 0);
	assert_int_equal(run("wrong", 2, 2, unused), 0);
	like.sharp.leader = false;
	assert_int_equal(run("good", 3, 2, unused), 0);
	like.sharp.leader = true;
}

/* It hangs in the middle of calls: those are right, and it is not used again, by new teams neither. */
static void hangs(struct member *member, void *argument)
{
	struct nezha_team *other;
	uint64_t before;

	(void)argument;
	for (int i = 0; i < 8; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	before = sent(member);
	EXPECT(member, before > 0 && member->engine->sharp_dead);
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	other = world_team(member, 9);
	for (int i = 0; i < 4; i++)
		world_call(member, other, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2, 0, 0);
	EXPECT(member, sent(member) == before);
	world_barrier(member);
	nezha_team_destroy(other);
}

static void test_hangs(void **state)
{
	(void)state;
	assert_int_equal(run("hangs-40", 3, 2, hangs), 0);
	assert_int_equal(run("hangs-0", 3, 2, unused), 0);
}

static void test_hanging_init(void **state)
{
	(void)state;
	assert_int_equal(run("hangs-init", 3, 2, unused), 0);
}

/* ---- a rank that gets no thread for the library ---- */

static _Thread_local bool no_threads;

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *), void *restrict argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return no_threads ? EAGAIN : create(thread, attributes, start, argument);
}

/* What a new team of all ranks sends by SHARP; rank 1 opens it so. */
static uint64_t sent_by_new_team(struct member *member, uint64_t id, bool without)
{
	uint64_t before = sent(member);
	struct nezha_team *team;

	no_threads = without && member->rank == 1;
	team = world_team(member, id);
	no_threads = false;
	for (int i = 0; i < 4; i++)
		world_call(member, team, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2, 0, 0);
	world_barrier(member);
	nezha_team_destroy(team);
	return sent(member) - before;
}

/* That is no fault of the library's: the next team has it again. */
static void one_without_thread(struct member *member, void *argument)
{
	(void)argument;
	EXPECT(member, sent_by_new_team(member, 9, true) == 0);
	EXPECT(member, !member->engine->sharp_dead);
	EXPECT(member, sent_by_new_team(member, 10, false) > 0);
}

static void test_no_thread(void **state)
{
	(void)state;
	assert_int_equal(run("good", 3, 2, one_without_thread), 0);
}

/* ---- a rank that cannot attach it ---- */

static void fill(struct member *member)
{
	/* Without a token: it gets no blocks and tells nothing. */
	static const struct nezha_collective_ops idle = { .name = "idle" };

	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++)
		EXPECT(member, nezha_team_attach(member->team, &(struct nezha_collective){ .ops = &idle }) == NEZHA_OK);
}

/* Rank 1 has no room for it, while the others have attached it already.  Whichever of the team's calls it is in which they hear
 * of that, none waits for a note that rank 1 does not send. */
static void one_without_room(struct member *member, void *argument)
{
	struct nezha_team *team = member->team;
	int before = member->rank == 1 ? NEZHA_COLLECTIVES_MAX : 0;

	(void)argument;
	member->engine->config.sharp.wanted = true;
	if (before)
		fill(member);
	for (uint32_t i = 0; i < 8; i++) {
		while (team->entered % 8 != i)
			call(member, NEZHA_INT32, NEZHA_SUM, 5, 4096, false);
		nezha_sharp_open(team);
		EXPECT(member, !team->broken && team->collectives == before);
	}
	call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, false);
	world_barrier(member);
	while (before-- > 0)
		nezha_team_detach(team);
}

static void test_no_room(void **state)
{
	(void)state;
	like.sharp.wanted = false;
	alarm(60);                      /* a rank that waits for a note waits for ever */
	assert_int_equal(run("good", 3, 2, one_without_room), 0);
	alarm(0);
	like.sharp.wanted = true;
}

/* A late rank is no hang. */
static void one_late(struct member *member, void *argument)
{
	uint64_t before = sent(member);

	(void)argument;
	if (member->rank == 1)
		sleep(3);
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent(member) > before && !member->engine->sharp_dead);
}

static void test_late(void **state)
{
	(void)state;
	assert_int_equal(run("good", 3, 2, one_late), 0);
}

static void test_absent(void **state)
{
	(void)state;
	assert_int_equal(run("good", 3, 2, unused), 0);
}

/* Without the library, then, by the same program begun anew, with it: what a process has loaded it keeps. */
int main(int argc, char **argv)
{
	const struct CMUnitTest absent[] = { cmocka_unit_test(test_absent) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_thread),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_hanging_init),
	};
	const char *build = getenv("abs_top_builddir"), *level = getenv("NEZHA_TEST_LOG");
	char folder[4096];

	(void)argc;
	if (sodium_init() < 0)
		return 1;
	nezha_log_open(level ? NEZHA_LOG_INFO : NEZHA_LOG_ERROR, NULL, -1);
	if (getenv("FAKE_SHARP_THERE"))
		return cmocka_run_group_tests_name("sharp", tests, NULL, NULL);
	if (cmocka_run_group_tests_name("sharp, absent", absent, NULL, NULL))
		return 1;
	snprintf(folder, sizeof folder, "%s/tests/conformance/fake", build ? build : ".");
	setenv("LD_LIBRARY_PATH", folder, 1);
	setenv("FAKE_SHARP_THERE", "1", 1);
	execv(argv[0], argv);
	return 1;
}
