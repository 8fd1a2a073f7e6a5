/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/world.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tuning/status.h"

#define WAIT_LIMIT (10 * NEZHA_SEC)      /* of world_wait_until */

bool world_crc;
atomic_uint world_wrong;
_Atomic uint64_t world_lost;

void world_failed(struct member *member, const char *file, int line, const char *condition)
{
	member->failures++;
	fprintf(stderr, "%s:%d: rank %d: %s does not hold\n", file, line, member->rank, condition);
}

void world_wronged(struct member *member, const char *file, int line, const char *condition)
{
	atomic_fetch_add(&world_wrong, 1);
	world_failed(member, file, line, condition);
}

static void make_rails(struct nezha_rail_nic *rails, int count, int rank)
{
	memset(rails, 0, (size_t)count * sizeof *rails);
	for (int r = 0; r < count; r++) {
		char address[32];

		snprintf(address, sizeof address, "127.77.%d.%d", r, rank + 1);
		inet_pton(AF_INET, address, &rails[r].nic.address);
		snprintf(rails[r].nic.device, sizeof rails[r].nic.device, "rail%d", r);
		rails[r].nic.prefix = rails[r].key_prefix = 24;
		rails[r].nic.speed = 1000;
		rails[r].key_subnet = rails[r].nic.address.s_addr & htonl(0xffffff00u);
	}
}

/* Port 1 of the device named by `len` bytes; false if this host has none. */
static bool find_port(const char *name, size_t len, struct nezha_verbs_port *out)
{
	struct nezha_verbs_port ports[16];
	size_t n = nezha_verbs_ports(NEZHA_VERBS_SYSFS, ports, 16);

	for (size_t i = 0; i < n; i++)
		if (strlen(ports[i].device) == len && !memcmp(ports[i].device, name, len) && ports[i].port == 1) {
			*out = ports[i];
			return true;
		}
	return false;
}

static void make_verbs_rail(struct nezha_rail_nic *rail, const char *name, size_t len)
{
	if (len == 3 && !memcmp(name, "tcp", 3))
		return;
	rail->kind = NEZHA_RAIL_VERBS;
	if (len == 4 && !memcmp(name, "fake", 4)) {
		rail->port = (struct nezha_verbs_port){ .device = "fake0", .port = 1, .gid_type = "RoCE v2", .speed = 1000 };
		return;
	}
	if (!find_port(name, len, &rail->port)) {
		fprintf(stderr, "NEZHA_TEST_VERBS: there is no RDMA device %.*s\n", (int)len, name);
		abort();
	}
	rail->nic.address = rail->port.address;
}

/* Rail r is what entry r of the list, or r modulo their number, says. */
static void make_verbs_rails(struct nezha_rail_nic *rails, int count, const char *list)
{
	const char *at = list;

	for (int r = 0; r < count; r++) {
		size_t len = strcspn(at, ",");

		make_verbs_rail(&rails[r], at, len);
		rails[r].key_ordinal = (uint8_t)r;
		at = at[len] ? at + len + 1 : list;
	}
}

static int open_member(struct member *member)
{
	static const unsigned char key[NEZHA_KEY_BYTES] = "the key of a world of tests";
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	struct nezha_engine_config config = member->world->like;

	config.process = member->rank;
	config.key = key;
	config.rails = rails;
	config.rail_count = (size_t)member->world->rails;
	config.policy = member->world->policy;
	config.crc = world_crc;
	nezha_verbs_options_parse("", &config.verbs);
	make_rails(rails, member->world->rails, member->rank);
	if (getenv("NEZHA_TEST_VERBS"))
		make_verbs_rails(rails, member->world->rails, getenv("NEZHA_TEST_VERBS"));
	if (nezha_engine_create(&config, &member->engine) != NEZHA_OK)
		return 1;
	nezha_engine_card(member->engine, &member->world->cards[member->rank]);
	return 0;
}

void world_barrier(struct member *member)
{
	pthread_barrier_wait(&member->world->barrier);
}

bool world_due(int number)
{
	const char *every = getenv("NEZHA_TEST_EVERY");
	int n = every ? atoi(every) : 1;

	return n < 2 || number % n == 0;
}

void world_filter(void)
{
	if (getenv("NEZHA_TEST_ONLY"))
		cmocka_set_test_filter(getenv("NEZHA_TEST_ONLY"));
}

/* What all ranks have, as a job agrees on it. */
static uint32_t agree_on_rails(struct member *member, uint32_t rails)
{
	struct world *world = member->world;

	world->reached[member->rank] = rails;
	world_barrier(member);
	for (int k = 0; k < world->ranks; k++)
		rails &= world->reached[k];
	return rails;
}

struct nezha_team *world_team(struct member *member, uint64_t id)
{
	struct nezha_team *team;
	uint32_t rails = 0;

	world_barrier(member);
	if (nezha_team_create(member->engine, member->world->cards, member->world->ranks, member->rank, id, &team) != NEZHA_OK)
		return NULL;
	nezha_team_connect(team, 10, &rails);
	rails = agree_on_rails(member, rails);
	EXPECT(member, rails != 0);
	nezha_team_activate(team, rails);
	return team;
}

void world_cut(struct member *member, int which)
{
	int fd;

	nezha_fairlock_take(&member->engine->lock);
	fd = which % 2 ? member->team->right->paths[which / 2 % member->world->rails].end.fd
	               : member->team->left->paths[which / 2 % member->world->rails].end.fd;
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
	nezha_fairlock_give(&member->engine->lock);
}

void world_count_events(const struct member *member, uint64_t *losses, uint64_t *returns)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, (size_t)member->world->rails);

	*losses = *returns = 0;
	for (size_t r = 0; r < count; r++) {
		*losses += stats[r].failures;
		*returns += stats[r].returns;
	}
}

static void *run_member(void *argument)
{
	struct member *member = argument;
	uint64_t losses = 0, returns;

	member->failures += open_member(member);
	world_barrier(member);
	member->team = member->engine ? world_team(member, 1) : NULL;
	EXPECT(member, member->team);
	if (member->team)
		member->world->body(member, member->world->argument);
	if (member->engine)
		world_count_events(member, &losses, &returns);
	atomic_fetch_add(&world_lost, losses);
	world_barrier(member);
	nezha_team_destroy(member->team);
	world_barrier(member);
	nezha_engine_destroy(member->engine);
	return NULL;
}

int world_run(int ranks, int rails, enum nezha_policy_kind policy,
              void (*body)(struct member *member, void *argument), void *argument)
{
	return world_run_with(ranks, rails, policy, NULL, 0, body, argument);
}

int world_run_with(int ranks, int rails, enum nezha_policy_kind policy, const struct nezha_ina_address *aggregators,
                   uint32_t aggregator_count, void (*body)(struct member *member, void *argument), void *argument)
{
	struct nezha_engine_config like = { .aggregator_count = aggregator_count };

	if (aggregator_count)
		memcpy(like.aggregators, aggregators, aggregator_count * sizeof *aggregators);
	return world_run_like(ranks, rails, policy, &like, body, argument);
}

int world_run_like(int ranks, int rails, enum nezha_policy_kind policy, const struct nezha_engine_config *like,
                   void (*body)(struct member *member, void *argument), void *argument)
{
	struct world *world = calloc(1, sizeof *world);
	int failures = 0;

	world->ranks = ranks;
	world->rails = rails;
	world->policy = policy;
	world->like = *like;
	world->body = body;
	world->argument = argument;
	pthread_barrier_init(&world->barrier, NULL, (unsigned)ranks);
	for (int k = 0; k < ranks; k++) {
		world->members[k].world = world;
		world->members[k].rank = k;
		if (pthread_create(&world->members[k].thread, NULL, run_member, &world->members[k]))
			abort();
	}
	for (int k = 0; k < ranks; k++) {
		pthread_join(world->members[k].thread, NULL);
		failures += world->members[k].failures;
	}
	pthread_barrier_destroy(&world->barrier);
	free(world);
	return failures;
}

/* What `rank` puts into the note of a call of `count` elements. */
static uint64_t note_value(int rank, uint64_t count, int i)
{
	return (count + (uint64_t)(rank * 31 + i * 17)) * 2654435761u % 1000003;
}

static void check_note(struct member *member, const uint64_t *note, uint64_t count)
{
	for (int i = 0; i < NEZHA_NOTE_VALUES; i++) {
		uint64_t least = UINT64_MAX;

		for (int r = 0; r < member->world->ranks; r++)
			if (note_value(r, count, i) < least)
				least = note_value(r, count, i);
		EXPECT(member, note[i] == least);
	}
}

void world_call(struct member *member, struct nezha_team *team, enum nezha_type type, enum nezha_op op, uint64_t count,
                uint32_t block, bool in_place, uint32_t rails, uint32_t shared)
{
	size_t bytes = count * nezha_type_size(type);
	unsigned seed = (unsigned)(count * 31 + type * 7 + op);
	char *send = malloc(bytes), *recv = malloc(bytes);
	struct reference *reference;
	uint64_t note[NEZHA_NOTE_VALUES];
	bool noted = count % 2;
	int rc;

	for (int i = 0; i < NEZHA_NOTE_VALUES; i++)
		note[i] = note_value(member->rank, count, i);
	world_fill(send, type, count, member->rank, seed);
	memset(recv, 0xa5, bytes);
	if (in_place)
		memcpy(recv, send, bytes);
	rc = nezha_allreduce(team, in_place ? recv : send, recv, count, type, op,
	                     &(struct nezha_way){ .block = block, .rails = rails, .shared = shared,
	                                          .note = noted ? note : NULL });
	EXPECT_RIGHT(member, rc == NEZHA_OK);
	if (noted)
		check_note(member, note, count);
	reference = reference_take(&(struct reference_of){ type, op, count, block, member->world->ranks, seed });
	EXPECT_RIGHT(member, !memcmp(recv, reference_data(reference), bytes));
	reference_release(reference);
	free(send);
	free(recv);
}

void world_take_rail_away(struct member *member, int rail)
{
	struct nezha_path *path = &member->team->right->paths[rail];
	bool away = false;

	for (int i = 0; !away && i < 20000; i++) {
		struct timespec pause = { 0, 1000000 };

		nezha_fairlock_take(&member->engine->lock);
		/* While the service thread has not let go of the connection, it would set another time for the next one. */
		if (path->up && !path->connecting) {
			nezha_link_path_fail(path, "the test says so");
			path->retry_at = UINT64_MAX;
			away = true;
		}
		nezha_fairlock_give(&member->engine->lock);
		nanosleep(&pause, NULL);
	}
	EXPECT(member, away);
}

void world_give_rail_back(struct member *member, int rail)
{
	nezha_fairlock_take(&member->engine->lock);
	member->team->right->paths[rail].retry_at = 0;
	member->team->right->paths[rail].damping = (struct nezha_damping){ 0 };
	nezha_fairlock_give(&member->engine->lock);
	nezha_service_kick(member->engine->service);
}

bool world_wait_until(struct member *member, bool holds(const struct member *member))
{
	uint64_t end = nezha_now() + WAIT_LIMIT;
	bool now;

	nezha_fairlock_take(&member->engine->lock);
	while (!(now = holds(member)) && nezha_now() < end)
		nezha_engine_wait(member->engine);
	nezha_fairlock_give(&member->engine->lock);
	return now;
}
