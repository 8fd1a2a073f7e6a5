/* SPDX-License-Identifier: BSD-3-Clause
 * Floats that go to an aggregator as fixed point: the blocks that it sums are within the error that fixed.h states, the others, such as
 * those with Inf or NaN, have the ring's bits; all ranks have the same ones, whatever becomes of the daemon. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/ina.h"
#include "rails/fixed.h"
#include "rails/reduce.h"
#include "rails/split.h"
#include "tests/conformance/daemons.h"
#include "tests/conformance/ina_world.h"
#include "tuning/bytes.h"
#include "tuning/status.h"

#define BYTES_MOST (4u << 20)

/* A call; `odd`: some blocks have values that are not finite. */
struct sums {
	enum nezha_type type;
	uint64_t count;
	uint32_t block;
	bool in_place, odd;
};

static char results[WORLD_MOST][BYTES_MOST];

static double at(const void *values, enum nezha_type type, uint64_t i)
{
	return type == NEZHA_FLOAT32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void put(void *values, enum nezha_type type, uint64_t i, double value)
{
	if (type == NEZHA_FLOAT32)
		((float *)values)[i] = (float)value;
	else
		((double *)values)[i] = value;
}

/* Each unit has a magnitude of its own, each tenth one zeros only. */
static void fill(void *out, const struct sums *sums, int rank)
{
	static const double odd[] = { INFINITY, -INFINITY, NAN };
	uint64_t unit = NEZHA_FIXED_UNIT / nezha_type_size(sums->type);

	world_fill(out, sums->type, sums->count, rank, (unsigned)sums->count);
	for (uint64_t i = 0; i < sums->count; i++) {
		int power = (int)(i / unit * 2654435761u >> 7 & 127) - 64;

		put(out, sums->type, i, i / unit % 10 == 3 ? -0.0 : ldexp(at(out, sums->type, i), power));
	}
	for (uint64_t i = sums->count / 3; sums->odd && i < sums->count; i += sums->count / 2 + 1)
		if (i % 3 == (uint64_t)rank % 3)
			put(out, sums->type, i, odd[(i + (uint64_t)rank) % 3]);
}

/* 2^e of the unit that begins with element i. */
static double power_of_unit(char *const *inputs, const struct sums *sums, int ranks, uint64_t i, uint64_t n)
{
	double most = 0, least = sums->type == NEZHA_FLOAT32 ? 0x1p-126 : 0x1p-1022;
	int exponent;

	for (int k = 0; k < ranks; k++)
		for (uint64_t j = i; j < i + n; j++)
			most = fmax(most, fabs(at(inputs[k], sums->type, j)));
	frexp(most, &exponent);
	return fmax(ldexp(1, exponent), least);
}

static bool unit_is_near(const void *result, char *const *inputs, const struct sums *sums, int ranks, uint64_t i, uint64_t n)
{
	double power = power_of_unit(inputs, sums, ranks, i, n);
	int bits = sums->type == NEZHA_FLOAT32 ? 30 : 62, log = (int)ceil(log2(ranks));
	long double most = ldexpl(ranks / 2.0L * power, log - bits);

	for (uint64_t j = i; j < i + n; j++) {
		long double exact = 0, got = at(result, sums->type, j);

		for (int k = 0; k < ranks; k++)
			exact += (long double)at(inputs[k], sums->type, j);
		if (!(fabsl(got - exact) <= most + fabsl(got) * (sums->type == NEZHA_FLOAT32 ? 0x1p-24L : 0x1p-52L)))
			return false;
	}
	return true;
}

static bool has_odd(char *const *inputs, const struct sums *sums, int ranks, uint64_t i, uint64_t n)
{
	for (int k = 0; k < ranks; k++)
		for (uint64_t j = i; j < i + n; j++)
			if (!isfinite(at(inputs[k], sums->type, j)))
				return true;
	return false;
}

/* The ring's fold of block b, of elements [i, i + n). */
static bool block_is_rings(const void *result, char *const *inputs, const struct sums *sums, int ranks, uint32_t b, uint64_t i, uint64_t n)
{
	size_t size = nezha_type_size(sums->type);
	nezha_reduce_fn *kernel = nezha_reduce_kernel(sums->type, NEZHA_SUM);
	char *sum = malloc(n * size);
	bool same;

	memcpy(sum, inputs[(b + 1) % (uint32_t)ranks] + i * size, n * size);
	for (int k = 2; k <= ranks; k++)
		kernel(sum, sum, inputs[(b + (uint32_t)k) % (uint32_t)ranks] + i * size, n);
	same = !memcmp(sum, (const char *)result + i * size, n * size);
	free(sum);
	return same;
}

/* Blocks of the links are the ring's. */
static void check(struct member *member, const struct sums *sums, const void *result)
{
	int ranks = member->world->ranks;
	size_t size = nezha_type_size(sums->type);
	uint64_t unit = NEZHA_FIXED_UNIT / size, block = sums->block / size;
	char *inputs[WORLD_MOST];
	uint32_t wrong = 0;

	for (int k = 0; k < ranks; k++) {
		inputs[k] = malloc(sums->count * size);
		fill(inputs[k], sums, k);
	}
	for (uint64_t i = 0; i < sums->count; i += block) {
		uint64_t n = sums->count - i < block ? sums->count - i : block;

		bool near = !has_odd(inputs, sums, ranks, i, n);

		for (uint64_t j = i; near && j < i + n; j += unit)
			near = unit_is_near(result, inputs, sums, ranks, j, i + n - j < unit ? i + n - j : unit);
		wrong += !near && !block_is_rings(result, inputs, sums, ranks, (uint32_t)(i / block), i, n);
	}
	EXPECT_RIGHT(member, wrong == 0);
	for (int k = 0; k < ranks; k++)
		free(inputs[k]);
}

static void call(struct member *member, const struct sums *sums)
{
	size_t bytes = sums->count * nezha_type_size(sums->type);
	char *send = malloc(bytes), *recv = results[member->rank];

	fill(sums->in_place ? recv : send, sums, member->rank);
	EXPECT_RIGHT(member, nezha_allreduce(member->team, sums->in_place ? recv : send, recv, sums->count, sums->type, NEZHA_SUM,
	                               &(struct nezha_way){ .block = sums->block }) == NEZHA_OK);
	world_barrier(member);
	EXPECT_RIGHT(member, !memcmp(results[0], recv, bytes));
	if (member->rank == (int)(sums->count % (uint64_t)member->world->ranks))
		check(member, sums, recv);
	world_barrier(member);
	free(send);
}

/* `calm`: the aggregator must not be lost. */
static int run(int ranks, int rails, bool reproducible, bool calm, void (*body)(struct member *member, void *argument), void *argument)
{
	struct nezha_engine_config like = { .aggregator_count = 1, .reproducible = reproducible };

	like.aggregators[0] = daemons_where[0];
	like.aggregators[0].fixed = true;
	return calm ? ina_run_calm(ranks, rails, &like, 0, body, argument) :
	              world_run_like(ranks, rails, NEZHA_POLICY_ECF, &like, body, argument);
}

/* ---- */

static void all_sizes(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 255, 257, 4096, 20011, 100003, 400009 };

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		for (int k = 0; k < 8; k++)
			call(member, &(struct sums){ .type = k % 2 ? NEZHA_FLOAT32 : NEZHA_FLOAT64, .count = counts[i],
			                             .block = k & 2 ? 12288 : 65536, .in_place = k & 4, .odd = argument });
	EXPECT(member, ina_sent(member, 0) > 0);
}

static void test_sizes(void **state)
{
	(void)state;
	daemons_start("64M");
	for (int ranks = 2; ranks <= 5; ranks++)
		assert_int_equal(run(ranks, 1 + ranks % 2, false, true, all_sizes, NULL), 0);
	daemons_end(SIGTERM);
}

/* Blocks with Inf or NaN go back to the links; the session stays. */
static void test_odd(void **state)
{
	static char odd;

	(void)state;
	daemons_start("64M");
	for (int ranks = 2; ranks <= 4; ranks++)
		assert_int_equal(run(ranks, 1 + ranks % 2, false, true, all_sizes, &odd), 0);
	daemons_end(SIGTERM);
}

/* What calls take in which blocks go back is learnt if that goes on, and so whether the aggregator is of any use for them. */
static void odd_for_long(struct member *member, void *argument)
{
	struct sums sums = { .type = NEZHA_FLOAT32, .count = 50021, .block = 8192, .odd = true };
	const struct nezha_split_class *class = &member->team->split->classes[nezha_bytes_class(sums.count * sizeof(float))];

	(void)argument;
	call(member, &sums);
	call(member, &sums);
	EXPECT(member, class->tried[1] == 2 && class->whole[1] <= 0);
	for (int i = 0; i < 4; i++)
		call(member, &sums);
	EXPECT(member, class->whole[1] > 0);
}

static void test_odd_for_long(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(run(3, 2, false, true, odd_for_long, NULL), 0);
	daemons_end(SIGTERM);
}

#define CALLS_MOST 200

/* Sums differ from the ring's, so that it is known that they were fixed; what is not a sum of floats does not; nor do sums where
 * runs shall agree. */
static void others(struct member *member, void *argument)
{
	const struct nezha_engine_config *like = &member->world->like;
	struct sums sums = { .type = NEZHA_FLOAT32, .count = 50021, .block = 8192 };
	uint64_t block = sums.block / sizeof(float), unlike = 0;
	char *inputs[WORLD_MOST];

	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type) && (like->reproducible || !nezha_fixed_can(type, op)))
				world_call(member, member->team, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2, 0, 0);
	for (int k = 0; k < member->world->ranks; k++) {
		inputs[k] = malloc(sums.count * sizeof(float));
		fill(inputs[k], &sums, k);
	}
	/* What the aggregator gets of a call is for the split to say; the results are the same on all ranks, so all do as many calls. */
	for (int i = 0; i < (like->reproducible ? 1 : CALLS_MOST) && !unlike; i++) {
		int rc = nezha_allreduce(member->team, inputs[member->rank], results[member->rank], sums.count, sums.type,
		                         NEZHA_SUM, &(struct nezha_way){ .block = sums.block });

		EXPECT_RIGHT(member, rc == NEZHA_OK);
		if (rc != NEZHA_OK)
			break;
		for (uint64_t e = 0; e + block <= sums.count; e += block)
			unlike += !block_is_rings(results[member->rank], inputs, &sums, member->world->ranks, (uint32_t)(e / block), e,
			                          block);
	}
	EXPECT(member, like->reproducible ? unlike == 0 : unlike > 0);
	EXPECT(member, ina_sent(member, 0) > 0);
	for (int k = 0; k < member->world->ranks; k++)
		free(inputs[k]);
}

static void test_others(void **state)
{
	(void)state;
	daemons_start("64M");
	assert_int_equal(run(3, 2, false, true, others, NULL), 0);
	assert_int_equal(run(3, 2, true, true, others, NULL), 0);
	daemons_end(SIGTERM);
}

static void one_call(struct member *member, int i)
{
	call(member, &(struct sums){ .type = i % 3 ? NEZHA_FLOAT32 : NEZHA_FLOAT64, .count = 100003 + (uint64_t)(i % 30) * 8191,
	                             .block = 16384, .in_place = i % 2, .odd = i % 5 == 0 });
}

/* A block that comes back in the middle of a call is the ring's. */
static void test_kills(void **state)
{
	(void)state;
	for (int rails = 1; rails <= 2; rails++) {
		struct killer killer = { .memory = "64M", .calls = 120, .call = one_call };

		daemons_start(killer.memory);
		assert_int_equal(run(2 + rails, rails, false, false, ina_calls_under_kills, &killer), 0);
		daemons_end(SIGKILL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_odd_for_long),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_kills),
	};
	int status = ina_prepare();

	return status ? status : cmocka_run_group_tests_name("ina_fixed", tests, NULL, NULL);
}
