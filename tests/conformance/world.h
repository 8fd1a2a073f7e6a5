/* SPDX-License-Identifier: BSD-3-Clause
 * A world of N engines in one process, a thread each, joined over loopback: what the conformance suite runs on.
 * Rail r of rank k has the address 127.77.r.(k+1), so several rails need no set-up and no rights.  With
 * NEZHA_TEST_VERBS=ENTRY,... rail r is what entry r, or r modulo their number, says: an RDMA device of this host, used by all ranks;
 * "fake", that of fake_verbs.h (the caller puts it in place); "tcp", as without it. */
#ifndef NEZHA_TESTS_WORLD_H
#define NEZHA_TESTS_WORLD_H

#include <pthread.h>

#include "rails/engine.h"
#include "rails/ina_address.h"
#include "rails/team.h"

#define WORLD_MOST 8

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
	struct nezha_ina_address aggregators[NEZHA_INA_MAX];
	uint32_t aggregator_count;
	void (*body)(struct member *member, void *argument);
	void *argument;
	struct nezha_card cards[WORLD_MOST];
	pthread_barrier_t barrier;
	struct member members[WORLD_MOST];
};

/* Runs body on every rank at once; returns the sum of the members' failures (and counts what could not be set up). */
int world_run(int ranks, int rails, enum nezha_policy_kind policy,
              void (*body)(struct member *member, void *argument), void *argument);

/* The same with aggregators, those of the addresses, which the caller runs. */
int world_run_with(int ranks, int rails, enum nezha_policy_kind policy, const struct nezha_ina_address *aggregators,
                   uint32_t aggregator_count, void (*body)(struct member *member, void *argument), void *argument);

/* One call, checked: bits and, every other one, the note; over `rails` (0: all), the first `shared` blocks over the
 * collective rail, unless that rail says how many. */
void world_call(struct member *member, struct nezha_team *team, enum nezha_type type, enum nezha_op op, uint64_t count,
                uint32_t block, bool in_place, uint32_t rails, uint32_t shared);

/* Opens one more team of all ranks: collective. */
struct nezha_team *world_team(struct member *member, uint64_t id);

void world_barrier(struct member *member);

/* Checks; says what failed, once a line. */
#define EXPECT(member, condition) do { \
	if (!(condition)) { \
		(member)->failures++; \
		fprintf(stderr, "%s:%d: rank %d: %s does not hold\n", __FILE__, __LINE__, (member)->rank, #condition); \
	} \
} while (0)

/* Element i of rank r's contribution as type, small enough for PROD over 8 ranks to stay exact in most types. */
void world_fill(void *buffer, enum nezha_type type, uint64_t count, int rank, unsigned seed);

/* The fold that the ring must give: for each block in the order owner+1, owner+2, ..., owner. */
void world_reference(void *out, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, int ranks,
                     unsigned seed);

#endif
