/* SPDX-License-Identifier: BSD-3-Clause
 * The conformance suite: what every rail must pass; test_losses.c, test_collective.c and test_peers.c go on with it.  Results are
 * compared bit for bit with the fold order that doc/design.md promises. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/world.h"
#include "tuning/agree.h"
#include "tuning/grid.h"
#include "tuning/status.h"

static void all_types(struct member *member, void *argument)
{
	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type) && world_due(type + op))
				world_call(member, member->team, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2, 0, 0);
}

static void test_types(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, all_types, NULL), 0);
}

static void all_counts(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 2, 7, 1021, 1023, 1024, 1025, 4095, 4096, 4097, 65537, 300007, 1 << 20 };

	(void)argument;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 4096, false, 0, 0);
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 65536, true, 0, 0);
	}
}

static void test_counts(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= 5; ranks++)
		for (int policy = NEZHA_POLICY_ECF; policy <= NEZHA_POLICY_SHARE; policy++)
			if (world_due(4 * ranks + policy))
				assert_int_equal(world_run(ranks, 1 + ranks % 3, policy, all_counts, NULL), 0);
}

/* ---- several teams at once ---- */

struct job {
	struct member *member;
	struct nezha_team *team;
	int number;
};

static void *team_job(void *argument)
{
	struct job *job = argument;

	for (int i = 0; i < 12; i++)
		world_call(job->member, job->team, NEZHA_INT32, NEZHA_SUM,
		           (uint64_t)(1000 + 30011 * ((i * 7 + job->number) % 9)), 8192, i % 2, 0, 0);
	return NULL;
}

/* Every rank runs the teams in threads; which goes first differs from rank to rank. */
static void many_teams(struct member *member, void *argument)
{
	enum { TEAMS = 4 };
	struct job jobs[TEAMS];
	pthread_t threads[TEAMS];

	(void)argument;
	for (int t = 0; t < TEAMS; t++)
		jobs[t] = (struct job){ member, world_team(member, (uint64_t)(100 + t)), t };
	for (int t = 0; t < TEAMS; t++)
		if (pthread_create(&threads[t], NULL, team_job, &jobs[(t + member->rank) % TEAMS]))
			abort();
	for (int t = 0; t < TEAMS; t++)
		pthread_join(threads[t], NULL);
	world_barrier(member);
	for (int t = 0; t < TEAMS; t++)
		nezha_team_destroy(jobs[t].team);
}

static void test_teams(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, many_teams, NULL), 0);
}

/* A rank that is late holds its own team only: the other team's large call must go through meanwhile. */
static void *late_job(void *argument)
{
	struct job *job = argument;
	struct timespec pause = { 0, 400000000 };

	if (job->member->rank == 1)
		nanosleep(&pause, NULL);
	world_call(job->member, job->team, NEZHA_FLOAT32, NEZHA_SUM, 1 << 19, 16384, false, 0, 0);
	return NULL;
}

static void one_late(struct member *member, void *argument)
{
	struct job late = { member, world_team(member, 7), 0 };
	pthread_t thread;

	(void)argument;
	if (pthread_create(&thread, NULL, late_job, &late))
		abort();
	for (int i = 0; i < 4; i++)
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 1 << 18, 16384, false, 0, 0);
	pthread_join(thread, NULL);
	world_barrier(member);
	nezha_team_destroy(late.team);
}

static void test_late(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, one_late, NULL), 0);
}

/* ---- disagreement ---- */

static void counts_differ(struct member *member, void *argument)
{
	uint64_t count = member->rank ? 20000 : 10000;
	float *send = calloc(count, sizeof *send), *recv = calloc(count, sizeof *recv);
	int rc;

	(void)argument;
	rc = nezha_allreduce(member->team, send, recv, count, NEZHA_FLOAT32, NEZHA_SUM,
	                     &(struct nezha_way){ .block = 4096 });
	EXPECT(member, rc != NEZHA_OK);
	free(send);
	free(recv);
}

static void test_counts_differ(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, counts_differ, NULL), 0);
}

/* ---- the model ---- */

#define MODEL_CALLS 1500

struct models {
	struct nezha_model of[WORLD_MOST];
};

/* What a call costs in this made-up cluster, differently on each rank, and at times much more. */
static uint64_t made_up_time(int rank, int call, uint64_t bytes, enum nezha_algorithm alg)
{
	uint64_t noise = ((uint64_t)(call * 7919 + rank * 104729) * 2654435761u >> 7) % 1000;
	uint64_t base = alg == NEZHA_ALG_RING ? 100000 + bytes : 50000 + bytes * (call < MODEL_CALLS / 2 ? 3 : 1) / 2;

	return base + base * noise / 2000 + (noise > 990 ? 50 * base : 0);
}

/* The part of a call that goes over the rails, with the note. */
static void noted_part(struct member *member, struct nezha_model *model, uint64_t bytes)
{
	uint64_t note[NEZHA_NOTE_VALUES], count = bytes / sizeof(float);
	bool noted = nezha_model_has_note(model);
	float *vector = calloc(count, sizeof *vector);
	struct nezha_way way = { .block = 4096, .note = noted ? note : NULL };

	if (noted)
		nezha_model_note(model, nezha_team_is_whole(member->team), note);
	EXPECT(member, nezha_allreduce(member->team, vector, vector, count, NEZHA_FLOAT32, NEZHA_SUM, &way) == NEZHA_OK);
	if (noted)
		nezha_model_learn(model, note);
	free(vector);
}

static void learning(struct member *member, void *argument)
{
	struct models *models = argument;
	struct nezha_model *model = &models->of[member->rank];
	int calls[NEZHA_ALG_COUNT] = { 0 };

	for (int i = 0; i < MODEL_CALLS; i++) {
		uint64_t bytes = 4 + 4 * (((uint64_t)i * 2654435761u >> 3) % (1u << (6 + i % 15)));
		struct nezha_choice choice = nezha_model_choose(model, bytes, 4096);
		uint64_t rails = bytes - choice.native;
		struct nezha_model_times times = {
			.native = choice.native ? made_up_time(member->rank, i, choice.native, NEZHA_ALG_NATIVE) : 0,
			.rails = rails ? made_up_time(member->rank, i, rails, NEZHA_ALG_RING) : 0,
			.idle = true,
		};

		calls[choice.alg]++;
		if (choice.alg != NEZHA_ALG_NATIVE)
			noted_part(member, model, rails);
		nezha_model_count(model, bytes, &choice, &times);
		world_barrier(member);
		if (nezha_model_digest(model) != nezha_model_digest(&models->of[0])) {
			EXPECT(member, !"all ranks hold the same model");
			break;
		}
		world_barrier(member);
	}
	for (int alg = 0; alg < NEZHA_ALG_COUNT; alg++)
		EXPECT(member, calls[alg] > 20);
}

static void test_model(void **state)
{
	struct models *models = calloc(1, sizeof *models);

	(void)state;
	assert_int_equal(world_run(4, 2, NEZHA_POLICY_ECF, learning, models), 0);
	free(models);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_teams),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_counts_differ),
		cmocka_unit_test(test_model),
	};

	world_filter();
	return cmocka_run_group_tests_name("conformance", tests, NULL, NULL);
}
