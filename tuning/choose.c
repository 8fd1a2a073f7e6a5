/* SPDX-License-Identifier: BSD-3-Clause
 * From what was measured to rules (measured.h). */
#include <math.h>
#include <stdlib.h>

#include "tuning/measured.h"
#include "tuning/status.h"

#define CLOSE 0.35             /* library and rails differ by less, after one job; by the root of how many after more */
#define BORDER_GRAIN 4096u     /* bytes: borders between measured sizes are multiples of it, where that is between them */

const struct nezha_measured_time *nezha_choose(const struct nezha_measured_size *size)
{
	const struct nezha_measured_time *best = NULL, *native = NULL;

	for (size_t i = 0; i < size->count; i++) {
		const struct nezha_measured_time *time = &size->time[i];

		if (!best || time->ns < best->ns)
			best = time;
		if (time->rule.alg == NEZHA_ALG_NATIVE)
			native = time;
	}
	return native && native->ns <= NEZHA_CHOICE_TIE * best->ns ? native : best;
}

bool nezha_choice_is_close(const struct nezha_measured_size *size)
{
	double native = 0, rails = 0;

	for (size_t i = 0; i < size->count; i++) {
		const struct nezha_measured_time *time = &size->time[i];

		if (time->rule.alg == NEZHA_ALG_NATIVE)
			native = time->ns;
		else if (!rails || time->ns < rails)
			rails = time->ns;
	}
	return size->jobs && size->jobs < NEZHA_MEASURED_JOBS && native && rails && fmin(native, rails) < NEZHA_SWEEP_SHORT_NS &&
	       fmax(native, rails) < (1 + CLOSE / sqrt(size->jobs)) * fmin(native, rails);
}

bool nezha_choice_alike(const struct nezha_rule *a, const struct nezha_rule *b)
{
	return a->alg == b->alg && a->block == b->block && a->blocking == b->blocking && nezha_rail_set_equal(&a->rails, &b->rails);
}

bool nezha_choice_equal(const struct nezha_rule *a, const struct nezha_rule *b)
{
	return nezha_choice_alike(a, b) && a->share == b->share;
}

/* The largest size that is decided as `low` is, where `high` is decided otherwise. */
static uint64_t border(uint64_t low, uint64_t high)
{
	uint64_t middle = (uint64_t)(sqrt((double)low) * sqrt((double)high));
	uint64_t round = middle / BORDER_GRAIN * BORDER_GRAIN;

	if (round >= low && round < high)
		return round;
	return middle >= low && middle < high ? middle : low;
}

/* Adds the next larger size with its choice to the group, which has room. */
static void append(struct nezha_rule_group *group, uint64_t last, uint64_t bytes, const struct nezha_rule *choice)
{
	struct nezha_rule *rules = group->rules, rule = *choice;

	rule.msg_size_min = 0;
	rule.msg_size_max = UINT64_MAX;
	rule.reason = NEZHA_REASON_RULE;
	if (!group->rule_count) {
		if (rule.alg == NEZHA_ALG_NATIVE)
			rule.reason = NEZHA_REASON_SMALL;
		else if (bytes > 1)
			rules[group->rule_count++] = (struct nezha_rule){
				.msg_size_max = bytes - 1,
				.alg = NEZHA_ALG_NATIVE,
				.reason = NEZHA_REASON_SMALL,
			};
	} else if (nezha_choice_equal(&rules[group->rule_count - 1], &rule)) {
		return;
	} else {
		rules[group->rule_count - 1].msg_size_max = border(last, bytes);
	}
	rules[group->rule_count++] = rule;
}

int nezha_choose_rules(const struct nezha_measured *measured, struct nezha_rule_group *out)
{
	struct nezha_rule_group group = { .measured = measured->scale.ranks,
	                                  .measured_ppn = measured->scale.ppn };
	uint64_t last = 0;

	group.rules = calloc(measured->count + 1, sizeof *group.rules);
	if (!group.rules)
		return NEZHA_ERR_NOMEM;
	for (size_t i = 0; i < measured->count; i++) {
		const struct nezha_measured_size *size = &measured->size[i];

		if (!size->jobs)
			continue;
		append(&group, last, size->bytes, &nezha_choose(size)->rule);
		last = size->bytes;
	}
	if (!group.rule_count) {
		free(group.rules);
		return NEZHA_ERR_INVALID;
	}
	*out = group;
	return NEZHA_OK;
}
