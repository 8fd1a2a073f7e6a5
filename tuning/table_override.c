/* SPDX-License-Identifier: BSD-3-Clause
 * NEZHA_TUNE: a rule before all others. */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/grid.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/text.h"

#define SHOWN_MAX 40   /* bytes of a wrong value in a message */

struct word {
	const char *text;
	size_t len;
};

static bool is(struct word word, const char *text)
{
	return strlen(text) == word.len && !memcmp(word.text, text, word.len);
}

static int refuse(struct word word, const char *allowed, char **error)
{
	int len = (int)(word.len < SHOWN_MAX ? word.len : SHOWN_MAX);

	if (asprintf(error, "NEZHA_TUNE: \"%.*s\": allowed is %s", len, word.text, allowed) < 0)
		return NEZHA_ERR_NOMEM;
	nezha_text_clean(*error, strlen(*error));
	return NEZHA_ERR_INVALID;
}

static bool to_bytes(struct word value, uint64_t *out)
{
	char text[32];

	if (value.len >= sizeof text)
		return false;
	memcpy(text, value.text, value.len);
	text[value.len] = '\0';
	return nezha_bytes_parse(text, out) == NEZHA_OK;
}

static int read_alg(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	for (int alg = 0; alg < NEZHA_ALG_COUNT; alg++)
		if (is(value, nezha_algorithm_name((enum nezha_algorithm)alg))) {
			rule->alg = (enum nezha_algorithm)alg;
			return NEZHA_OK;
		}
	return refuse(whole, "alg=native, alg=ring or alg=mix", error);
}

/* "0.6" to "0.613".  (strtod goes by the program's locale.) */
static int read_share(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	size_t digits = value.len > 2 ? value.len - 2 : 0;
	unsigned share = 0;

	for (size_t i = 0; i < 3; i++) {
		char c = i < digits ? value.text[2 + i] : '0';

		share = c >= '0' && c <= '9' ? 10 * share + (unsigned)(c - '0') : NEZHA_SHARE_WHOLE;
	}
	if (!digits || digits > 3 || memcmp(value.text, "0.", 2) || !share || share >= NEZHA_SHARE_WHOLE)
		return refuse(whole, "share= the MPI library's part, from 0.001 to 0.999", error);
	rule->share = (uint16_t)share;
	return NEZHA_OK;
}

static int read_call(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	if (!is(value, "blocking") && !is(value, "nonblocking"))
		return refuse(whole, "call=nonblocking or call=blocking", error);
	rule->blocking = is(value, "blocking");
	return NEZHA_OK;
}

static int read_block(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	uint64_t bytes;

	if (!to_bytes(value, &bytes) || !nezha_block_fits(bytes))
		return refuse(whole, "block= a multiple of 4K from 4K to 4M", error);
	rule->block = (uint32_t)bytes;
	return NEZHA_OK;
}

static int read_min(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	if (!to_bytes(value, &rule->msg_size_min))
		return refuse(whole, "min= a number of bytes, such as 65536, 64K or 1M", error);
	return NEZHA_OK;
}

static int read_max(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	if (is(value, "inf"))
		rule->msg_size_max = UINT64_MAX;
	else if (!to_bytes(value, &rule->msg_size_max))
		return refuse(whole, "max= a number of bytes, such as 65536, 64K or 1M, or inf", error);
	return NEZHA_OK;
}

static int read_rails(struct word whole, struct word value, struct nezha_rule *rule, char **error)
{
	if (nezha_rail_set_parse(value.text, value.len, &rule->rails) != NEZHA_OK)
		return refuse(whole, "rails= " NEZHA_RAIL_SET_ALLOWED ", with + between them", error);
	return NEZHA_OK;
}

static const struct {
	const char *key;
	int (*read)(struct word whole, struct word value, struct nezha_rule *rule, char **error);
} keys[] = {
	{ "alg", read_alg }, { "block", read_block }, { "min", read_min }, { "max", read_max },
	{ "rails", read_rails }, { "share", read_share }, { "call", read_call },
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

/* One "key=value"; bit k of *seen: keys[k] was there. */
static int read_word(struct word word, struct nezha_rule *rule, unsigned *seen, char **error)
{
	const char *equals = memchr(word.text, '=', word.len);
	struct word key = { word.text, equals ? (size_t)(equals - word.text) : word.len }, value;

	for (size_t k = 0; equals && k < KEY_COUNT; k++) {
		if (!is(key, keys[k].key))
			continue;
		if (*seen & 1u << k)
			return refuse(word, "each of alg, block, rails, share, call, min and max once", error);
		*seen |= 1u << k;
		value = (struct word){ equals + 1, word.len - key.len - 1 };
		return keys[k].read(word, value, rule, error);
	}
	return refuse(word, "alg=, block=, rails=, share=, call=, min= and max=, separated by commas", error);
}

/* Without block= its block is 0. */
static int read_rule(const char *tune, struct nezha_rule *out, char **error)
{
	struct nezha_rule rule = { .msg_size_max = UINT64_MAX, .reason = NEZHA_REASON_TUNE };
	struct word whole = { tune, strlen(tune) };
	unsigned seen = 0;

	for (const char *at = tune;; at++) {
		struct word word = { at, strcspn(at, ",") };
		int status = read_word(word, &rule, &seen, error);

		if (status != NEZHA_OK)
			return status;
		at += word.len;
		if (!*at)
			break;
	}
	if (!(seen & 1))
		return refuse(whole, "alg=native, alg=ring or alg=mix in it", error);
	if (rule.alg == NEZHA_ALG_NATIVE && rule.block)
		return refuse(whole, "block= with alg=ring and alg=mix only", error);
	if (rule.alg == NEZHA_ALG_NATIVE && rule.rails.count)
		return refuse(whole, "rails= with alg=ring and alg=mix only", error);
	if (rule.alg == NEZHA_ALG_MIX && !rule.share)
		return refuse(whole, "alg=mix with share= only", error);
	if (rule.alg != NEZHA_ALG_MIX && (rule.share || rule.blocking))
		return refuse(whole, "share= and call= with alg=mix only", error);
	if (rule.msg_size_min > rule.msg_size_max)
		return refuse(whole, "a min= that is not more than max=", error);
	*out = rule;
	return NEZHA_OK;
}

int nezha_rule_parse(const char *tune, struct nezha_rule *out, char **error)
{
	int status = read_rule(tune, out, error);

	if (status == NEZHA_OK && out->alg != NEZHA_ALG_NATIVE && !out->block)
		out->block = NEZHA_BLOCK_DEFAULT;
	return status;
}

/* ---- in front of a table's ---- */

/* What goes before a group's rules, at most `room`, and how many it is.  A ring whose blocks are not given has those that the group has
 * for a size; where the group is native, those of its first ring. */
static size_t make_first(const struct nezha_rule *rule, const struct nezha_rule_group *group, struct nezha_rule *first, size_t room)
{
	struct nezha_rule rest = *rule;
	size_t count = 0;

	for (size_t i = 0; i < group->rule_count && rule->alg != NEZHA_ALG_NATIVE && !rule->block; i++) {
		const struct nezha_rule *as = &group->rules[i];
		struct nezha_rule one = *rule;

		if (as->alg == NEZHA_ALG_NATIVE)
			continue;
		if (!rest.block)
			rest.block = as->block;
		if (one.msg_size_min < as->msg_size_min)
			one.msg_size_min = as->msg_size_min;
		if (one.msg_size_max > as->msg_size_max)
			one.msg_size_max = as->msg_size_max;
		one.block = as->block;
		if (one.msg_size_min <= one.msg_size_max && count++ < room)
			first[count - 1] = one;
	}
	if (rule->alg != NEZHA_ALG_NATIVE && !rest.block)
		rest.block = NEZHA_BLOCK_DEFAULT;
	if (count++ < room)
		first[count - 1] = rest;
	return count;
}

/* A group like `group` with what goes first: its rules are a new array, NULL: no memory. */
static struct nezha_rule_group with_first(const struct nezha_rule *rule, const struct nezha_rule_group *group)
{
	struct nezha_rule_group out = *group;
	size_t first = make_first(rule, group, NULL, 0);

	out.rule_count += first;
	out.rules = malloc(out.rule_count * sizeof *out.rules);
	if (!out.rules)
		return out;
	make_first(rule, group, out.rules, first);
	if (group->rule_count)
		memcpy(out.rules + first, group->rules, group->rule_count * sizeof *out.rules);
	return out;
}

static int check_room(const struct nezha_table *table, const struct nezha_rule *rule, char **error)
{
	bool room = table->group_count < NEZHA_TABLE_GROUPS;

	for (size_t i = 0; i < table->group_count; i++)
		room = room && table->groups[i].rule_count + make_first(rule, &table->groups[i], NULL, 0) <= NEZHA_TABLE_RULES;
	if (room)
		return NEZHA_OK;
	if (asprintf(error,
	             "NEZHA_TUNE: no room for what it adds to the table: allowed are %d groups of %d rules; with block= it adds one "
	             "rule to each group, and one group",
	             NEZHA_TABLE_GROUPS, NEZHA_TABLE_RULES) < 0)
		return NEZHA_ERR_NOMEM;
	return NEZHA_ERR_INVALID;
}

int nezha_table_override(struct nezha_table *table, const char *tune, char **error)
{
	static const struct nezha_rule_group any = {
		.comm_size_min = 1, .comm_size_max = INT_MAX,
		.nodes_min = 1, .nodes_max = INT_MAX,
		.ppn_min = 1, .ppn_max = INT_MAX,
	};
	struct nezha_rule rule;
	struct nezha_rule_group *groups;
	size_t count = table->group_count;
	int status = read_rule(tune, &rule, error);

	if (status == NEZHA_OK)
		status = check_room(table, &rule, error);
	if (status != NEZHA_OK)
		return status;
	groups = calloc(count + 1, sizeof *groups);
	if (!groups)
		return NEZHA_ERR_NOMEM;
	for (size_t i = 0; i <= count; i++) {
		groups[i] = with_first(&rule, i < count ? &table->groups[i] : &any);
		if (!groups[i].rules)
			goto no_memory;
	}
	for (size_t i = 0; i < count; i++)
		free(table->groups[i].rules);
	free(table->groups);
	table->groups = groups;
	table->group_count = count + 1;
	return NEZHA_OK;

no_memory:
	for (size_t i = 0; i <= count; i++)
		free(groups[i].rules);
	free(groups);
	return NEZHA_ERR_NOMEM;
}
