/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <string.h>

#include "tuning/agree.h"
#include "tuning/rail_set.h"

#define M (UINT64_C(1) << 20)

static struct nezha_model some_model(void)
{
	struct nezha_model model = { .pending_count = 2 };

	model.classes[20] = (struct nezha_model_class){ .best = NEZHA_ALG_RING, .calls = 7, .retry_at = 71, .pause = 64 };
	model.pending[0] = (struct nezha_model_call){
		.bytes = M, .choice = { .alg = NEZHA_ALG_RING }, .times = { .rails = 5 },
	};
	model.pending[1] = (struct nezha_model_call){
		.bytes = M + 4, .choice = { .alg = NEZHA_ALG_NATIVE, .native = M + 4 }, .times = { .native = 6, .idle = true },
	};
	return model;
}

/* Another value of the one field gives another digest. */
#define ASSERT_COUNTS(field, value) do { \
		struct nezha_model other = some_model(); \
		assert_true(other.field != (value)); \
		other.field = (value); \
		assert_true(nezha_model_digest(&other) != digest); \
	} while (0)

static void every_deciding_field_counts(void **state)
{
	struct nezha_model model = some_model();
	uint64_t digest = nezha_model_digest(&model);

	(void)state;
	for (int k = 0; k < NEZHA_MODEL_CLASSES; k++) {
		for (int alg = 0; alg < NEZHA_ALG_COUNT; alg++) {
			for (int i = 0; i < NEZHA_MODEL_SAMPLES; i++)
				ASSERT_COUNTS(classes[k].cost[alg].samples[i], UINT64_C(1) << 40);
			ASSERT_COUNTS(classes[k].cost[alg].count, 3);
			ASSERT_COUNTS(classes[k].cost[alg].tried, 3);
			ASSERT_COUNTS(classes[k].cost[alg].by_run, true);
			ASSERT_COUNTS(classes[k].cost[alg].of_try, true);
			ASSERT_COUNTS(classes[k].cost[alg].before, 7);
		}
		for (int alg = 0; alg < NEZHA_ALG_MIX; alg++) {
			ASSERT_COUNTS(classes[k].part[alg].samples[1], 5);
			ASSERT_COUNTS(classes[k].part[alg].count, 3);
		}
		ASSERT_COUNTS(classes[k].nonblocking.samples[1], 5);
		ASSERT_COUNTS(classes[k].nonblocking.count, 3);
		ASSERT_COUNTS(classes[k].apart, true);
		ASSERT_COUNTS(classes[k].calls, 8);
		ASSERT_COUNTS(classes[k].retry_at, 72);
		ASSERT_COUNTS(classes[k].pause, 128);
		ASSERT_COUNTS(classes[k].tries, 1);
		ASSERT_COUNTS(classes[k].extra, true);
		ASSERT_COUNTS(classes[k].extras, 1);
		ASSERT_COUNTS(classes[k].quiet, 9);
		ASSERT_COUNTS(classes[k].promise, 3);
		ASSERT_COUNTS(classes[k].doubtful, true);
		ASSERT_COUNTS(classes[k].claim, 2);
		ASSERT_COUNTS(classes[k].shunned[NEZHA_ALG_NATIVE], 64);
		ASSERT_COUNTS(classes[k].shunned[NEZHA_ALG_RING], 64);
	}
	for (int k = 0; k < NEZHA_MODEL_SMALL; k++)
		ASSERT_COUNTS(under_way[k].count, 2);
	ASSERT_COUNTS(classes[20].best, NEZHA_ALG_NATIVE);
	ASSERT_COUNTS(pending[0].bytes, M - 4);
	ASSERT_COUNTS(pending[1].choice.alg, NEZHA_ALG_MIX);
	ASSERT_COUNTS(pending[1].choice.native, M);
	ASSERT_COUNTS(pending[1].choice.nonblocking, true);
	ASSERT_COUNTS(pending[1].choice.carrier, true);
	ASSERT_COUNTS(pending[1].choice.looks, true);
	ASSERT_COUNTS(pending[0].run, true);
	ASSERT_COUNTS(pending[1].trial, true);
	ASSERT_COUNTS(pending[1].extra, true);
	ASSERT_COUNTS(calls, 8);
	ASSERT_COUNTS(lost, true);
	ASSERT_COUNTS(guesses, 2);
	ASSERT_COUNTS(pending_count, 1);
}

static void what_is_local_does_not(void **state)
{
	struct nezha_model model = some_model(), other = some_model();

	(void)state;
	other.pending[0].times.rails = other.pending[1].times.native = 1000;
	other.pending[1].times.idle = false;
	other.pending[2] = (struct nezha_model_call){ .bytes = 1, .choice = { .alg = NEZHA_ALG_RING } }; /* learnt and gone */
	assert_true(nezha_model_digest(&model) == nezha_model_digest(&other));
	assert_true(nezha_model_digest(NULL) == 0);
}

/* Two ranks with times of their own learn the same; one that is told another note is found out. */
static void ranks_that_learn(void **state)
{
	struct nezha_model a = { .pending_count = 0 }, b = { .pending_count = 0 };
	uint64_t note[NEZHA_NOTE_VALUES], other[NEZHA_NOTE_VALUES];
	bool differed = false;

	(void)state;
	for (int i = 0; nezha_model_digest(&a) == nezha_model_digest(&b); i++) {
		struct nezha_choice choice = nezha_model_choose(&a, M, 65536);
		struct nezha_model_times fast = { .native = 30 * choice.native, .rails = 10 * (M - choice.native) }, slow = fast;

		fast.native += 1000 * (uint64_t)i;
		slow.native *= 2;
		slow.rails *= 2;
		assert_true(i < 100);
		if (choice.alg != NEZHA_ALG_NATIVE && nezha_model_has_note(&a)) {
			assert_true(nezha_model_has_note(&b));
			nezha_model_note(&a, true, note);
			nezha_model_note(&b, true, other);
			for (int k = 0; k < NEZHA_NOTE_VALUES; k++)
				note[k] = note[k] < other[k] ? note[k] : other[k];
			nezha_model_learn(&a, note);
			assert_true(i <= 50 || !differed);
			differed = i > 50;
			note[1] += 1000000 * (uint64_t)differed;
			nezha_model_learn(&b, note);
		}
		nezha_model_count(&a, M, &choice, &fast);
		nezha_model_count(&b, M, &choice, &slow);
	}
	assert_true(differed);
}

static void plans(void **state)
{
	static const struct nezha_rail_set one = { 1, { { 0x00004d0a, 24 } } }, same = { 1, { { 0x00004d0a, 24 } } },
		narrow = { 1, { { 0x00004d0a, 25 } } }, other = { 1, { { 0x00014d0a, 24 } } },
		both = { 2, { { 0x00004d0a, 24 }, { 0x00014d0a, 24 } } };
	static const struct nezha_plan all[] = {
		{ .alg = NEZHA_ALG_NATIVE, .reason = NEZHA_REASON_LEARNT },
		{ .alg = NEZHA_ALG_NATIVE, .reason = NEZHA_REASON_SMALL },
		{ .alg = NEZHA_ALG_MIX, .reason = NEZHA_REASON_LEARNT, .block = 65536, .native = 65536 },
		{ .alg = NEZHA_ALG_MIX, .reason = NEZHA_REASON_LEARNT, .block = 65536, .native = 131072 },
		{ .alg = NEZHA_ALG_MIX, .reason = NEZHA_REASON_LEARNT, .block = 65536, .native = 131072, .nonblocking = true },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536 },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 32768 },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536, .rails = &one },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536, .rails = &same },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536, .rails = &narrow },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536, .rails = &other },
		{ .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536, .rails = &both },
	};
	size_t count = sizeof all / sizeof all[0];

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			assert_true(nezha_plan_equal(&all[i], &all[k]) ==
			            (nezha_plan_digest(&all[i]) == nezha_plan_digest(&all[k])));
}

/* As MPI_MIN over the ranks would. */
static bool agreed(const struct nezha_statement *ranks, int count)
{
	uint64_t least[NEZHA_STATEMENT_WORDS], words[NEZHA_STATEMENT_WORDS];

	memset(least, 0xff, sizeof least);
	for (int r = 0; r < count; r++) {
		nezha_statement_spread(&ranks[r], words);
		for (int i = 0; i < NEZHA_STATEMENT_WORDS; i++)
			least[i] = words[i] < least[i] ? words[i] : least[i];
	}
	return nezha_statement_agreed(least);
}

static void one_rank_is_found_out(void **state)
{
	static const uint64_t values[] = { 0, 1, 77, UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX - 1, UINT64_MAX };
	enum { RANKS = 5 };

	(void)state;
	for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
		for (int odd = 0; odd < RANKS; odd++) {
			struct nezha_statement ranks[RANKS];

			for (int r = 0; r < RANKS; r++)
				ranks[r] = (struct nezha_statement){ values[v], values[v], values[v], values[v] };
			assert_true(agreed(ranks, RANKS));
#define X(field, text) \
			ranks[odd].field ^= UINT64_C(1) << v * 9; \
			assert_false(agreed(ranks, RANKS)); \
			ranks[odd].field = values[v];
			NEZHA_STATEMENT(X)
#undef X
			assert_true(agreed(ranks, RANKS));
		}
}

static void what_differs(void **state)
{
	struct nezha_statement a = { 1, 2, 3, 4 }, b = a;
	char text[NEZHA_STATEMENT_TEXT];

	(void)state;
	nezha_statement_differs(&a, &b, text, sizeof text);
	assert_string_equal(text, "");
	b.model = 9;
	nezha_statement_differs(&a, &b, text, sizeof text);
	assert_string_equal(text, "model");
	b.bytes = b.plan = b.call = 9;
	nezha_statement_differs(&a, &b, text, sizeof text);
	assert_string_equal(text, "call number and size and model and plan");
	nezha_statement_differs(&a, &b, text, 8);
	assert_string_equal(text, "call nu");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_deciding_field_counts), cmocka_unit_test(what_is_local_does_not),
		cmocka_unit_test(ranks_that_learn),            cmocka_unit_test(plans),
		cmocka_unit_test(one_rank_is_found_out),       cmocka_unit_test(what_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
