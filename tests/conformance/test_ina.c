/* SPDX-License-Identifier: BSD-3-Clause
 * The rail of an aggregator under the conformance suite's eyes: nezha-aggd runs as a process of its own on loopback, and is
 * killed, stopped and restarted in the middle of calls.  The bits are always those of the ring. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <signal.h>
#include <sodium.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rails/collective.h"
#include "rails/ina.h"
#include "tests/conformance/world.h"
#include "tuning/log.h"
#include "tuning/status.h"

extern char **environ;

/* The daemons, in the rails' subnets: the first one in rail 0's and so on. */
#define DAEMONS NEZHA_INA_MAX

static const char *program;
static struct nezha_ina_address where[DAEMONS];
static char listens[DAEMONS][32];
static pid_t daemons[DAEMONS];

/* What ranks, and the threads that bother them, tell each other. */
static atomic_bool any_seldom, forged_enough;
static atomic_int forged;

static void pause_ms(long ms)
{
	struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static void start_one(int i, const char *memory)
{
	char *argv[] = { (char *)program, "--listen", listens[i], "--memory", (char *)memory, NULL };

	posix_spawn_file_actions_t actions;

	/* If this program is killed, the daemon stays: it must not hold what a caller has open, a lock for instance. */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (posix_spawn(&daemons[i], program, &actions, NULL, argv, environ))
		abort();
	posix_spawn_file_actions_destroy(&actions);
}

static void end_one(int i, int signal)
{
	kill(daemons[i], signal);
	kill(daemons[i], SIGCONT);
	waitpid(daemons[i], NULL, 0);
}

static void start(const char *memory)
{
	start_one(0, memory);
	pause_ms(100);
}

static void end(int signal)
{
	end_one(0, signal);
}

/* Bytes that the member has sent to the i-th aggregator. */
static uint64_t sent_to(const struct member *member, int i)
{
	struct nezha_rail_stats stats[NEZHA_STATS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_STATS_MAX);
	size_t at = (size_t)(member->world->rails + i);

	return at < count && !strncmp(stats[at].device, "ina", 3) ? stats[at].bytes_sent : 0;
}

static uint64_t sent(const struct member *member)
{
	return sent_to(member, 0);
}

static void call(struct member *member, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block,
                 bool in_place)
{
	world_call(member, member->team, type, op, count, block, in_place, 0, 0);
}

static void all_types(struct member *member, void *argument)
{
	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type))
				call(member, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2);
	EXPECT(member, sent(member) > 0);
}

static void all_counts(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 2, 7, 1021, 1024, 1025, 4095, 4097, 65537, 300007, 1 << 20 };

	(void)argument;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		call(member, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 4096, i % 2);
		call(member, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 65536, true);
		call(member, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 65536, false);
	}
	EXPECT(member, sent(member) > 0);
}

static int run(int ranks, int rails, void (*body)(struct member *member, void *argument), void *argument)
{
	return world_run_with(ranks, rails, NEZHA_POLICY_ECF, where, 1, body, argument);
}

static void test_types(void **state)
{
	(void)state;
	start("64M");
	assert_int_equal(run(3, 2, all_types, NULL), 0);
	assert_int_equal(run(4, 1, all_types, NULL), 0);
	end(SIGTERM);
}

static void test_counts(void **state)
{
	(void)state;
	start("64M");
	for (int ranks = 2; ranks <= 5; ranks++)
		assert_int_equal(run(ranks, 1 + ranks % 2, all_counts, NULL), 0);
	end(SIGTERM);
}

/* The next daemons have a bad network, see lossy.c; false: it is not built. */
static bool make_lossy(const char *how)
{
	const char *build = getenv("abs_top_builddir");
	char lossy[4096];

	snprintf(lossy, sizeof lossy, "%s/tests/conformance/lossy.so", build ? build : ".");
	if (access(lossy, R_OK))
		return false;
	setenv("LD_PRELOAD", lossy, 1);
	setenv("LOSSY", how, 1);
	return true;
}

static void test_bad_network(void **state)
{
	(void)state;
	if (!make_lossy("1,1,5"))
		skip();
	start("64M");
	assert_int_equal(run(3, 2, all_counts, NULL), 0);
	end(SIGTERM);
	setenv("LOSSY", "10,5,20", 1);
	start("64M");
	assert_int_equal(run(4, 1, all_types, NULL), 0);
	end(SIGTERM);
	unsetenv("LD_PRELOAD");
}

/* ---- failures ---- */

struct killer {
	atomic_bool stop;
	const char *memory;
};

/* Kills, stops, drains and restarts the daemon as long as calls go on. */
static void *kill_again_and_again(void *argument)
{
	struct killer *killer = argument;
	unsigned seed = 7;

	for (int i = 0; !atomic_load(&killer->stop); i++) {
		pause_ms(rand_r(&seed) % 300);
		switch (i % 4) {
		case 0:
			end(SIGKILL);
			break;
		case 1:
			kill(daemons[0], SIGSTOP);
			pause_ms(rand_r(&seed) % 400);
			kill(daemons[0], SIGCONT);
			continue;
		case 2:
			end(SIGINT);
			break;
		default:
			kill(daemons[0], SIGTERM);
			pause_ms(20);
			end(SIGTERM);
		}
		start(killer->memory);
	}
	return NULL;
}

static void calls_under_kills(struct member *member, void *argument)
{
	struct killer *killer = argument;
	pthread_t thread;

	if (member->rank == 0 && pthread_create(&thread, NULL, kill_again_and_again, killer))
		abort();
	for (int i = 0; i < 150; i++)
		call(member, NEZHA_FLOAT64, NEZHA_SUM, 100003 + (uint64_t)(i % 30) * 8191, 16384, i % 2);
	world_barrier(member);
	if (member->rank == 0) {
		atomic_store(&killer->stop, true);
		pthread_join(thread, NULL);
	}
	world_barrier(member);
	EXPECT(member, sent(member) > 0);
}

static void test_kills(void **state)
{
	(void)state;
	for (int rails = 1; rails <= 2; rails++) {
		struct killer killer = { .memory = "64M" };

		start(killer.memory);
		assert_int_equal(run(2 + rails, rails, calls_under_kills, &killer), 0);
		end(SIGKILL);
	}
}

/* It is gone for a while: the links do its work; then it is used again. */
static void calls_without_and_with(struct member *member, void *argument)
{
	uint64_t before;

	(void)argument;
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent(member) > 0);
	world_barrier(member);
	if (member->rank == 0)
		end(SIGKILL);
	world_barrier(member);
	before = sent(member);
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent(member) == before);
	world_barrier(member);
	if (member->rank == 0)
		start("64M");
	world_barrier(member);
	for (int i = 0; i < 300; i++) {
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
		pause_ms(5);
	}
	EXPECT(member, sent(member) > before);
}

static void test_return(void **state)
{
	(void)state;
	start("64M");
	assert_int_equal(run(3, 2, calls_without_and_with, NULL), 0);
	end(SIGTERM);
}

/* A late rank is no dead aggregator. */
static void one_late(struct member *member, void *argument)
{
	uint64_t before;

	(void)argument;
	call(member, NEZHA_FLOAT32, NEZHA_SUM, 100003, 8192, true);
	before = sent(member);
	if (member->rank == 1)
		pause_ms(600);
	call(member, NEZHA_FLOAT32, NEZHA_SUM, 100003, 8192, true);
	call(member, NEZHA_FLOAT32, NEZHA_SUM, 100003, 8192, true);
	EXPECT(member, sent(member) > before);
	EXPECT(member, member->engine->stats[NEZHA_RAILS_MAX].failures == 0);
}

static void test_late(void **state)
{
	(void)state;
	start("64M");
	assert_int_equal(run(3, 2, one_late, NULL), 0);
	end(SIGTERM);
}

/* ---- several of them ---- */

static int run_several(int ranks, int rails, int count, void (*body)(struct member *member, void *argument), void *argument)
{
	return world_run_with(ranks, rails, NEZHA_POLICY_ECF, where, (uint32_t)count, body, argument);
}

static void start_several(int count)
{
	for (int i = 0; i < count; i++)
		start_one(i, "64M");
	pause_ms(100);
}

static void end_several(int count)
{
	for (int i = 0; i < count; i++)
		end_one(i, SIGTERM);
}

/* One call of all types and all counts, and each has done something. */
static void all_by_several(struct member *member, void *argument)
{
	const int *count = argument;

	all_types(member, NULL);
	all_counts(member, NULL);
	for (int i = 0; i < *count; i++)
		EXPECT(member, sent_to(member, i) > 0);
}

static void test_several(void **state)
{
	(void)state;
	for (int count = 2; count <= DAEMONS; count++) {
		start_several(count);
		assert_int_equal(run_several(3, count == 3 ? 2 : count, count, all_by_several, &count), 0);
		end_several(count);
	}
}

/* The second of two is gone for a while: the first one goes on all the time, the second one is used again. */
static void one_of_two_lost(struct member *member, void *argument)
{
	uint64_t first, second;

	(void)argument;
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent_to(member, 0) > 0 && sent_to(member, 1) > 0);
	world_barrier(member);
	if (member->rank == 0)
		end_one(1, SIGKILL);
	world_barrier(member);
	call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, true);
	first = sent_to(member, 0);
	second = sent_to(member, 1);
	for (int i = 0; i < 4; i++)
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent_to(member, 0) > first);
	EXPECT(member, sent_to(member, 1) == second);
	EXPECT(member, member->engine->stats[NEZHA_RAILS_MAX].failures == 0);
	world_barrier(member);
	if (member->rank == 0)
		start_one(1, "64M");
	world_barrier(member);
	for (int i = 0; i < 300; i++) {
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
		pause_ms(5);
	}
	EXPECT(member, sent_to(member, 1) > second);
}

static void test_one_of_two(void **state)
{
	(void)state;
	start_several(2);
	assert_int_equal(run_several(3, 2, 2, one_of_two_lost, NULL), 0);
	end_several(2);
}

/* The first one is harassed as above; the second one has nothing to do with it. */
static void kills_of_one(struct member *member, void *argument)
{
	calls_under_kills(member, argument);
	EXPECT(member, sent_to(member, 1) > 0);
	EXPECT(member, member->engine->stats[NEZHA_RAILS_MAX + 1].failures == 0);
}

static void test_kills_of_one(void **state)
{
	struct killer killer = { .memory = "64M" };

	(void)state;
	start_several(2);
	assert_int_equal(run_several(3, 2, 2, kills_of_one, &killer), 0);
	end_several(2);
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
		EXPECT(member, team->collective[0].agreed != 0);
		world_barrier(member);
		if (member->rank == 1) {
			pthread_mutex_lock(&member->engine->lock);
			nezha_ina_session_end(ina);
			nezha_collective_open(team, 1);
			pthread_mutex_unlock(&member->engine->lock);
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
	start("64M");
	assert_int_equal(run(3, 2, lost_before_use, NULL), 0);
	end(SIGTERM);
}

/* Sessions open, but no packet gets through: each costs a call the time that silence takes, so they come more and more
 * seldom; and as before once packets get through. */
static void only_control(struct member *member, void *argument)
{
	struct nezha_ina *ina = member->team->collective[0].rail;
	uint64_t before;
	bool seldom = false;

	(void)argument;
	for (int i = 0; i < 2000 && !seldom; i++) {
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
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
	EXPECT(member, member->engine->stats[NEZHA_RAILS_MAX].failures < 20);
	world_barrier(member);
	if (member->rank == 0) {
		end(SIGKILL);
		unsetenv("LD_PRELOAD");
		start("64M");
	}
	world_barrier(member);
	before = sent(member);
	for (int i = 0; i < 1500; i++) {
		call(member, NEZHA_INT32, NEZHA_SUM, 50021, 4096, i % 2);
		pause_ms(5);
	}
	EXPECT(member, sent(member) > before);
	EXPECT(member, ina->barren == 0 && ina->pause == 0);
}

static void test_only_control(void **state)
{
	(void)state;
	if (!make_lossy("100"))
		skip();
	atomic_store(&any_seldom, false);
	start("64M");
	assert_int_equal(run(3, 2, only_control, NULL), 0);
	end(SIGTERM);
}

/* Results of the right form, with the session's token, from another address: whoever reaches the group can send them. */
static void *forge(void *argument)
{
	struct member *member = argument;
	struct nezha_ina *ina = member->team->collective[0].rail;
	struct {
		struct nezha_ina_header header;
		char data[NEZHA_INA_CHUNK_MAX];
	} packet;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(where[0].port) };
	struct timespec pause = { 0, 100000 };      /* a flood would be another test */
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &where[0].address, sizeof where[0].address);
	memset(&packet, 0x3f, sizeof packet);
	while (!atomic_load(&forged_enough)) {
		pthread_mutex_lock(&member->engine->lock);
		packet.header = (struct nezha_ina_header){
			.magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_RESULT, .token = ina->used,
			.type = (uint8_t)member->team->call.type, .op = (uint8_t)member->team->call.reduction,
			.seq = ina->window.first, .call = member->team->call.op,
		};
		if (ina->open) {
			struct nezha_ina_place place = nezha_ina_place(ina, ina->window.first);

			packet.header.block = place.block;
			packet.header.length = (uint16_t)place.length;
		}
		to.sin_addr.s_addr = ina->welcome.group;
		pthread_mutex_unlock(&member->engine->lock);
		if (packet.header.length && to.sin_addr.s_addr &&
		    sendto(fd, &packet, sizeof packet.header + packet.header.length, 0, (struct sockaddr *)&to, sizeof to) > 0)
			atomic_fetch_add(&forged, 1);
		nanosleep(&pause, NULL);
	}
	close(fd);
	return NULL;
}

static void calls_under_forgery(struct member *member, void *argument)
{
	pthread_t thread;

	(void)argument;
	if (member->rank == 0 && pthread_create(&thread, NULL, forge, member))
		abort();
	for (int i = 0; i < 60; i++)
		call(member, NEZHA_FLOAT64, NEZHA_SUM, 100003, 16384, i % 2);
	world_barrier(member);
	if (member->rank == 0) {
		atomic_store(&forged_enough, true);
		pthread_join(thread, NULL);
	}
	EXPECT(member, sent(member) > 0);
	EXPECT(member, member->engine->stats[NEZHA_RAILS_MAX].failures == 0);
}

static void test_forgery(void **state)
{
	(void)state;
	start("64M");
	assert_int_equal(run(3, 2, calls_under_forgery, NULL), 0);
	end(SIGTERM);
	assert_true(atomic_load(&forged) > 0);
}

/* ---- without it ---- */

/* A rank that has as many sessions as it may: the communicator goes without one, on all ranks. */
static void no_room(struct member *member, void *argument)
{
	struct nezha_team *team;

	(void)argument;
	EXPECT(member, member->team->collectives == 1);
	world_barrier(member);
	if (member->rank == 1)
		member->world->cards[1].ina_room = 0;
	team = world_team(member, 300);
	EXPECT(member, !team->collectives);
	for (int i = 0; i < 4; i++)
		world_call(member, team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, i % 2, 0, 0);
	world_barrier(member);
	nezha_team_destroy(team);
	EXPECT(member, sent(member) == 0);
}

static void test_no_room(void **state)
{
	(void)state;
	start("64M");
	assert_int_equal(run(3, 2, no_room, NULL), 0);
	end(SIGTERM);
}

static void all_by_links(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 6; i++)
		call(member, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, sent(member) == 0);
}

static void test_none(void **state)
{
	(void)state;
	assert_int_equal(run(3, 2, all_by_links, NULL), 0);
}

static void test_refusal(void **state)
{
	(void)state;
	start("64K");
	assert_int_equal(run(3, 2, all_by_links, NULL), 0);
	end(SIGTERM);
}

/* More communicators than the budget has room for: some are refused, all are right. */
static void many_teams(struct member *member, void *argument)
{
	enum { TEAMS = 12 };
	struct nezha_team *teams[TEAMS];

	(void)argument;
	for (int t = 0; t < TEAMS; t++)
		teams[t] = world_team(member, (uint64_t)(100 + t));
	for (int i = 0; i < 3; i++)
		for (int t = 0; t < TEAMS; t++)
			world_call(member, teams[t], NEZHA_INT32, NEZHA_SUM, 30011, 4096, t % 2, 0, 0);
	world_barrier(member);
	for (int t = 0; t < TEAMS; t++)
		nezha_team_destroy(teams[t]);
	EXPECT(member, sent(member) > 0);
}

static void test_budget(void **state)
{
	(void)state;
	start("20M");
	assert_int_equal(run(3, 2, many_teams, NULL), 0);
	end(SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_bad_network),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_return),
		cmocka_unit_test(test_kills),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_one_of_two),
		cmocka_unit_test(test_kills_of_one),
		cmocka_unit_test(test_lost_before_use),
		cmocka_unit_test(test_only_control),
		cmocka_unit_test(test_forgery),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_budget),
	};
	static char path[4096];
	const char *build = getenv("abs_top_builddir"), *level = getenv("NEZHA_TEST_LOG");

	snprintf(path, sizeof path, "%s/nezha-aggd", build ? build : ".");
	program = path;
	/* The leak check of a daemon that gets a signal meanwhile may wait for ever; tests/tools/aggd.test has it checked. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	if (sodium_init() < 0)
		return 1;
	if (access(path, X_OK)) {
		printf("skipped: there is no %s (abs_top_builddir)\n", path);
		return 77;
	}
	for (int i = 0; i < DAEMONS; i++) {
		where[i] = (struct nezha_ina_address){ { htonl(0x7f4d00feu + ((uint32_t)i << 8)) },
		                                       (uint16_t)(20000 + getpid() % 20000) };
		snprintf(listens[i], sizeof listens[i], "127.77.%d.254:%u", i, where[i].port);
	}
	if (getenv("NEZHA_TEST_ONLY"))
		cmocka_set_test_filter(getenv("NEZHA_TEST_ONLY"));
	nezha_log_open(level ? NEZHA_LOG_INFO : NEZHA_LOG_ERROR, NULL, -1);
	return cmocka_run_group_tests_name("ina", tests, NULL, NULL);
}
