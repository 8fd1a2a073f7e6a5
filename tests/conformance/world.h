/* SPDX-License-Identifier: BSD-3-Clause
 * A world of N engines in one process, a thread each, joined over loopback: what the conformance suite runs on.
 * Rail r of rank k has the address 127.77.r.(k+1), so several rails need no set-up and no rights.  With
 * NEZHA_TEST_VERBS=ENTRY,... rail r is what entry r, or r modulo their number, says: an RDMA device of this host, used by all ranks;
 * "fake", that of fake_verbs.h (the caller puts it in place); "tcp", as without it. */
#ifndef NEZHA_TESTS_WORLD_H
#define NEZHA_TESTS_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "rails/engine.h"
#include "rails/ina_address.h"
#include "rails/team.h"
#include "tests/conformance/reference.h"

struct world;

struct member {
	struct world *world;
	int rank;
	struct nezha_engine *engine;
	struct nezha_team *team;     /* of all ranks, open */
	pthread_t thread;
	int failures;                /* how many checks failed on this rank */
};

struct world {
	int ranks, rails;
	enum nezha_policy_kind policy;
	struct nezha_engine_config like;      /* what is the same on all members */
	void (*body)(struct member *member, void *argument);
	void *argument;
	struct nezha_card cards[WORLD_MOST];
	uint32_t reached[WORLD_MOST];         /* the rails of the team that is being opened, by rank */
	pthread_barrier_t barrier;
	struct member members[WORLD_MOST];
};

/* Whether the worlds that begin from now on check CRCs (NEZHA_CHECK=crc). */
extern bool world_crc;

/* Runs body on every rank at once; returns the sum of the members' failures (and counts what could not be set up). */
int world_run(int ranks, int rails, enum nezha_policy_kind policy,
              void (*body)(struct member *member, void *argument), void *argument);

/* The same with aggregators, those of the addresses, which the caller runs. */
int world_run_with(int ranks, int rails, enum nezha_policy_kind policy, const struct nezha_ina_address *aggregators,
                   uint32_t aggregator_count, void (*body)(struct member *member, void *argument), void *argument);

/* The same with all that the members' configurations have in common: aggregators, SHARP, reproducible. */
int world_run_like(int ranks, int rails, enum nezha_policy_kind policy, const struct nezha_engine_config *like,
                   void (*body)(struct member *member, void *argument), void *argument);

/* One call, checked: bits and, every other one, the note; over `rails` (0: all), the first `shared` blocks over the
 * collective rail, unless that rail says how many. */
void world_call(struct member *member, struct nezha_team *team, enum nezha_type type, enum nezha_op op, uint64_t count,
                uint32_t block, bool in_place, uint32_t rails, uint32_t shared);

/* Whether case `number` of all those that a test goes through is to be run: NEZHA_TEST_EVERY=N leaves every N-th one,
 * for builds with a sanitizer, in which all of them take minutes. */
bool world_due(int number);

/* For a main(): NEZHA_TEST_ONLY=PATTERN, such as test_c*, leaves the tests of these names. */
void world_filter(void);

/* Opens one more team of all ranks: collective. */
struct nezha_team *world_team(struct member *member, uint64_t id);

void world_barrier(struct member *member);

/* Closes a connection of the member's under the engine's feet, while calls go on: of rail which / 2 (modulo their number), to the right
 * neighbour if `which` is odd, else from the left one. */
void world_cut(struct member *member, int which);

/* How often the member's process has lost a path, or has got one back. */
void world_count_events(const struct member *member, uint64_t *losses, uint64_t *returns);

/* Takes a rail of the member's link to the right away for good, after it has come back from the last time; and gives it back. */
void world_take_rail_away(struct member *member, int rail);
void world_give_rail_back(struct member *member, int rail);

/* Drives the engine, not for ever, until what `holds` tells of the member is so. */
bool world_wait_until(struct member *member, bool holds(const struct member *member));

/* Results that were wrong, in all worlds so far: no circumstance excuses them. */
extern atomic_uint world_wrong;

/* Paths that were lost before the bodies' ends, in all worlds so far: a test that cuts shows nothing where none was. */
extern _Atomic uint64_t world_lost;

/* Checks; says what failed, once a line. */
#define EXPECT(member, condition) ((condition) ? (void)0 : world_failed(member, __FILE__, __LINE__, #condition))
/* ... of a result. */
#define EXPECT_RIGHT(member, condition) ((condition) ? (void)0 : world_wronged(member, __FILE__, __LINE__, #condition))
void world_failed(struct member *member, const char *file, int line, const char *condition);
void world_wronged(struct member *member, const char *file, int line, const char *condition);

#endif
