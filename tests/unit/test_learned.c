/* SPDX-License-Identifier: BSD-3-Clause
 * What jobs have learnt as rules of a table. */
#include "tests/unit/learned_bed.h"

#include <stdlib.h>

/* A table with the rules of one model. */
static struct nezha_table *table_of(const struct nezha_model *model, const struct nezha_scale *scale)
{
	struct nezha_rule_group group;
	struct nezha_table *table;

	assert_int_equal(nezha_learned_rules(model, builtin, NULL, scale, &group), NEZHA_OK);
	assert_int_equal(nezha_scales_none(&table), NEZHA_OK);
	assert_int_equal(nezha_scales_put(table, &group), NEZHA_OK);
	return table;
}

static void what_is_not_known_stays(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_table *table = table_of(&model, &four);

	(void)state;
	assert_native_between(table, &four, 0, 0);
	assert_int_equal(table->groups[0].rule_count, 7);     /* the built-in ones, and no more */
	nezha_table_free(table);
	learn(&model, 2, M, 1, 1000000000);                    /* too few calls for a decision */
	table = table_of(&model, &four);
	assert_native_between(table, &four, 0, 0);
	nezha_table_free(table);
}

static void classes_become_rules(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_table *table, *again;
	char *text;

	(void)state;
	learn(&model, 20, M, 4000000, 10000000);
	learn(&model, 20, 3 * M, 8000000, 30000000);
	learn(&model, 20, 64 * M, 800000000, 300000000);       /* the rails' */
	table = table_of(&model, &four);
	assert_native_between(table, &four, M, 4 * M);
	/* small; 8K; 12K; 24K below 1M; native; 64K; 128K; 512K: neighbours that decide alike are one */
	assert_int_equal(table->groups[0].rule_count, 8);
	assert_int_equal(table->groups[0].measured, 4);
	text = nezha_table_print(table);
	again = parse(text);
	assert_native_between(again, &four, M, 4 * M);
	/* The nearest numbers of ranks follow it; those that share a node do not: nobody has measured them. */
	assert_native_between(again, &(struct nezha_scale){ 6, 6, 1 }, M, 4 * M);
	assert_native_between(again, &(struct nezha_scale){ 4, 2, 2 }, 0, 0);
	assert_native_between(again, &(struct nezha_scale){ 4, 1, 4 }, 0, 0);
	free(text);
	nezha_table_free(again);
	nezha_table_free(table);
}

/* Small sizes stay small ones whatever was learnt of their neighbours; the last class has no end. */
static void the_ends(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_table *table;
	struct nezha_plan plan;

	(void)state;
	learn(&model, 20, 16 * K, 100000, 1000000);
	learn(&model, 20, UINT64_MAX, 1, 1000);
	table = table_of(&model, &four);
	nezha_plan_make(table, &four, 16 * K - 1, &plan);
	assert_int_equal(plan.reason, NEZHA_REASON_SMALL);
	nezha_plan_make(table, &four, 16 * K, &plan);
	assert_int_equal(plan.reason, NEZHA_REASON_RULE);
	assert_int_equal(plan.alg, NEZHA_ALG_NATIVE);
	nezha_plan_make(table, &four, 32 * K, &plan);
	assert_int_equal(plan.block, 8 * K);
	nezha_plan_make(table, &four, UINT64_MAX, &plan);
	assert_int_equal(plan.reason, NEZHA_REASON_RULE);
	nezha_table_free(table);
}

/* Calls of `bytes` where the library has a network of its own: `native` and `rails` are what they take alone, and of a mix each its part. */
static void learn_apart(struct nezha_model *model, int calls, uint64_t bytes, uint64_t native, uint64_t rails)
{
	for (int i = 0; i < calls; i++) {
		struct nezha_choice choice = nezha_model_choose(model, bytes, 64 * K);
		struct nezha_model_times times = { .native = native * choice.native / bytes, .rails = rails * (bytes - choice.native) / bytes,
		                                   .idle = true };
		uint64_t note[NEZHA_NOTE_VALUES];

		if (choice.alg != NEZHA_ALG_NATIVE && nezha_model_has_note(model)) {
			nezha_model_note(model, true, note);
			nezha_model_learn(model, note);
		}
		nezha_model_count(model, bytes, &choice, &times);
	}
}

/* A network of the library's own beside one of half its rate: two thirds and a third. */
static void a_mix_becomes_a_rule(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_table *table, *again;
	struct nezha_decision found;
	struct nezha_plan plan;
	char *text;

	(void)state;
	learn_apart(&model, 40, 3 * M, 20000000, 40000000);
	assert_true(nezha_model_decided(&model, 3 * M, &found));
	assert_int_equal(found.alg, NEZHA_ALG_MIX);
	assert_in_range(found.share, 655, 675);
	assert_false(found.blocking || found.trying);
	table = table_of(&model, &four);
	text = nezha_table_print(table);
	again = parse(text);
	for (uint64_t bytes = 2 * M; bytes < 4 * M; bytes += 64 * K + 4) {
		nezha_plan_make(again, &four, bytes, &plan);
		assert_int_equal(plan.alg, NEZHA_ALG_MIX);
		assert_int_equal(plan.reason, NEZHA_REASON_RULE);
		assert_true(plan.native % plan.block == 0 && plan.nonblocking);
		assert_in_range(plan.native, bytes * 64 / 100, bytes * 69 / 100);
	}
	nezha_plan_make(again, &four, 2 * M - 1, &plan);
	assert_int_equal(plan.alg, NEZHA_ALG_RING);
	nezha_plan_make(again, &four, 4 * M, &plan);
	assert_int_equal(plan.alg, NEZHA_ALG_RING);
	free(text);
	nezha_table_free(again);
	nezha_table_free(table);
}

/* A table that is there has decided for other sizes; and of rings it knows the blocks and the rails. */
static void what_was_known_stays(void **state)
{
	struct nezha_table *known = parse("{\"version\": 1, \"collectives\": {\"allreduce\": [{\"measured\": 4, \"rules\": ["
	                                  "{\"msg_size_max\": \"4K\", \"alg\": \"ring\", \"block\": \"4K\"},"
	                                  "{\"msg_size_max\": \"1M\", \"alg\": \"native\"},"
	                                  "{\"alg\": \"ring\", \"block\": \"32K\", \"rails\": \"tcp:10.1.0.0/16\"}]}]}}");
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_rule_group group;
	const struct nezha_rule *rule;

	(void)state;
	learn(&model, 20, 64 * K, 100000000, 1000000);         /* the rails', which was the library's */
	learn(&model, 20, 2 * M, 50000000, 100000000);         /* the library's, which was the rails' */
	learn(&model, 20, 8 * M, 100000000, 1000000);          /* the rails', as it was */
	assert_int_equal(nezha_learned_rules(&model, builtin, nezha_scales_find(known, 4, 1), &four, &group), NEZHA_OK);
	rule = nezha_rule_find(&group, 4 * K);
	assert_true(rule->alg == NEZHA_ALG_RING && rule->block == 4 * K);      /* smaller than what is learnt of */
	assert_int_equal(nezha_rule_find(&group, 4 * K + 1)->alg, NEZHA_ALG_NATIVE);
	assert_int_equal(nezha_rule_find(&group, 64 * K)->alg, NEZHA_ALG_RING);
	assert_int_equal(nezha_rule_find(&group, 128 * K)->alg, NEZHA_ALG_NATIVE);     /* not seen */
	assert_int_equal(nezha_rule_find(&group, 2 * M)->alg, NEZHA_ALG_NATIVE);
	for (uint64_t bytes = 4 * M; bytes <= 64 * M; bytes *= 2) {
		rule = nezha_rule_find(&group, bytes);
		assert_true(rule->alg == NEZHA_ALG_RING && rule->block == 32 * K && rule->rails.count == 1);
	}
	free(group.rules);
	nezha_table_free(known);
}

/* It was for one job. */
static void a_rule_of_the_user_is_not_written(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_table *base;
	struct nezha_rule_group group;
	char *error;

	(void)state;
	learn(&model, 20, 4 * M, 1000000, 100000000);
	assert_int_equal(nezha_table_builtin(&base), NEZHA_OK);
	assert_int_equal(nezha_table_override(base, "alg=native,min=64K,max=2M", &error), NEZHA_OK);
	assert_int_equal(nezha_learned_rules(&model, base, NULL, &four, &group), NEZHA_OK);
	assert_int_equal(nezha_rule_find(&group, M)->alg, NEZHA_ALG_RING);
	assert_int_equal(nezha_rule_find(&group, 4 * M)->alg, NEZHA_ALG_NATIVE);
	for (size_t i = 0; i < group.rule_count; i++)
		assert_int_not_equal(group.rules[i].reason, NEZHA_REASON_TUNE);
	free(group.rules);
	nezha_table_free(base);
}

/* Where the library is not tried, since a class below was far in favour of the rails, that is a decision, too. */
static void decisions_without_a_try(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_decision found;

	(void)state;
	assert_false(nezha_model_decided(&model, M, &found));
	learn(&model, 1, M, 50000000, 10000000);
	assert_false(nezha_model_decided(&model, M, &found));
	learn(&model, 4, M, 50000000, 10000000);
	assert_true(nezha_model_decided(&model, M, &found));
	assert_int_equal(found.alg, NEZHA_ALG_RING);
	assert_false(nezha_model_decided(&model, 2 * M, &found));     /* not seen */
	learn(&model, 1, 2 * M, 100000000, 20000000);
	assert_true(nezha_model_decided(&model, 2 * M, &found));
	assert_int_equal(found.alg, NEZHA_ALG_RING);
	assert_int_equal(model.calls, 6);
}

static void keeps_the_one_with_most_calls(void **state)
{
	struct nezha_model few = { .pending_count = 0 }, most = few, undecided = few;
	struct nezha_learned learned = { .count = 0 };

	(void)state;
	learn(&few, 10, M, 1, 1000000);
	learn(&most, 20, 4 * M, 1, 1000000);
	learn(&undecided, 2, M, 1, 1000000);
	assert_int_equal(nezha_learned_keep(&learned, &four, &undecided), NEZHA_OK);
	assert_int_equal(learned.count, 0);
	assert_int_equal(nezha_learned_keep(&learned, &four, &few), NEZHA_OK);
	assert_int_equal(nezha_learned_keep(&learned, &four, &most), NEZHA_OK);
	assert_int_equal(nezha_learned_keep(&learned, &four, &few), NEZHA_OK);
	assert_int_equal(nezha_learned_keep(&learned, &two, &few), NEZHA_OK);
	assert_int_equal(learned.count, 2);
	assert_int_equal(learned.of[0].calls, 20);
	assert_memory_equal(&learned.of[0].model, &most, sizeof most);
	assert_int_equal(learned.of[1].scale.ranks, 2);
	assert_int_equal(nezha_learned_keep(&learned, &(struct nezha_scale){ 4, 2, 2 }, &few), NEZHA_OK);
	assert_int_equal(learned.count, 3);
	assert_int_equal(learned.of[2].scale.ppn, 2);
	nezha_learned_clear(&learned);
	assert_int_equal(learned.count, 0);
}

static int begin(void **state)
{
	(void)state;
	return nezha_table_builtin(&builtin);
}

static int end(void **state)
{
	(void)state;
	nezha_table_free(builtin);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_known_stays),
		cmocka_unit_test(classes_become_rules),
		cmocka_unit_test(the_ends),
		cmocka_unit_test(a_mix_becomes_a_rule),
		cmocka_unit_test(what_was_known_stays),
		cmocka_unit_test(a_rule_of_the_user_is_not_written),
		cmocka_unit_test(decisions_without_a_try),
		cmocka_unit_test(keeps_the_one_with_most_calls),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
