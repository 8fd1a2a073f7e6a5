/* SPDX-License-Identifier: BSD-3-Clause
 * Small classes look ahead (nezha_model_class.quiet): that saves time, and changes nothing. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/model_bed.h"

#define CALLS 200000
#define SMALL_CLASSES 3         /* 16 KiB and up */

/* A communicator like the other one, that never looks ahead. */
static void forget_quiet(struct bed *bed)
{
	for (uint32_t k = 0; k < NEZHA_MODEL_CLASSES; k++)
		bed->model.classes[k].quiet = 0;
}

struct world {
	unsigned seed;
	uint64_t native[SMALL_CLASSES], rails[SMALL_CLASSES]; /* ns */
	bool lost;
};

/* Now and then one of the ways becomes slower or faster, or a rail is lost or back. */
static void move_on(struct world *world)
{
	if (rand_r(&world->seed) % 3000 == 0)
		world->lost = !world->lost;
	if (rand_r(&world->seed) % 1000)
		return;
	for (int i = 0; i < SMALL_CLASSES; i++) {
		world->native[i] = 50000 + (uint64_t)rand_r(&world->seed) % 200000;
		world->rails[i] = 50000 + (uint64_t)rand_r(&world->seed) % 200000;
	}
}

static void test_same_choices(void **state)
{
	struct world world = { .seed = 1, .native = { 100000, 100000, 100000 }, .rails = { 200000, 90000, 200000 } };
	struct bed bed = { 0 }, plain = { 0 };
	uint64_t quiet = 0, passes = 0;
	int calls[NEZHA_ALG_COUNT] = { 0 };

	(void)state;
	for (int i = 0; i < CALLS; i++) {
		/* Mostly the same size for a while, as programs have it; sometimes a large one, which brings notes along. */
		uint32_t which = (uint32_t)(rand_r(&world.seed) % 8 ? i / 500 : rand_r(&world.seed)) % SMALL_CLASSES;
		uint64_t bytes = rand_r(&world.seed) % 100 ? (16 * K) << which : S;
		uint64_t native = world.native[which] + (uint64_t)rand_r(&world.seed) % 20000;
		uint64_t rails = world.rails[which] + (uint64_t)rand_r(&world.seed) % 20000;
		enum nezha_algorithm alg;
		bool pass;

		move_on(&world);
		bed.lost = plain.lost = world.lost;
		forget_quiet(&plain);
		quiet += bed.model.classes[14 + which].quiet > 0;
		/* Of half the calls it is asked before whether they pass. */
		pass = rand_r(&world.seed) % 2 && nezha_model_passes(&bed.model, bytes);
		passes += pass;
		alg = pass ? NEZHA_ALG_NATIVE : call(&bed, bytes, native, rails);
		assert_int_equal(call(&plain, bytes, native, rails), alg);
		calls[alg]++;
	}
	/* Most calls are quiet, and both ways were the best one. */
	assert_true(quiet > CALLS / 2 && passes > CALLS / 10);
	assert_true(calls[NEZHA_ALG_NATIVE] > CALLS / 5 && calls[NEZHA_ALG_RING] > CALLS / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_choices),
	};

	return cmocka_run_group_tests_name("model_quiet", tests, NULL, NULL);
}
