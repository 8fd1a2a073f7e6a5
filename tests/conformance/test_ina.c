/* SPDX-License-Identifier: BSD-3-Clause
 * The rail of an aggregator under the conformance suite's eyes: nezha-aggd runs as a process of its own on loopback.  The bits
 * are always those of the ring.  What becomes of calls when it is lost: test_ina_lost.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rails/ina.h"
#include "tests/conformance/daemons.h"
#include "tests/conformance/ina_world.h"
#include "tests/unit/skip.h"
#include "tuning/status.h"

/* What ranks, and the threads that bother them, tell each other. */
static atomic_bool forged_enough;
static atomic_int forged;

static void all_types(struct member *member, void *argument)
{
	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type))
				ina_call(member, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2);
	EXPECT(member, ina_sent(member, 0) > 0);
}

static void all_counts(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 2, 7, 1021, 1024, 1025, 4095, 4097, 65537, 300007, 1 << 20 };

	(void)argument;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 4096, i % 2);
		ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 65536, true);
		ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 65536, false);
	}
	EXPECT(member, ina_sent(member, 0) > 0);
}

static void test_types(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(3, 2, 1, all_types, NULL), 0);
	assert_int_equal(ina_run(4, 1, 1, all_types, NULL), 0);
	daemons_end(SIGTERM);
}

static void test_counts(void **state)
{
	(void)state;
	daemons_start("64M");
	for (int ranks = 2; ranks <= 5; ranks++)
		assert_int_equal(ina_run(ranks, 1 + ranks % 2, 1, all_counts, NULL), 0);
	daemons_end(SIGTERM);
}

static void test_bad_network(void **state)
{
	(void)state;
	if (!daemons_make_lossy("1,1,5"))
		SKIP_DETAIL("a bad network: tests/conformance/lossy.so is not built");
	daemons_start("64M");
	assert_int_equal(ina_run(3, 2, 1, all_counts, NULL), 0);
	daemons_end(SIGTERM);
	setenv("LOSSY", "10,5,20", 1);
	daemons_start("64M");
	assert_int_equal(ina_run(4, 1, 1, all_types, NULL), 0);
	daemons_end(SIGTERM);
	unsetenv("LD_PRELOAD");
}

/* A late rank is no dead aggregator. */
static void one_late(struct member *member, void *argument)
{
	uint64_t before;

	(void)argument;
	EXPECT(member, ina_use(member, 0));
	before = ina_sent(member, 0);
	if (member->rank == 1)
		pause_ms(600);
	ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, 100003, 8192, true);
	EXPECT(member, ina_sent(member, 0) > before);
	before = ina_sent(member, 0);
	ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, 100003, 8192, true);
	EXPECT(member, ina_sent(member, 0) > before);
}

static void test_late(void **state)
{
	struct nezha_engine_config like = ina_like(1);

	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run_calm(3, 2, &like, 0, one_late, NULL), 0);
	daemons_end(SIGTERM);
}

/* ---- several of them ---- */

/* One call of all types and all counts, and each has done something. */
static void all_by_several(struct member *member, void *argument)
{
	const int *count = argument;

	all_types(member, NULL);
	all_counts(member, NULL);
	for (int i = 0; i < *count; i++)
		EXPECT(member, ina_sent(member, i) > 0);
}

static void test_several(void **state)
{
	(void)state;
	for (int count = 2; count <= DAEMONS; count++) {
		daemons_start_several(count);
		assert_int_equal(ina_run(3, count == 3 ? 2 : count, count, all_by_several, &count), 0);
		daemons_end_several(count);
	}
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
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(daemons_where[0].port) };
	struct timespec pause = { 0, 100000 };      /* a flood would be another test */
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &daemons_where[0].address, sizeof daemons_where[0].address);
	memset(&packet, 0x3f, sizeof packet);
	while (!atomic_load(&forged_enough)) {
		nezha_fairlock_take(&member->engine->lock);
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
		nezha_fairlock_give(&member->engine->lock);
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
	atomic_store(&forged_enough, false);
	world_barrier(member);
	if (member->rank == 0 && pthread_create(&thread, NULL, forge, member))
		abort();
	for (int i = 0; i < 60; i++)
		ina_call(member, NEZHA_FLOAT64, NEZHA_SUM, 100003, 16384, i % 2);
	world_barrier(member);
	if (member->rank == 0) {
		atomic_store(&forged_enough, true);
		pthread_join(thread, NULL);
	}
	EXPECT(member, ina_sent(member, 0) > 0);
}

static void test_forgery(void **state)
{
	struct nezha_engine_config like = ina_like(1);

	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run_calm(3, 2, &like, 0, calls_under_forgery, NULL), 0);
	daemons_end(SIGTERM);
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
	EXPECT(member, ina_sent(member, 0) == 0);
}

static void test_no_room(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(3, 2, 1, no_room, NULL), 0);
	daemons_end(SIGTERM);
}

static void all_by_links(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 6; i++)
		ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, 50021, 4096, i % 2);
	EXPECT(member, ina_sent(member, 0) == 0);
}

static void test_none(void **state)
{
	(void)state;
	daemons_end(SIGKILL);                    /* that of a test that has failed */
	assert_int_equal(ina_run(3, 2, 1, all_by_links, NULL), 0);
}

static void test_refusal(void **state)
{
	(void)state;
	daemons_start("64K");
	assert_int_equal(ina_run(3, 2, 1, all_by_links, NULL), 0);
	daemons_end(SIGTERM);
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
	EXPECT(member, ina_sent(member, 0) > 0);
}

static void test_budget(void **state)
{
	(void)state;
	daemons_start("20M");
	assert_int_equal(ina_run(3, 2, 1, many_teams, NULL), 0);
	daemons_end(SIGTERM);
}

/* A team of more ranks than an aggregator serves does not ask it; one of as many as it serves does. */
static void too_many_ranks(struct member *member, void *argument)
{
	struct nezha_card *cards = calloc(NEZHA_INA_RANKS_MAX + 2, sizeof *cards);

	(void)argument;
	for (int k = 0; cards && k < NEZHA_INA_RANKS_MAX + 2; k++)
		cards[k] = member->world->cards[k % 2];
	for (int more = 0; cards && more <= 2; more += 2) {
		struct nezha_team *team = NULL;

		EXPECT(member, nezha_team_create(member->engine, cards, NEZHA_INA_RANKS_MAX + more, member->rank, (uint64_t)(200 + more),
		                                 &team) == NEZHA_OK);
		if (!team)
			break;
		EXPECT(member, team->collectives == (more ? 0 : 1));
		nezha_team_destroy(team);
	}
	EXPECT(member, cards);
	free(cards);
}

static void test_too_many_ranks(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(2, 2, 1, too_many_ranks, NULL), 0);
	daemons_end(SIGTERM);
}

/* ---- a host that vanishes without a word ---- */

static int option(int fd, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = 0;

	return getsockopt(fd, level, name, &value, &length) ? 0 : value;
}

/* Whether the aggregator's host is asked now and then whether it is still there, and for less than a minute. */
static bool asks_whether_it_lives(const struct member *member)
{
	const struct nezha_ina *ina = LIST_FIRST(&member->engine->inas);

	return ina && ina->control >= 0 && option(ina->control, SOL_SOCKET, SO_KEEPALIVE) &&
	       option(ina->control, IPPROTO_TCP, TCP_KEEPIDLE) +
	       option(ina->control, IPPROTO_TCP, TCP_KEEPCNT) * option(ina->control, IPPROTO_TCP, TCP_KEEPINTVL) < 60;
}

static void keep_asking(struct member *member, void *argument)
{
	(void)argument;
	EXPECT(member, world_wait_until(member, asks_whether_it_lives));
}

static void test_asked_whether_it_lives(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(2, 2, 1, keep_asking, NULL), 0);
	daemons_end(SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_bad_network),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_forgery),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_too_many_ranks),
		cmocka_unit_test(test_asked_whether_it_lives),
	};
	int status = ina_prepare();

	return status ? status : cmocka_run_group_tests_name("ina", tests, NULL, NULL);
}
