/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation core, over a network made up here: packets are reordered, doubled and lost, and every result must have
 * the bits of a fold in the ring's order. */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rails/ina_slots.h"
#include "rails/reduce.h"
#include "tuning/status.h"

#define CHUNK 512
#define WINDOW 16
#define RANKS_MOST 7
#define SPARE 5                  /* buffers that may be held: fewer than would be */

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(seed >> 4) * below >> 28);
}

static void contribution(int rank, uint32_t seq, enum nezha_type type, char *out)
{
	size_t size = nezha_type_size(type);

	for (uint32_t i = 0; i < CHUNK / size; i++) {
		uint64_t h = ((uint64_t)seq * 1000003 + (uint64_t)rank * 7919 + i + 1) * 0x9e3779b97f4a7c15ull;

		h ^= h >> 31;
		if (type == NEZHA_FLOAT32)
			((float *)out)[i] = (float)(int32_t)h / 1e3f;
		else if (type == NEZHA_FLOAT64)
			((double *)out)[i] = (double)(int64_t)h / 1e9;
		else
			memcpy(out + i * size, &h, size);
	}
}

struct job {
	int ranks;
	uint32_t chunks;
	enum nezha_type type;
	enum nezha_op op;
	int loss;                        /* per cent, each way */
	struct nezha_ina_slots *slots;
	struct nezha_ina_buffers *buffers;
	struct nezha_ina_buffer *posted; /* where the next packet comes */
	uint32_t sent[RANKS_MOST];       /* chunks sent for the first time, all before it too */
	bool *have[RANKS_MOST];          /* results, by chunk */
};

static uint16_t length_of(uint32_t seq)
{
	return seq % 5 == 4 ? 104 : CHUNK;       /* the last chunk of a block is short */
}

static struct nezha_ina_header header_of(const struct job *job, int rank, uint32_t seq)
{
	return (struct nezha_ina_header){ .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_DATA,
	                                  .type = (uint8_t)job->type, .op = (uint8_t)job->op, .seq = seq, .call = seq / 100,
	                                  .block = seq / 5, .length = length_of(seq), .rank = (uint16_t)rank };
}

static void check_sum(const struct job *job, const struct nezha_ina_sum *sum)
{
	_Alignas(8) char wanted[CHUNK], own[CHUNK];
	uint32_t seq = sum->header.seq;
	size_t n = length_of(seq) / nezha_type_size(job->type);

	assert_int_equal(sum->header.kind, NEZHA_INA_RESULT);
	assert_int_equal(sum->header.length, length_of(seq));
	for (int k = 0; k < job->ranks; k++) {
		contribution((int)((seq / 5 + 1 + (uint32_t)k) % (uint32_t)job->ranks), seq, job->type, own);
		if (k == 0)
			memcpy(wanted, own, CHUNK);
		else
			nezha_reduce_kernel(job->type, job->op)(wanted, wanted, own, n);
	}
	assert_memory_equal(sum->data, wanted, length_of(seq));
}

/* What a rank may send: chunk seq if it has the result of seq - WINDOW. */
static bool may_send(const struct job *job, int rank, uint32_t seq)
{
	return seq < job->chunks && (seq < WINDOW || job->have[rank][seq - WINDOW]);
}

static uint32_t choose(struct job *job, int rank)
{
	uint32_t seq = job->sent[rank];

	if (may_send(job, rank, seq) && draw(3)) {
		job->sent[rank]++;
		return seq;
	}
	/* again, or out of order: any of the last ones */
	return seq ? seq - 1 - draw(seq < 2 * WINDOW ? seq : 2 * WINDOW) : 0;
}

static void deliver(struct job *job, int rank, uint32_t seq)
{
	_Alignas(8) char own[CHUNK];
	bool stays = draw(4);
	struct nezha_ina_header header = header_of(job, rank, seq);
	struct nezha_ina_sum sum;
	enum nezha_ina_taken taken;
	char *payload;

	job->posted = nezha_ina_buffers_post(job->buffers, job->posted);
	payload = stays ? job->posted->data : own;
	contribution(rank, seq, job->type, payload);
	taken = nezha_ina_slots_take(job->slots, &header, payload, stays ? job->posted : NULL, &sum);
	memset(own, 0x55, sizeof own);
	assert_int_not_equal(taken, NEZHA_INA_DISAGREE);
	if (taken != NEZHA_INA_COMPLETE && taken != NEZHA_INA_KEPT)
		return;
	check_sum(job, &sum);
	for (int k = 0; k < job->ranks; k++)
		if ((taken == NEZHA_INA_COMPLETE || k == rank) && (int)draw(100) >= job->loss)
			job->have[k][sum.header.seq] = true;
}

static bool done(const struct job *job)
{
	for (int k = 0; k < job->ranks; k++)
		for (uint32_t s = 0; s < job->chunks; s++)
			if (!job->have[k][s])
				return false;
	return true;
}

/* As many buffers can be held as at the beginning. */
static void check_free(struct job *job)
{
	for (int i = 0; i < SPARE; i++) {
		job->posted = nezha_ina_buffers_post(job->buffers, job->posted);
		assert_true(nezha_ina_buffer_hold(job->posted));
	}
}

static void run(struct job *job)
{
	struct nezha_ina_budget budget = { .limit = 1 << 20 };

	assert_int_equal(nezha_ina_slots_create(&budget, job->ranks, WINDOW, CHUNK, false, &job->slots), NEZHA_OK);
	assert_int_equal(budget.used, nezha_ina_slots_bytes(job->ranks, WINDOW, CHUNK));
	assert_int_equal(nezha_ina_buffers_create(1, SPARE, CHUNK, &job->buffers), NEZHA_OK);
	for (int k = 0; k < job->ranks; k++)
		job->have[k] = calloc(job->chunks, sizeof(bool));
	for (int turn = 0; !done(job); turn++) {
		int rank = (int)draw((uint32_t)job->ranks);
		uint32_t seq = choose(job, rank);

		assert_true(turn < 2000000);             /* else it stands still */
		if (seq < job->sent[rank] && (int)draw(100) >= job->loss)
			deliver(job, rank, seq);
	}
	for (int k = 0; k < job->ranks; k++)
		free(job->have[k]);
	nezha_ina_slots_destroy(job->slots);
	assert_int_equal(budget.used, 0);
	check_free(job);
	nezha_ina_buffers_destroy(job->buffers);
}

static void test_types(void **state)
{
	(void)state;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type)) {
				struct job job = { .ranks = 3 + op % 3, .chunks = 70, .type = type, .op = op, .loss = 5 };

				run(&job);
			}
}

static void test_losses(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= RANKS_MOST; ranks++)
		for (int loss = 0; loss <= 60; loss += 20) {
			struct job job = { .ranks = ranks, .chunks = 300, .type = NEZHA_FLOAT32, .op = NEZHA_SUM,
			                   .loss = loss };

			run(&job);
		}
}

/* The session ends while contributions wait for others. */
static void test_end(void **state)
{
	struct job job = { .ranks = 4, .type = NEZHA_FLOAT32, .op = NEZHA_SUM };
	struct nezha_ina_budget budget = { .limit = 1 << 20 };

	(void)state;
	assert_int_equal(nezha_ina_slots_create(&budget, job.ranks, WINDOW, CHUNK, false, &job.slots), NEZHA_OK);
	assert_int_equal(nezha_ina_buffers_create(1, SPARE, CHUNK, &job.buffers), NEZHA_OK);
	for (uint32_t seq = 0; seq < WINDOW; seq++)
		for (int rank = 0; rank < job.ranks - 1; rank++)
			deliver(&job, rank, seq);
	job.posted = nezha_ina_buffers_post(job.buffers, job.posted);
	assert_false(nezha_ina_buffer_hold(job.posted));
	nezha_ina_slots_destroy(job.slots);
	check_free(&job);
	nezha_ina_buffers_destroy(job.buffers);
}

static struct nezha_ina_slots *make(struct nezha_ina_budget *budget, int ranks)
{
	struct nezha_ina_slots *slots;

	assert_int_equal(nezha_ina_slots_create(budget, ranks, WINDOW, CHUNK, false, &slots), NEZHA_OK);
	return slots;
}

static enum nezha_ina_taken take(struct nezha_ina_slots *slots, struct nezha_ina_header header)
{
	static const char payload[CHUNK];
	struct nezha_ina_sum sum;

	return nezha_ina_slots_take(slots, &header, payload, NULL, &sum);
}

/* The rule of the two versions, step by step; the sequence begins so that it wraps below. */
static void test_versions(void **state)
{
	struct nezha_ina_budget budget = { .limit = 1 << 20 };
	struct nezha_ina_slots *slots = make(&budget, 2);
	struct job job = { .type = NEZHA_INT32, .op = NEZHA_SUM };
	struct nezha_ina_missing missing;

	(void)state;
	assert_int_equal(take(slots, header_of(&job, 0, WINDOW)), NEZHA_INA_OUTSIDE);    /* ahead of chunk 0 */
	assert_int_equal(take(slots, header_of(&job, 0, 0)), NEZHA_INA_TAKEN);
	assert_int_equal(take(slots, header_of(&job, 0, 0)), NEZHA_INA_TWICE);
	nezha_ina_slots_missing(slots, 0, &missing);
	assert_false(nezha_ina_missing_has(&missing, 0));
	assert_true(nezha_ina_missing_has(&missing, 1));
	assert_int_equal(take(slots, header_of(&job, 0, WINDOW)), NEZHA_INA_OUTSIDE);
	assert_int_equal(take(slots, header_of(&job, 1, 0)), NEZHA_INA_COMPLETE);
	assert_int_equal(take(slots, header_of(&job, 1, 0)), NEZHA_INA_KEPT);
	assert_int_equal(take(slots, header_of(&job, 1, WINDOW)), NEZHA_INA_TAKEN);
	assert_int_equal(take(slots, header_of(&job, 0, 0)), NEZHA_INA_KEPT);            /* it may have been lost */
	assert_int_equal(take(slots, header_of(&job, 1, 2 * WINDOW)), NEZHA_INA_OUTSIDE);
	assert_int_equal(take(slots, header_of(&job, 0, WINDOW)), NEZHA_INA_COMPLETE);
	assert_int_equal(take(slots, header_of(&job, 1, 2 * WINDOW)), NEZHA_INA_TAKEN);
	assert_int_equal(take(slots, header_of(&job, 1, 0)), NEZHA_INA_OUTSIDE);         /* of a lap ago */
	assert_int_equal(take(slots, header_of(&job, 0, 4 * WINDOW)), NEZHA_INA_OUTSIDE);
	nezha_ina_slots_missing(slots, 5 * WINDOW, &missing);
	assert_true(nezha_ina_missing_has(&missing, 1));
	nezha_ina_slots_destroy(slots);
}

/* Whether the rank had asked before for the result, which is there. */
static bool asks(struct nezha_ina_slots *slots, struct nezha_ina_header header)
{
	static const char payload[CHUNK];
	struct nezha_ina_sum sum;

	assert_int_equal(nezha_ina_slots_take(slots, &header, payload, NULL, &sum), NEZHA_INA_KEPT);
	return sum.asked;
}

static void test_asked(void **state)
{
	struct nezha_ina_budget budget = { .limit = 16 << 20 };
	struct nezha_ina_slots *slots = make(&budget, 70);
	struct job job = { .type = NEZHA_INT32, .op = NEZHA_SUM };

	(void)state;
	for (uint32_t seq = 0; seq <= 2 * WINDOW; seq += WINDOW) {
		for (int rank = 0; rank < 70; rank++)
			assert_int_equal(take(slots, header_of(&job, rank, seq)), rank < 69 ? NEZHA_INA_TAKEN : NEZHA_INA_COMPLETE);
		assert_false(asks(slots, header_of(&job, 1, seq)));
		assert_false(asks(slots, header_of(&job, 65, seq)));     /* of another word */
		assert_true(asks(slots, header_of(&job, 1, seq)));
		assert_true(asks(slots, header_of(&job, 65, seq)));
		assert_false(asks(slots, header_of(&job, 69, seq)));
	}
	nezha_ina_slots_destroy(slots);
}

static void test_nonsense(void **state)
{
	struct nezha_ina_budget budget = { .limit = 1 << 20 };
	struct nezha_ina_slots *slots = make(&budget, 3);
	struct job job = { .type = NEZHA_INT32, .op = NEZHA_SUM };
	struct nezha_ina_header header = header_of(&job, 3, 0);

	(void)state;
	assert_int_equal(take(slots, header), NEZHA_INA_OUTSIDE);                        /* no such rank */
	header = header_of(&job, 0, 0);
	header.length = CHUNK + 8;
	assert_int_equal(take(slots, header), NEZHA_INA_OUTSIDE);
	assert_int_equal(take(slots, header_of(&job, 0, 0)), NEZHA_INA_TAKEN);
	header = header_of(&job, 1, 0);
	header.length -= 8;
	assert_int_equal(take(slots, header), NEZHA_INA_DISAGREE);
	header = header_of(&job, 1, 0);
	header.op = NEZHA_MAX;
	assert_int_equal(take(slots, header), NEZHA_INA_DISAGREE);
	header = header_of(&job, 1, 0);
	header.call++;
	assert_int_equal(take(slots, header), NEZHA_INA_DISAGREE);
	header = header_of(&job, 1, 0);
	header.block++;
	assert_int_equal(take(slots, header), NEZHA_INA_DISAGREE);
	nezha_ina_slots_destroy(slots);
}

static void test_budget(void **state)
{
	uint64_t one = nezha_ina_slots_bytes(4, WINDOW, CHUNK);
	struct nezha_ina_budget budget = { .limit = 2 * one + one / 2 };
	struct nezha_ina_slots *a = make(&budget, 4), *b = make(&budget, 4), *c = NULL;

	(void)state;
	assert_int_equal(nezha_ina_slots_create(&budget, 4, WINDOW, CHUNK, false, &c), NEZHA_ERR_NOMEM);
	assert_null(c);
	nezha_ina_slots_destroy(a);
	a = make(&budget, 4);
	assert_int_equal(budget.used, 2 * one);
	nezha_ina_slots_destroy(a);
	nezha_ina_slots_destroy(b);
	nezha_ina_slots_destroy(NULL);
	assert_int_equal(budget.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests_name("ina_slots", tests, NULL, NULL);
}
