/* SPDX-License-Identifier: BSD-3-Clause
 * From what was measured to rules (measured.h). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/measured.h"
#include "tuning/status.h"

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

static bool same_choice(const struct nezha_rule *a, const struct nezha_rule *b)
{
	return a->alg == b->alg && a->block == b->block && nezha_rail_set_equal(&a->rails, &b->rails);
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
	} else if (same_choice(&rules[group->rule_count - 1], &rule)) {
		return;
	} else {
		rules[group->rule_count - 1].msg_size_max = border(last, bytes);
	}
	rules[group->rule_count++] = rule;
}

int nezha_choose_rules(const struct nezha_measured *measured, struct nezha_rule_group *out)
{
	struct nezha_rule_group group = { .measured = measured->scale.ranks };
	uint64_t last = 0;

	group.rules = calloc(measured->count + 1, sizeof *group.rules);
	if (!group.rules)
		return NEZHA_ERR_NOMEM;
	for (size_t i = 0; i < measured->count; i++) {
		const struct nezha_measured_size *size = &measured->size[i];

		if (!size->finished)
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

/* Measured groups first, by ranks; the others as they were. */
static int place_of(const struct nezha_rule_group *groups, size_t count, int ranks)
{
	size_t i = 0;

	while (i < count && groups[i].measured && groups[i].measured < ranks)
		i++;
	return (int)i;
}

/* Shares out all numbers of ranks among the measured groups, which come first. */
static void share_out(struct nezha_table *table)
{
	int from = 1;

	for (size_t i = 0; i < table->group_count && table->groups[i].measured; i++) {
		struct nezha_rule_group *group = &table->groups[i], *next = group + 1;
		bool last = i + 1 == table->group_count || !next->measured;

		group->nodes_min = 2;
		group->nodes_max = INT_MAX;
		group->ppn_min = group->ppn_max = 1;
		group->comm_size_min = from;
		group->comm_size_max = last ? INT_MAX :
			(int)sqrt((double)group->measured * (double)next->measured);
		from = last ? from : group->comm_size_max + 1;
	}
}

bool nezha_choose_has(const struct nezha_table *table, int ranks)
{
	for (size_t i = 0; i < table->group_count; i++)
		if (table->groups[i].measured == ranks)
			return true;
	return false;
}

/* The groups in two parts: the measured ones without those of `ranks`, by ranks, then the others. */
static size_t sort_groups(const struct nezha_table *table, int ranks, struct nezha_rule_group *out)
{
	size_t count = 0;

	for (size_t i = 0; i < table->group_count; i++) {
		const struct nezha_rule_group *group = &table->groups[i];
		int at;

		if (!group->measured || group->measured == ranks)
			continue;
		at = place_of(out, count, group->measured);
		memmove(&out[at + 1], &out[at], (count - (size_t)at) * sizeof *out);
		out[at] = *group;
		count++;
	}
	for (size_t i = 0; i < table->group_count; i++)
		if (!table->groups[i].measured)
			out[count++] = table->groups[i];
	return count;
}

int nezha_choose_put(struct nezha_table *table, const struct nezha_rule_group *group)
{
	struct nezha_rule_group *groups = calloc(table->group_count + 1, sizeof *groups);
	size_t count;
	int at;

	if (!groups)
		return NEZHA_ERR_NOMEM;
	count = sort_groups(table, group->measured, groups);
	if (count == NEZHA_TABLE_GROUPS) {
		free(groups);
		return NEZHA_ERR_INVALID;
	}
	for (size_t i = 0; i < table->group_count; i++)
		if (table->groups[i].measured == group->measured)
			free(table->groups[i].rules);
	at = place_of(groups, count, group->measured);
	memmove(&groups[at + 1], &groups[at], (count - (size_t)at) * sizeof *groups);
	groups[at] = *group;
	free(table->groups);
	table->groups = groups;
	table->group_count = count + 1;
	share_out(table);
	return NEZHA_OK;
}
