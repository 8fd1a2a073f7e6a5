/* SPDX-License-Identifier: BSD-3-Clause
 * Calls whose contribution comes to be there while they are in progress (struct nezha_way, gradual): at another pace on each rank, now
 * and then with a long pause; what is not there yet is garbage.  Results are compared bit for bit with the order of folding that
 * calls have which begin with all of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/link.h"
#include "tests/conformance/reference.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

/* One call of one rank. */
struct gradual {
	struct member *member;
	const char *source;             /* what is still to come, */
	char *send, *recv;              /* ... and to where */
	const char *wanted;
	uint64_t bytes, ready, checked; /* there; of the final ones: found right */
	uint64_t not_before;            /* ns: nothing more comes until then */
	uint64_t step_most;             /* bytes */
	uint64_t lead;                  /* bytes: no more than so many come before what they follow is final */
	unsigned random;
	bool began;
	uint32_t stored_most;           /* bytes that were stored at a time, of what came too early */
};

/* How many calls each rank has begun: one whose contribution is late enters once its left neighbour has sent what it may. */
static atomic_uint begun[WORLD_MOST];

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ 0, ns }, NULL);
}

static void come(struct gradual *call, uint64_t bytes)
{
	if (bytes > call->bytes - call->ready)
		bytes = call->bytes - call->ready;
	memcpy(call->send + call->ready, call->source + call->ready, bytes);
	call->ready += bytes;
}

/* The next step of the contribution. */
static void come_some(struct gradual *call, uint64_t final)
{
	uint64_t step = 1 + (uint64_t)rand_r(&call->random) % call->step_most, most = final + call->lead - call->ready;

	come(call, step < most ? step : most);
}

static void look_at_store(struct gradual *call)
{
	struct nezha_team *team = call->member->team;
	const struct nezha_eager *eager;
	uint32_t stored = 0;

	nezha_fairlock_take(&call->member->engine->lock);
	TAILQ_FOREACH(eager, &team->eager, entry)
		stored += eager->length;
	nezha_fairlock_give(&call->member->engine->lock);
	if (stored > call->stored_most)
		call->stored_most = stored;
}

static int work(void *context, uint64_t final, uint64_t *ready)
{
	struct gradual *call = context;

	if (!call->began)
		atomic_fetch_add(&begun[call->member->rank], 1);
	call->began = true;
	EXPECT_RIGHT(call->member, final >= call->checked && final <= call->ready);
	EXPECT_RIGHT(call->member, !memcmp(call->recv + call->checked, call->wanted + call->checked, final - call->checked));
	call->checked = final;
	look_at_store(call);
	if (nezha_now() >= call->not_before)
		come_some(call, final);
	if (rand_r(&call->random) % 50 == 0)
		sleep_ns(rand_r(&call->random) % 2000000);
	*ready = call->ready;
	return rand_r(&call->random) % 2 ? NEZHA_INPROGRESS : NEZHA_OK;
}

static void await_left(struct member *member)
{
	int left = (member->rank + member->world->ranks - 1) % member->world->ranks;
	unsigned before = atomic_load(&begun[member->rank]);

	for (int i = 0; i < 20000 && atomic_load(&begun[left]) == before; i++)
		sleep_ns(1000000);
	EXPECT(member, atomic_load(&begun[left]) != before);
}

struct one {
	uint64_t count;
	uint32_t block;
	bool in_place;
	uint64_t late;          /* ns for which nothing is there */
	bool cut;               /* connections may break meanwhile */
	bool noted;
	bool tied;              /* the contribution waits for what is final as long as it may */
};

static void one_call(struct member *member, const struct one *one)
{
	const enum nezha_type type = NEZHA_FLOAT32;
	size_t bytes = one->count * sizeof(float);
	unsigned seed = (unsigned)(one->count * 31 + one->block);
	char *source = malloc(bytes), *send = malloc(bytes), *recv = one->in_place ? send : malloc(bytes);
	struct reference *reference = reference_take(&(struct reference_of){ type, NEZHA_SUM, one->count, one->block, member->world->ranks, seed });
	uint64_t note[NEZHA_NOTE_VALUES];
	struct gradual call = {
		.member = member, .source = source, .send = send, .recv = recv, .wanted = reference_data(reference), .bytes = bytes,
		.step_most = 1 + bytes / 20, .lead = one->tied ? one->block + NEZHA_GRANT_MOST : bytes, .random = seed + (unsigned)member->rank,
	};
	struct nezha_way way = { .block = one->block, .work = work, .context = &call, .gradual = true, .note = one->noted ? note : NULL };

	for (int i = 0; i < NEZHA_NOTE_VALUES; i++)
		note[i] = one->count + (uint64_t)member->rank;
	world_fill(source, type, one->count, member->rank, seed);
	memset(send, 0xa5, bytes);
	if (!one->late)
		come(&call, (uint64_t)rand_r(&call.random) % ((call.lead < bytes ? call.lead : bytes) + 1));
	way.ready = call.ready;
	if (one->late)
		await_left(member);
	call.not_before = nezha_now() + one->late;
	EXPECT_RIGHT(member, nezha_allreduce(member->team, send, recv, one->count, type, NEZHA_SUM, &way) == NEZHA_OK);
	EXPECT_RIGHT(member, call.ready == bytes && !memcmp(recv, call.wanted, bytes));
	EXPECT_RIGHT(member, !one->noted || note[0] == one->count);
	EXPECT_RIGHT(member, call.stored_most <= NEZHA_EAGER_BYTES);
	EXPECT(member, !one->late || one->cut || call.stored_most > 0);
	reference_release(reference);
	if (!one->in_place)
		free(recv);
	free(send);
	free(source);
}

static void run(int ranks, int rails, void (*body)(struct member *member, void *argument))
{
	for (int r = 0; r < WORLD_MOST; r++)
		atomic_store(&begun[r], 0);
	alarm(300);     /* a rank that waits for ever would hang all */
	assert_int_equal(world_run(ranks, rails, NEZHA_POLICY_ECF, body, NULL), 0);
	alarm(0);
}

static void all_paces(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 1024, 4097, 65537, 300007, 1 << 20 };

	(void)argument;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		for (int k = 0; k < 6; k++)
			if (world_due((int)i * 6 + k))
				one_call(member, &(struct one){ counts[i], .block = k % 3 ? 4096 : 65536, .in_place = k % 2, .noted = k % 3 == 1 });
}

static void test_paces(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= 5; ranks++)
		run(ranks, 1 + ranks % 3, all_paces);
}

/* One rank has nothing for a while: the others wait for it with no more of theirs than a call that was not entered allows, and an
 * ordinary call in between finds all in order. */
static void late_ones(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 8; i++) {
		bool is_late = i % member->world->ranks == member->rank;

		if (!world_due(i % 5))
			continue;
		one_call(member, &(struct one){ 1 << 20, 16384, .in_place = i % 2, .late = is_late ? 60 * NEZHA_MSEC : 0, .noted = i % 3 == 0 });
		world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 8192, i % 2, 0, 0);
	}
	/* as a connection would be over which more came than may */
	for (int r = 0; r < member->world->rails; r++)
		EXPECT(member, !member->team->right->paths[r].lost);
}

static void test_late(void **state)
{
	(void)state;
	run(3, 2, late_ones);
	run(4, 1, late_ones);
}

/* Connections that break take grants with them. */
static void cut_ones(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 24; i++) {
		struct one one = { 400009 + (uint64_t)i * 8191, 16384, .in_place = i % 2, .cut = true, .noted = i % 2 };

		if (!world_due(i % 8))
			continue;
		if (i % 4 == 0 && member->rank == 1)
			one.late = 30 * NEZHA_MSEC;
		if ((member->rank + i) % 3 == 0)
			world_cut(member, i);
		one_call(member, &one);
	}
}

static void test_cuts(void **state)
{
	uint64_t before = atomic_load(&world_lost);

	(void)state;
	run(3, 2, cut_ones);
	world_crc = true;
	run(3, 2, cut_ones);
	world_crc = false;
	assert_true(atomic_load(&world_lost) > before);
}

/* Blocks of which a grant takes many, one, and less than one, up to the longest. */
static void tied_ones(struct member *member, void *argument)
{
	static const uint32_t blocks[] = { 4096, 61440, 131072, 262144, 266240, 1 << 20, NEZHA_BLOCK_MAX };

	(void)argument;
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		for (int k = 0; k < 2; k++) {
			uint64_t bytes = 16 * (uint64_t)NEZHA_GRANT_MOST + 4 * (uint64_t)blocks[i]; /* of the longest: five */

			if (!world_due((int)i * 2 + k))
				continue;
			one_call(member, &(struct one){ bytes / sizeof(float) - 4099 * (uint64_t)k, blocks[i], .in_place = k, .noted = k, .tied = true });
		}
}

static void test_tied(void **state)
{
	(void)state;
	run(2, 1, tied_ones);
	run(4, 2, tied_ones);
}

struct losing {
	struct member *member;
	bool lost;
};

/* Rank 0 forgets that the neighbour has granted it blocks, before it has any to send. */
static int lose_a_grant(void *context, uint64_t final, uint64_t *ready)
{
	struct losing *losing = context;
	struct nezha_team *team = losing->member->team;

	(void)final;
	nezha_fairlock_take(&losing->member->engine->lock);
	if (!losing->lost && nezha_link_has_granted(team) && team->granted_blocks) {
		team->granted_blocks = 0;
		losing->lost = true;
	}
	nezha_fairlock_give(&losing->member->engine->lock);
	*ready = losing->lost || losing->member->rank ? UINT64_MAX : 0;
	return NEZHA_OK;
}

/* Whether the right neighbour was sent something for want of anything from it, which is the last resort. */
static bool team_touched(const struct member *member)
{
	bool touched;

	nezha_fairlock_take(&member->engine->lock);
	touched = member->team->touched;
	nezha_fairlock_give(&member->engine->lock);
	return touched;
}

/* A grant that is lost without its connection, as one that went down with a path that was thought to live: the sender asks for it. */
static void a_grant_is_lost(struct member *member, void *argument)
{
	const uint64_t count = 1 << 18;
	float *vector = calloc(count, sizeof *vector);
	struct losing losing = { member, member->rank != 0 };
	struct nezha_way way = {
		.block = 16384, .gradual = true, .ready = member->rank ? UINT64_MAX : 0, .work = lose_a_grant, .context = &losing,
	};

	(void)argument;
	EXPECT_RIGHT(member, nezha_allreduce(member->team, vector, vector, count, NEZHA_FLOAT32, NEZHA_SUM, &way) == NEZHA_OK);
	EXPECT(member, losing.lost);
	EXPECT(member, member->rank || !team_touched(member));
	free(vector);
}

static void test_lost_grant(void **state)
{
	(void)state;
	run(3, 1, a_grant_is_lost);
}

/* ---- the end of one call told again in the next ---- */

struct telling {
	struct member *member;
	bool told;
};

static atomic_bool told;

static int tell_again(void *context, uint64_t final, uint64_t *ready)
{
	struct telling *telling = context;
	struct nezha_team *team = telling->member->team;

	(void)final, (void)ready;
	nezha_fairlock_take(&telling->member->engine->lock);
	if (!telling->told) {
		EXPECT(telling->member, !nezha_link_has_granted(team) && !TAILQ_EMPTY(&team->held));
		team->granted_blocks = 1;
		nezha_link_granted(team, team->granted, UINT32_MAX);
		EXPECT_RIGHT(telling->member, !TAILQ_EMPTY(&team->held));
		telling->told = true;
		atomic_store(&told, true);
	}
	nezha_fairlock_give(&telling->member->engine->lock);
	return NEZHA_OK;
}

/* Rank 0 holds what is too much for a neighbour that has not come, whatever it hears of the call before. */
static void an_end_is_late(struct member *member, void *argument)
{
	const uint64_t count = 1 << 20;
	float *vector = calloc(count, sizeof *vector);
	struct telling telling = { member, false };
	struct nezha_way way = { .block = 16384, .work = member->rank ? NULL : tell_again, .context = &telling };

	(void)argument;
	world_call(member, member->team, NEZHA_FLOAT32, NEZHA_SUM, 50021, 8192, false, 0, 0);
	while (member->rank && !atomic_load(&told))
		sleep_ns(1000000);
	EXPECT_RIGHT(member, nezha_allreduce(member->team, vector, vector, count, NEZHA_FLOAT32, NEZHA_SUM, &way) == NEZHA_OK);
	free(vector);
}

static void test_late_end(void **state)
{
	(void)state;
	run(2, 1, an_end_is_late);
}

static int nothing_more(void *context, uint64_t final, uint64_t *ready)
{
	(void)context, (void)final;
	*ready = UINT64_MAX;
	return NEZHA_OK;
}

static void counts_differ(struct member *member, void *argument)
{
	uint64_t count = member->rank ? 20000 : 10000;
	float *vector = calloc(count, sizeof *vector);
	struct nezha_way way = { .block = 4096, .gradual = true, .work = nothing_more };

	(void)argument;
	EXPECT(member, nezha_allreduce(member->team, vector, vector, count, NEZHA_FLOAT32, NEZHA_SUM, &way) != NEZHA_OK);
	free(vector);
}

static void test_counts_differ(void **state)
{
	(void)state;
	run(2, 1, counts_differ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paces),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_tied),
		cmocka_unit_test(test_lost_grant),
		cmocka_unit_test(test_late_end),
		cmocka_unit_test(test_counts_differ),
	};

	world_filter();
	return cmocka_run_group_tests_name("gradual calls", tests, NULL, NULL);
}
