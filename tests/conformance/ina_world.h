/* SPDX-License-Identifier: BSD-3-Clause
 * Worlds with aggregators, those of daemons.h: what the conformance tests of their rail share. */
#ifndef NEZHA_TESTS_INA_WORLD_H
#define NEZHA_TESTS_INA_WORLD_H

#include <stdatomic.h>

#include "tests/conformance/world.h"

/* First of all in main: 0, or the status with which to end it.  NEZHA_TEST_LOG: at info; NEZHA_TEST_ONLY: a pattern of tests. */
int ina_prepare(void);

/* As world_run, with the first `count` aggregators. */
int ina_run(int ranks, int rails, int count, void (*body)(struct member *member, void *argument), void *argument);

/* The same on as many aggregators, of which the i-th one must not be lost: if it was while the host kept its daemon from the
 * processors for longer than a silence that rightly counts as death, the body has to do it again, ATTEMPTS times at most. */
int ina_run_calm(int ranks, int rails, const struct nezha_engine_config *like, int i,
                 void (*body)(struct member *member, void *argument), void *argument);

/* The configuration with the first `count` aggregators. */
struct nezha_engine_config ina_like(int count);

/* Bytes that the member has sent to the i-th aggregator. */
uint64_t ina_sent(const struct member *member, int i);

/* A checked call of the member's team. */
void ina_call(struct member *member, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, bool in_place);

/* Such calls, of 64 KiB, until all ranks have sent to the i-th aggregator in one; or until it is agreed that it is not there.
 * Whether that has come about within a limit: the same on all ranks. */
bool ina_use(struct member *member, int i);
bool ina_give_up(struct member *member, int i);

struct killer {
	const char *memory;          /* of the daemons that it starts */
	int calls;
	void (*call)(struct member *member, int i);      /* the i-th one, checked */
	atomic_bool stop;            /* its own */
};

/* A body, its argument is the killer: calls while the first daemon is killed, stopped, drained and restarted again and again. */
void ina_calls_under_kills(struct member *member, void *killer);

#endif
