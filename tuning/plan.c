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

/* The library's bytes of a mix: whole blocks, one at least, and not all.  `bytes` are more than a block. */
static uint64_t share_of_library(const struct nezha_rule *rule, uint64_t bytes)
{
	uint64_t exact = bytes / NEZHA_SHARE_WHOLE * rule->share + bytes % NEZHA_SHARE_WHOLE * rule->share / NEZHA_SHARE_WHOLE;
	uint64_t share = (exact + rule->block / 2) / rule->block * rule->block;

	if (share < rule->block)
		return rule->block;
	return share < bytes ? share : share - rule->block;
}

/* What is not more than a block cannot be shared, and goes where most of a larger vector does. */
static struct nezha_plan mix(const struct nezha_rule *rule, uint64_t bytes)
{
	if (bytes <= rule->block)
		return (struct nezha_plan){ .alg = 2 * rule->share < NEZHA_SHARE_WHOLE ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE };
	return (struct nezha_plan){
		.alg = NEZHA_ALG_MIX,
		.native = share_of_library(rule, bytes),
		.nonblocking = !rule->blocking,
		.share = rule->share,
	};
}

static struct nezha_plan follow(const struct nezha_rule *rule, uint64_t bytes)
{
	struct nezha_plan plan = rule->alg == NEZHA_ALG_MIX ? mix(rule, bytes) : (struct nezha_plan){ .alg = rule->alg };

	plan.reason = rule->reason;
	if (plan.alg == NEZHA_ALG_NATIVE)
		return plan;
	plan.block = rule->block;
	plan.rails = rule->rails.count ? &rule->rails : NULL;
	return plan;
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
		*out = follow(rule, bytes);
}

uint64_t nezha_plan_native_below(const struct nezha_table *table, const struct nezha_scale *scale)
{
	const struct nezha_rule_group *group = nezha_rule_group_find(table, scale);
	uint64_t bytes = 1;   /* an empty vector is native whatever the rules say */

	/* Past each native rule that holds here; between rules, on to the next one that begins. */
	while (group) {
		const struct nezha_rule *rule = nezha_rule_find(group, bytes);
		uint64_t next = UINT64_MAX;

		if (rule && follow(rule, bytes).alg != NEZHA_ALG_NATIVE)
			return bytes;
		for (size_t i = 0; i < group->rule_count; i++) {
			uint64_t begin = group->rules[i].msg_size_min;

			if (begin > bytes && begin < next)
				next = begin;
		}
		if (rule && rule->msg_size_max < next)
			next = rule->msg_size_max + 1;
		if (rule && rule->share && rule->block < next)      /* what it is for, but too small to be shared */
			next = rule->block + 1;
		if (next == UINT64_MAX)
			break;
		bytes = next;
	}
	return UINT64_MAX;
}

bool nezha_plan_equal(const struct nezha_plan *a, const struct nezha_plan *b)
{
	return a->alg == b->alg && a->reason == b->reason && a->block == b->block && a->native == b->native &&
	       a->nonblocking == b->nonblocking && !a->rails == !b->rails &&
	       (!a->rails || nezha_rail_set_equal(a->rails, b->rails));
}

/* "64 KiB" */
static void print_bytes(uint64_t bytes, char *buf, size_t len)
{
	char text[24];
	int digits;

	nezha_bytes_print(bytes, text, sizeof text);
	digits = (int)strspn(text, "0123456789");
	snprintf(buf, len, "%.*s %s%s", digits, text, text + digits, text[digits] ? "iB" : "bytes");
}

/* ", 61.3 % native" */
static void print_share(const struct nezha_plan *plan, char *buf, size_t len)
{
	char first[32];

	if (plan->share) {
		snprintf(buf, len, ", %.1f %% native%s", 100.0 * plan->share / NEZHA_SHARE_WHOLE, plan->nonblocking ? "" : " in one call");
		return;
	}
	print_bytes(plan->native, first, sizeof first);
	snprintf(buf, len, ", the first %s native", first);
}

void nezha_plan_print(const struct nezha_plan *plan, char *buf, size_t len)
{
	char block[32], library[80] = "", rails[NEZHA_RAIL_SET_TEXT] = "";

	if (plan->alg == NEZHA_ALG_NATIVE) {
		snprintf(buf, len, "native (%s)", nezha_reason_text(plan->reason));
		return;
	}
	print_bytes(plan->block, block, sizeof block);
	if (plan->alg == NEZHA_ALG_MIX)
		print_share(plan, library, sizeof library);
	if (plan->rails)
		nezha_rail_set_print(plan->rails, ',', rails, sizeof rails);
	snprintf(buf, len, "%s%s, blocks of %s%s%s (%s)", nezha_algorithm_name(plan->alg), library, block, *rails ? ", " : "", rails,
	         nezha_reason_text(plan->reason));
}
