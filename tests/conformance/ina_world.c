/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/rail.h"
#include "tests/conformance/daemons.h"
#include "tests/conformance/ina_world.h"
#include "tuning/log.h"

#define ATTEMPTS 3
#define EXCUSE (90 * NEZHA_MSEC)         /* so long a silence is a death: rails/ina.c */
#define CALLS_LIMIT (20 * NEZHA_SEC)

int ina_prepare(void)
{
	const char *level = getenv("NEZHA_TEST_LOG");

	if (sodium_init() < 0)
		return 1;
	if (!daemons_find())
		return 77;
	world_filter();
	nezha_log_open(level ? NEZHA_LOG_INFO : NEZHA_LOG_ERROR, NULL, -1);
	return 0;
}

struct nezha_engine_config ina_like(int count)
{
	struct nezha_engine_config like = { .aggregator_count = (uint32_t)count };

	memcpy(like.aggregators, daemons_where, (size_t)count * sizeof *daemons_where);
	return like;
}

int ina_run(int ranks, int rails, int count, void (*body)(struct member *member, void *argument), void *argument)
{
	struct nezha_engine_config like = ina_like(count);

	return world_run_like(ranks, rails, NEZHA_POLICY_ECF, &like, body, argument);
}

/* ---- runs in which an aggregator must not be lost ---- */

struct calm {
	void (*body)(struct member *member, void *argument);
	void *argument;
	int aggregator;
	atomic_uint lost;            /* sessions with it */
};

static void watched(struct member *member, void *argument)
{
	struct calm *calm = argument;

	calm->body(member, calm->argument);
	atomic_fetch_add(&calm->lost, member->engine->stats[NEZHA_RAILS_MAX + calm->aggregator].failures);
}

int ina_run_calm(int ranks, int rails, const struct nezha_engine_config *like, int i,
                 void (*body)(struct member *member, void *argument), void *argument)
{
	struct calm calm = { .body = body, .argument = argument, .aggregator = i };

	for (int attempt = 1;; attempt++) {
		uint64_t before = daemons_waited(i), waited;
		unsigned wrong = world_wrong;
		int failures;

		atomic_store(&calm.lost, 0);
		failures = world_run_like(ranks, rails, NEZHA_POLICY_ECF, like, watched, &calm);
		waited = daemons_waited(i) - before;
		if (!atomic_load(&calm.lost) || world_wrong != wrong)
			return failures;
		print_message("%u sessions lost, the daemon has waited for a processor for %llu ms\n", atomic_load(&calm.lost),
		              (unsigned long long)(waited / NEZHA_MSEC));
		if (attempt == ATTEMPTS || waited < EXCUSE)
			return failures + 1;
	}
}

/* ---- calls ---- */

uint64_t ina_sent(const struct member *member, int i)
{
	struct nezha_rail_stats stats[NEZHA_STATS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_STATS_MAX);
	size_t at = (size_t)(member->world->rails + i);

	return at < count && !strncmp(stats[at].device, "ina", 3) ? stats[at].bytes_sent : 0;
}

void ina_call(struct member *member, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, bool in_place)
{
	world_call(member, member->team, type, op, count, block, in_place, 0, 0);
}

/* Whether it holds on all ranks, and whether rank 0 is late: all hear the same. */
static bool all_say(struct member *member, bool mine, bool *late)
{
	static bool says[WORLD_MOST], is_late;
	bool all = true;

	says[member->rank] = mine;
	if (member->rank == 0)
		is_late = *late;
	world_barrier(member);
	for (int k = 0; k < member->world->ranks; k++)
		all = all && says[k];
	*late = is_late;
	world_barrier(member);
	return all;
}

static bool call_until(struct member *member, int i, bool used)
{
	uint64_t begin = nezha_now();
	bool late = false;

	while (!late) {
		uint64_t before = ina_sent(member, i);

		ina_call(member, NEZHA_INT32, NEZHA_SUM, 16411, 4096, true);
		late = nezha_now() - begin > CALLS_LIMIT;
		if (all_say(member, used ? ina_sent(member, i) > before : !member->team->collective[i].agreed, &late))
			return true;
		pause_ms(5);
	}
	return false;
}

bool ina_use(struct member *member, int i)
{
	return call_until(member, i, true);
}

bool ina_give_up(struct member *member, int i)
{
	return call_until(member, i, false);
}

/* ---- kills ---- */

static void *kill_again_and_again(void *argument)
{
	struct killer *killer = argument;
	unsigned seed = 7;

	for (int i = 0; !atomic_load(&killer->stop); i++) {
		pause_ms(rand_r(&seed) % 300);
		switch (i % 4) {
		case 0:
			daemons_end(SIGKILL);
			break;
		case 1:
			kill(daemons[0], SIGSTOP);
			pause_ms(rand_r(&seed) % 400);
			kill(daemons[0], SIGCONT);
			continue;
		case 2:
			daemons_end(SIGINT);
			break;
		default:
			kill(daemons[0], SIGTERM);
			pause_ms(20);
			daemons_end(SIGTERM);
		}
		daemons_start(killer->memory);
	}
	return NULL;
}

void ina_calls_under_kills(struct member *member, void *argument)
{
	struct killer *killer = argument;
	pthread_t thread;

	atomic_store(&killer->stop, false);
	world_barrier(member);
	if (member->rank == 0 && pthread_create(&thread, NULL, kill_again_and_again, killer))
		abort();
	for (int i = 0; i < killer->calls; i++)
		killer->call(member, i);
	world_barrier(member);
	if (member->rank == 0) {
		atomic_store(&killer->stop, true);
		pthread_join(thread, NULL);
	}
	world_barrier(member);
	EXPECT(member, ina_sent(member, 0) > 0);
}
