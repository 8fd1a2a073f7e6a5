/* SPDX-License-Identifier: BSD-3-Clause
 * Models that have learnt something, and what a table made of them is to say. */
#ifndef NEZHA_TESTS_LEARNED_BED_H
#define NEZHA_TESTS_LEARNED_BED_H

#include "tests/unit/parse.h"

#include "tuning/learned.h"
#include "tuning/plan.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"

#define K UINT64_C(1024)
#define M (K * K)

static const struct nezha_scale four = { 4, 4, 1 }, two = { 2, 2, 1 };
static struct nezha_table *builtin;

/* Calls of `bytes` by one rank, for which folding a note changes nothing: `native` and `rails` are what they take. */
static void learn(struct nezha_model *model, int calls, uint64_t bytes, uint64_t native, uint64_t rails)
{
	for (int i = 0; i < calls; i++) {
		struct nezha_choice choice = nezha_model_choose(model, bytes, 64 * K);
		struct nezha_model_times times = { .native = choice.native ? native : 0, .rails = rails };
		uint64_t note[NEZHA_NOTE_VALUES];

		if (choice.alg != NEZHA_ALG_NATIVE && nezha_model_has_note(model)) {
			nezha_model_note(model, true, note);
			nezha_model_learn(model, note);
		}
		nezha_model_count(model, bytes, &choice, &times);
	}
}

/* That the table sends [from, to) to the library, as learnt, and all else where the built-in rules do. */
static void assert_native_between(const struct nezha_table *table, const struct nezha_scale *scale, uint64_t from,
                                  uint64_t to)
{
	for (uint64_t power = 1; power && power <= (uint64_t)1 << 46; power *= 2) {
		uint64_t sizes[] = { power - 1, power, power + 1, power + power / 2 };

		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			struct nezha_plan plan, wanted;

			nezha_plan_make(table, scale, sizes[i], &plan);
			nezha_plan_make(builtin, scale, sizes[i], &wanted);
			if (sizes[i] >= from && sizes[i] < to)
				wanted = (struct nezha_plan){ .alg = NEZHA_ALG_NATIVE, .reason = NEZHA_REASON_RULE };
			if (!nezha_plan_equal(&plan, &wanted))
				fail_msg("%llu bytes go %s for %s", (unsigned long long)sizes[i],
				         nezha_algorithm_name(plan.alg), nezha_reason_name(plan.reason));
		}
	}
}

#endif
