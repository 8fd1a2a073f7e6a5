/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/grid.h"
#include "tuning/rules.h"
#include "tuning/status.h"

const char *nezha_reason_name(enum nezha_reason reason)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		NEZHA_REASONS(X)
#undef X
	};
	return names[reason];
}

const char *nezha_reason_text(enum nezha_reason reason)
{
	static const char *const texts[] = {
#define X(id, name, text) text,
		NEZHA_REASONS(X)
#undef X
	};
	return texts[reason];
}

const char *nezha_algorithm_name(enum nezha_algorithm alg)
{
	static const char *const names[NEZHA_ALG_COUNT] = { "native", "ring", "mix" };
	return names[alg];
}

static bool within(int value, int min, int max)
{
	return value >= min && value <= max;
}

const struct nezha_rule_group *nezha_rule_group_find(const struct nezha_table *table, const struct nezha_scale *scale)
{
	for (size_t i = 0; i < table->group_count; i++) {
		const struct nezha_rule_group *g = &table->groups[i];

		if (within(scale->ranks, g->comm_size_min, g->comm_size_max) &&
		    within(scale->nodes, g->nodes_min, g->nodes_max) &&
		    within(scale->ppn, g->ppn_min, g->ppn_max))
			return g;
	}
	return NULL;
}

const struct nezha_rule *nezha_rule_find(const struct nezha_rule_group *group, uint64_t bytes)
{
	for (size_t i = 0; i < group->rule_count; i++) {
		const struct nezha_rule *r = &group->rules[i];

		if (bytes >= r->msg_size_min && bytes <= r->msg_size_max)
			return r;
	}
	return NULL;
}

static struct nezha_plan native(enum nezha_reason reason)
{
	return (struct nezha_plan){ .alg = NEZHA_ALG_NATIVE, .reason = reason };
}

void nezha_plan_make(const struct nezha_table *table, const struct nezha_scale *scale,
                     uint64_t bytes, struct nezha_plan *out)
{
	const struct nezha_rule_group *group = nezha_rule_group_find(table, scale);
	const struct nezha_rule *rule = group ? nezha_rule_find(group, bytes) : NULL;
	struct nezha_grid grid;

	if (!rule)
		*out = native(NEZHA_REASON_NO_RULE);
	else if (rule->alg == NEZHA_ALG_NATIVE)
		*out = native(rule->reason);
	else if (nezha_grid_make(bytes, rule->block, &grid) != NEZHA_OK)
		*out = native(NEZHA_REASON_COUNT);
	else
		*out = (struct nezha_plan){
			.alg = rule->alg,
			.reason = rule->reason,
			.block = rule->block,
			.rails = rule->rails.count ? &rule->rails : NULL,
		};
}

uint64_t nezha_plan_native_below(const struct nezha_table *table, const struct nezha_scale *scale)
{
	const struct nezha_rule_group *group = nezha_rule_group_find(table, scale);
	uint64_t bytes = 1;   /* an empty vector is native whatever the rules say */

	/* Past each native rule that holds here; between rules, on to the next one that begins. */
	while (group) {
		const struct nezha_rule *rule = nezha_rule_find(group, bytes);
		uint64_t next = UINT64_MAX;

		if (rule && rule->alg != NEZHA_ALG_NATIVE)
			return bytes;
		for (size_t i = 0; i < group->rule_count; i++) {
			uint64_t begin = group->rules[i].msg_size_min;

			if (begin > bytes && begin < next)
				next = begin;
		}
		if (rule && rule->msg_size_max < next)
			next = rule->msg_size_max + 1;
		if (next == UINT64_MAX)
			break;
		bytes = next;
	}
	return UINT64_MAX;
}

bool nezha_plan_equal(const struct nezha_plan *a, const struct nezha_plan *b)
{
	return a->alg == b->alg && a->reason == b->reason && a->block == b->block && a->native == b->native &&
	       !a->rails == !b->rails &&
	       (!a->rails || nezha_rail_set_equal(a->rails, b->rails));
}

void nezha_plan_print(const struct nezha_plan *plan, char *buf, size_t len)
{
	char block[24], rails[NEZHA_RAIL_SET_TEXT] = "";
	int digits;

	if (plan->alg == NEZHA_ALG_NATIVE) {
		snprintf(buf, len, "native (%s)", nezha_reason_text(plan->reason));
		return;
	}
	nezha_bytes_print(plan->block, block, sizeof block);
	digits = (int)strspn(block, "0123456789");
	if (plan->rails)
		nezha_rail_set_print(plan->rails, ',', rails, sizeof rails);
	snprintf(buf, len, "%s, blocks of %.*s %siB%s%s (%s)", nezha_algorithm_name(plan->alg), digits, block,
	         block + digits, *rails ? ", " : "", rails, nezha_reason_text(plan->reason));
}
