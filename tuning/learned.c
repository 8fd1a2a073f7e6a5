/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/learned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/file.h"
#include "tuning/log.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"

/* ---- which models ---- */

static bool has_decided(const struct nezha_model *model)
{
	struct nezha_decision decision;

	for (uint32_t k = 0; k < NEZHA_MODEL_CLASSES; k++)
		if (nezha_model_decided(model, (uint64_t)1 << k, &decision))
			return true;
	return false;
}

/* The scale's place, made if there is none; NULL: no memory. */
static struct nezha_learned_scale *place(struct nezha_learned *learned, const struct nezha_scale *scale)
{
	struct nezha_learned_scale *of;

	for (size_t i = 0; i < learned->count; i++)
		if (learned->of[i].scale.ranks == scale->ranks && learned->of[i].scale.ppn == scale->ppn)
			return &learned->of[i];
	of = realloc(learned->of, (learned->count + 1) * sizeof *of);
	if (!of)
		return NULL;
	learned->of = of;
	of[learned->count] = (struct nezha_learned_scale){ .scale = *scale };
	return &of[learned->count++];
}

int nezha_learned_keep(struct nezha_learned *learned, const struct nezha_scale *scale, const struct nezha_model *model)
{
	uint64_t calls = model->calls;
	struct nezha_learned_scale *to;

	/* More than a table takes are not needed to find out that it does not take them. */
	if (!has_decided(model) || learned->count == NEZHA_TABLE_GROUPS)
		return NEZHA_OK;
	to = place(learned, scale);
	if (!to) {
		nezha_warn("no memory to keep what a communicator of %d ranks has learnt", scale->ranks);
		return NEZHA_ERR_NOMEM;
	}
	if (calls > to->calls) {
		to->calls = calls;
		to->model = *model;
	}
	return NEZHA_OK;
}

void nezha_learned_clear(struct nezha_learned *learned)
{
	free(learned->of);
	*learned = (struct nezha_learned){ .count = 0 };
}

/* ---- rules ---- */

static void least_above(uint64_t at, uint64_t value, uint64_t *least)
{
	if (value > at && (!*least || value < *least))
		*least = value;
}

static void next_border_of(const struct nezha_rule_group *group, uint64_t at, uint64_t *least)
{
	for (size_t i = 0; group && i < group->rule_count; i++) {
		least_above(at, group->rules[i].msg_size_min, least);
		if (group->rules[i].msg_size_max != UINT64_MAX)
			least_above(at, group->rules[i].msg_size_max + 1, least);
	}
}

/* What a scale's new rules follow from. */
struct sources {
	const struct nezha_model *model;
	const struct nezha_rule_group *base, *known;   /* NULL: there is none */
};

/* The next size above `at` where a class or a rule begins or ends; 0: there is none. */
static uint64_t next_border(const struct sources *from, uint64_t at)
{
	uint64_t least = 0;

	for (uint32_t k = 1; k < NEZHA_MODEL_CLASSES; k++)
		least_above(at, (uint64_t)1 << k, &least);
	next_border_of(from->base, at, &least);
	next_border_of(from->known, at, &least);
	return least;
}

/* What the job began with, where NEZHA_TUNE did not decide; native if there is nothing. */
static struct nezha_rule base_rule(const struct nezha_rule_group *base, uint64_t bytes)
{
	for (size_t i = 0; base && i < base->rule_count; i++) {
		const struct nezha_rule *rule = &base->rules[i];

		if (rule->reason != NEZHA_REASON_TUNE && bytes >= rule->msg_size_min && bytes <= rule->msg_size_max)
			return *rule;
	}
	return (struct nezha_rule){ .alg = NEZHA_ALG_NATIVE, .reason = NEZHA_REASON_RULE };
}

/* What `bytes` do from now on. */
static struct nezha_rule decide(const struct sources *from, uint64_t bytes)
{
	const struct nezha_rule *known = from->known ? nezha_rule_find(from->known, bytes) : NULL;
	struct nezha_rule rule = base_rule(from->base, bytes);
	struct nezha_decision found;

	if (rule.alg == NEZHA_ALG_NATIVE || !nezha_model_decided(from->model, bytes, &found))
		return known ? *known : rule;
	if (found.alg == NEZHA_ALG_NATIVE)
		return (struct nezha_rule){ .alg = NEZHA_ALG_NATIVE, .reason = NEZHA_REASON_RULE };
	/* Its blocks and rails may have been measured, which these were not. */
	if (found.alg == NEZHA_ALG_RING && known && known->alg == NEZHA_ALG_RING)
		return *known;
	rule.alg = found.alg;
	rule.share = found.share;
	rule.blocking = found.blocking;
	return rule;
}

static bool is_same(const struct nezha_rule *a, const struct nezha_rule *b)
{
	return a->alg == b->alg && a->reason == b->reason && a->block == b->block && a->share == b->share &&
	       a->blocking == b->blocking && nezha_rail_set_equal(&a->rails, &b->rails);
}

/* Sizes up to `last` follow the rule; the smaller ones have theirs already. */
static void append(struct nezha_rule_group *group, struct nezha_rule rule, uint64_t last)
{
	struct nezha_rule *before = group->rule_count ? &group->rules[group->rule_count - 1] : NULL;

	if (before && is_same(before, &rule)) {
		before->msg_size_max = last;
		return;
	}
	rule.msg_size_min = 0;
	rule.msg_size_max = last;
	group->rules[group->rule_count++] = rule;
}

int nezha_learned_rules(const struct nezha_model *model, const struct nezha_table *base, const struct nezha_rule_group *known,
                        const struct nezha_scale *scale, struct nezha_rule_group *out)
{
	struct sources from = { model, nezha_rule_group_find(base, scale), known };
	size_t room = NEZHA_MODEL_CLASSES + (from.base ? 2 * from.base->rule_count : 0) + (known ? 2 * known->rule_count : 0);
	struct nezha_rule_group made = { .measured = scale->ranks, .measured_ppn = scale->ppn,
	                                 .rules = calloc(room, sizeof *made.rules) };
	uint64_t at = 0, next;

	if (!made.rules)
		return NEZHA_ERR_NOMEM;
	do {
		next = next_border(&from, at);
		append(&made, decide(&from, at), next - 1);   /* 0 - 1: no bound */
		at = next;
	} while (next);
	*out = made;
	return NEZHA_OK;
}

/* ---- the file ---- */

/* What is there, if it may be extended; or a new table. */
static int open_table(const char *path, const struct nezha_fingerprint *here, struct nezha_table **out)
{
	char *error, differences[800];
	int status = nezha_table_load(path, out, &error);

	if (status == NEZHA_ERR_SYSTEM && errno == ENOENT)
		return nezha_scales_none(out);
	if (status == NEZHA_ERR_SYSTEM) {
		nezha_warn("NEZHA_LEARNED=%s: the table that is there cannot be read, nothing is written: %m", path);
	} else if (status != NEZHA_OK) {
		nezha_warn("NEZHA_LEARNED: nothing is written: %s", error ? error : "no memory");
	} else if (nezha_fingerprint_differs(*out, here, differences, sizeof differences)) {
		nezha_warn("NEZHA_LEARNED=%s: the table that is there was measured elsewhere, nothing is written "
		           "(name another file): %s", path, differences);
		nezha_table_free(*out);
		status = NEZHA_ERR_INVALID;
	}
	free(error);
	return status == NEZHA_OK || status == NEZHA_ERR_NOMEM ? status : NEZHA_ERR_INVALID;
}

int nezha_learned_check(const char *path, const struct nezha_fingerprint *here)
{
	struct nezha_table *table;
	int status = open_table(path, here, &table);

	if (status == NEZHA_OK)
		nezha_table_free(table);
	return status;
}

/* Puts all that is kept into the table; scales that find no room in it are left out, and counted. */
static int merge(const struct nezha_learned *learned, const struct nezha_table *base, struct nezha_table *into, int *left)
{
	*left = 0;
	for (size_t i = 0; i < learned->count; i++) {
		const struct nezha_learned_scale *of = &learned->of[i];
		struct nezha_rule_group group;
		int status = nezha_learned_rules(&of->model, base, nezha_rule_group_find(into, &of->scale), &of->scale, &group);

		if (status != NEZHA_OK)
			return status;
		status = nezha_scales_put(into, &group);
		if (status != NEZHA_OK)
			free(group.rules);
		if (status == NEZHA_ERR_INVALID)
			++*left;
		else if (status != NEZHA_OK)
			return status;
	}
	return NEZHA_OK;
}

static int save(const struct nezha_table *table, const char *path)
{
	char *error;
	int status = nezha_table_save(table, path, &error);

	if (status == NEZHA_ERR_SYSTEM)
		nezha_error("NEZHA_LEARNED=%s: the table cannot be written: %m", path);
	else if (status != NEZHA_OK)
		nezha_error("NEZHA_LEARNED=%s: the table cannot be written: %s", path, error ? error : "no memory");
	free(error);
	return status;
}

/* Reads, merges and writes; the file is reserved. */
static int extend(const struct nezha_learned *learned, const struct nezha_table *base, const struct nezha_fingerprint *here,
                  const char *path)
{
	struct nezha_table *table;
	int left, status = open_table(path, here, &table);

	if (status != NEZHA_OK)
		return status;
	status = merge(learned, base, table, &left);
	if (status == NEZHA_OK)
		status = nezha_scales_sign(table, here, "learnt by jobs with Nezha " PACKAGE_VERSION);
	if (status == NEZHA_OK && left)
		nezha_warn("NEZHA_LEARNED=%s: the table has no room for %d of the %zu scales that this job has learnt of", path, left,
		           learned->count);
	if (status == NEZHA_OK)
		status = save(table, path);
	else
		nezha_error("NEZHA_LEARNED=%s: the table cannot be written: no memory", path);
	nezha_table_free(table);
	return status;
}

int nezha_learned_write(const struct nezha_learned *learned, const struct nezha_table *base,
                        const struct nezha_fingerprint *here, const char *path)
{
	int reserved, status;

	if (!learned->count) {
		nezha_warn("NEZHA_LEARNED=%s: no size had calls enough to be learnt, nothing is written", path);
		return NEZHA_OK;
	}
	/* Before it is read: what another job or nezha-tune puts into it until it is written would be lost. */
	reserved = nezha_file_reserve(path, NEZHA_FILE_PATIENCE);
	if (reserved < 0) {
		nezha_error("NEZHA_LEARNED=%s: the table cannot be written: %s.new: %m%s", path, path,
		            errno == EBUSY ? ", others have been writing it for some seconds" : "");
		return NEZHA_ERR_SYSTEM;
	}
	status = extend(learned, base, here, path);
	nezha_file_release(path, reserved);
	return status;
}
