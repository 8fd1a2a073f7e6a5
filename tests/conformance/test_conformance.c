/* SPDX-License-Identifier: BSD-3-Clause
 * The conformance suite: what every rail must pass.  Results are compared bit for bit with the fold order that
 * DESIGN promises. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tests/conformance/mock_rail.h"
#include "tests/conformance/world.h"
#include "tuning/agree.h"
#include "tuning/grid.h"
#include "tuning/status.h"

static void check_call(struct member *member, struct nezha_team *team, enum nezha_type type, enum nezha_op op,
                       uint64_t count, uint32_t block, bool in_place, uint32_t shared)
{
	world_call(member, team, type, op, count, block, in_place, 0, shared);
}

static void all_types(struct member *member, void *argument)
{
	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type))
				check_call(member, member->team, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2, 0);
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
		check_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 4096, false, 0);
		check_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 65536, true, 0);
	}
}

static void test_counts(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= 5; ranks++)
		for (int policy = NEZHA_POLICY_ECF; policy <= NEZHA_POLICY_SHARE; policy++)
			assert_int_equal(world_run(ranks, 1 + ranks % 3, policy, all_counts, NULL), 0);
}

/* ---- failures ---- */

/* Closes a connection under the engine's feet, from either end, while calls go on. */
static void cut(struct member *member, int which)
{
	int fd;

	pthread_mutex_lock(&member->engine->lock);
	fd = which % 2 ? member->team->right->paths[which / 2 % member->world->rails].end.fd
	               : member->team->left->paths[which / 2 % member->world->rails].end.fd;
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_unlock(&member->engine->lock);
}

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
		cut(cutter->member, (int)(rand_r(&seed) % 64));
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
		check_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003 + (uint64_t)i * 8191, 16384, i % 2, 0);
	if (member->rank == 1) {
		pthread_mutex_lock(&cutter.lock);
		cutter.stop = true;
		pthread_mutex_unlock(&cutter.lock);
		pthread_join(thread, NULL);
	}
}

static void test_cuts(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, calls_under_cuts, NULL), 0);
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, calls_under_cuts, NULL), 0);
	assert_int_equal(world_run(4, 3, NEZHA_POLICY_SLICE, calls_under_cuts, NULL), 0);
	assert_int_equal(world_run(3, 3, NEZHA_POLICY_SHARE, calls_under_cuts, NULL), 0);
}

/* ---- calls that are restricted to some of the rails ---- */

/* How often the member's process has lost a path, or has got one back. */
static void count_events(const struct member *member, uint64_t *losses, uint64_t *returns)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX);

	*losses = *returns = 0;
	for (size_t r = 0; r < count; r++) {
		*losses += stats[r].failures;
		*returns += stats[r].returns;
	}
}

/* On a machine so slow that a path is given up, others help out: a call during that shows nothing. */
static void calls_over_some_rails(struct member *member, void *argument)
{
	struct nezha_rail_set last_two;
	int shown = 0;

	(void)argument;
	EXPECT(member, nezha_rail_set_parse("tcp:127.77.2.0/24,tcp:127.77.1.0/24", 35, &last_two) == NEZHA_OK);
	EXPECT(member, nezha_team_rails_named(member->team, &last_two) == 6);
	for (uint32_t rails = 1; rails < 8; rails++) {
		uint64_t losses, returns, unused;

		count_events(member, &unused, &returns);
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 500007, 8192, rails % 2, rails, 0);
		count_events(member, &losses, &unused);
		if (losses != returns)
			continue;
		shown++;
		for (uint32_t r = 0; r < 3; r++)
			EXPECT(member, rails >> r & 1 || !nezha_team_last_bytes(member->team, r));
	}
	EXPECT(member, shown > 0);
}

/* Takes rail 1 of the member's link away for good, after it has come back from the last time. */
static void take_rail_away(struct member *member)
{
	struct nezha_path *path = &member->team->right->paths[1];
	bool away = false;

	for (int i = 0; !away && i < 20000; i++) {
		struct timespec pause = { 0, 1000000 };

		pthread_mutex_lock(&member->engine->lock);
		/* While the service thread has not let go of the connection, it would set another time for the next one. */
		if (path->up && !path->connecting) {
			nezha_link_path_fail(path, "the test says so");
			path->retry_at = UINT64_MAX;
			away = true;
		}
		pthread_mutex_unlock(&member->engine->lock);
		nanosleep(&pause, NULL);
	}
	EXPECT(member, away);
}

static void give_rail_back(struct member *member)
{
	pthread_mutex_lock(&member->engine->lock);
	member->team->right->paths[1].retry_at = 0;
	pthread_mutex_unlock(&member->engine->lock);
	nezha_service_kick(member->engine->service);
}

/* The one rail of a call is lost before it: the others do its work. */
static void calls_over_a_lost_rail(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 8; i++) {
		take_rail_away(member);
		world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100003, 8192, i % 2, 2, 0);
		EXPECT(member, nezha_team_last_bytes(member->team, 0) || nezha_team_last_bytes(member->team, 2));
		EXPECT(member, !nezha_team_last_bytes(member->team, 1));
		world_barrier(member);
		give_rail_back(member);
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
		check_call(job->member, job->team, NEZHA_INT32, NEZHA_SUM,
		           (uint64_t)(1000 + 30011 * ((i * 7 + job->number) % 9)), 8192, i % 2, 0);
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
	check_call(job->member, job->team, NEZHA_FLOAT32, NEZHA_SUM, 1 << 19, 16384, false, 0);
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
		check_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 1 << 18, 16384, false, 0);
	pthread_join(thread, NULL);
	world_barrier(member);
	nezha_team_destroy(late.team);
}

static void test_late(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, one_late, NULL), 0);
}

/* ---- collective rails ---- */

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
		check_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, i % 2, (uint32_t)(i * 9) % 50);
	world_barrier(member);
	nezha_team_detach(member->team);
	mock_rail_end(&rail);
}

static void test_collective(void **state)
{
	(void)state;
	for (int fault = MOCK_GOOD; fault < MOCK_FAULTS; fault++)
		for (int ranks = 2; ranks <= 4; ranks++) {
			struct mock_hub *hub = mock_hub_create(ranks, fault);
			int failures = world_run(ranks, 2, NEZHA_POLICY_ECF, with_mock, hub);

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
		check_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, i % 5 ? 50021 : 300, 4096, i % 2, 0);
	world_barrier(member);
	for (int i = mocks->count; i-- > 0;) {
		EXPECT(member, rails[i].calls > 4);
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

/* ---- strangers ---- */

/* Connects to rail 0 of the member and sends `length` bytes of noise; the connection is left open. */
static int bother(struct member *member, size_t length)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	unsigned char noise[200];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = member->world->cards[member->rank].rails[0].address;
	to.sin_port = htons(member->world->cards[member->rank].rails[0].port);
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (unsigned char)(i * 37 + length);
	EXPECT(member, !connect(fd, (struct sockaddr *)&to, sizeof to));
	if (length && send(fd, noise, length, MSG_NOSIGNAL) < 0)
		EXPECT(member, errno == EPIPE || errno == ECONNRESET);
	return fd;
}

/* More half-open and senseless connections than the handshake has room for, while calls go on. */
static void calls_among_strangers(struct member *member, void *argument)
{
	enum { STRANGERS = 150 };
	int fds[STRANGERS];

	(void)argument;
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = bother(member, (size_t)i);
		if (i % 10 == 0)
			check_call(member, member->team, NEZHA_INT64, NEZHA_BXOR, 30011, 8192, false, 0);
	}
	cut(member, 0);      /* the job's own connections still get through the crowd */
	for (int i = 0; i < 5; i++)
		check_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
}

static void test_strangers(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, calls_among_strangers, NULL), 0);
}

/* ---- disagreement and loss ---- */

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
	bool noted = nezha_model_note(model, note);
	float *vector = calloc(count, sizeof *vector);
	struct nezha_way way = { .block = 4096, .note = noted ? note : NULL };

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

static void test_counts_differ(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, counts_differ, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_some_rails),
		cmocka_unit_test(test_teams),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_collective),
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_counts_differ),
		cmocka_unit_test(test_model),
	};

	/* NEZHA_TEST_ONLY=PATTERN, such as test_c*: where one of them takes long. */
	if (getenv("NEZHA_TEST_ONLY"))
		cmocka_set_test_filter(getenv("NEZHA_TEST_ONLY"));
	return cmocka_run_group_tests_name("conformance", tests, NULL, NULL);
}
