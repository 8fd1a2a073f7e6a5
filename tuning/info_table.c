/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/bytes.h"
#include "tuning/fingerprint.h"
#include "tuning/info.h"
#include "tuning/json_text.h"
#include "tuning/rules.h"
#include "tuning/settings.h"
#include "tuning/status.h"
#include "tuning/table.h"

/* ---- which table ---- */

/* The table at `path`, or the built-in one; NULL: said why. */
static struct nezha_table *load(const char *path, json_t *json)
{
	struct nezha_table *table = NULL;
	char *error;
	int status;

	if (!*path) {
		if (nezha_table_builtin(&table) != NEZHA_OK)
			nezha_info_problem(json, "the built-in rules cannot be made");
		return table;
	}
	status = nezha_table_load(path, &table, &error);
	if (status == NEZHA_ERR_SYSTEM)
		nezha_info_problem(json, "the table %s cannot be read: %s", nezha_info_quote(path), strerror(errno));
	else if (status != NEZHA_OK)
		nezha_info_problem(json, "%s", error ? error : "no memory");
	free(error);
	return table;
}

static bool override(struct nezha_table *table, const char *tune, json_t *json)
{
	char *error = NULL;
	bool good;

	if (!*tune)
		return true;
	good = nezha_table_override(table, tune, &error) == NEZHA_OK;
	if (!good)
		nezha_info_problem(json, "%s", error ? error : "no memory");
	free(error);
	return good;
}

/* Whether a job can have it: its other ranks read it as rank 0 prints it. */
static bool can_be_told(const struct nezha_table *table, const char *path, json_t *json)
{
	char *error;
	bool good = nezha_table_check(table, path, &error) == NEZHA_OK;

	if (!good)
		nezha_info_problem(json, "%s", error ? error : "no memory");
	free(error);
	return good;
}

/* ---- what it says ---- */

static json_t *describe(const struct nezha_plan *plan)
{
	char rails[NEZHA_RAIL_SET_TEXT] = "";
	json_t *object = json_pack("{s:s, s:I, s:s}", "alg", nezha_algorithm_name(plan->alg), "block",
	                           (json_int_t)plan->block, "reason", nezha_reason_name(plan->reason));

	if (plan->share)
		json_object_set_new(object, "native_call", json_string(plan->nonblocking ? "nonblocking" : "blocking"));
	if (plan->share)
		json_object_set_new(object, "native_share", json_real((double)plan->share / NEZHA_SHARE_WHOLE));
	if (plan->rails)
		nezha_rail_set_print(plan->rails, ',', rails, sizeof rails);
	if (*rails)
		json_object_set_new(object, "rails", json_string(rails));
	return object;
}

static void show_size(uint64_t bytes, const struct nezha_plan *plan, json_t *list)
{
	json_t *object = list ? describe(plan) : NULL;
	char size[24], text[NEZHA_RAIL_SET_TEXT + 128];

	if (list) {
		json_object_set_new(object, "bytes", json_integer((json_int_t)bytes));
		json_array_append_new(list, object);
		return;
	}
	nezha_bytes_print(bytes, size, sizeof size);
	nezha_plan_print(plan, text, sizeof text);
	printf("  %-14s %s\n", size, text);
}

/* All sizes from `first` to `last`, inclusive; UINT64_MAX: without end. */
static void show_range(uint64_t first, uint64_t last, const struct nezha_plan *plan, json_t *list)
{
	json_t *object = list ? describe(plan) : NULL;
	char to[24], below[24], text[NEZHA_RAIL_SET_TEXT + 128], range[48];

	if (list) {
		json_object_set_new(object, "bytes_min", json_integer((json_int_t)first));
		json_object_set_new(object, "bytes_max",
		                    last < UINT64_MAX ? json_integer((json_int_t)last) : json_null());
		json_array_append_new(list, object);
		return;
	}
	nezha_bytes_print(last, to, sizeof to);
	nezha_bytes_print(last + 1, below, sizeof below);
	nezha_plan_print(plan, text, sizeof text);
	if (last == UINT64_MAX)
		snprintf(range, sizeof range, "%s", first == 1 ? "all sizes" : "above");
	else
		snprintf(range, sizeof range, "%s %s", strlen(below) < strlen(to) ? "below" : "up to",
		         strlen(below) < strlen(to) ? below : to);
	printf("  %-14s %s\n", range, text);
}

static int compare_bytes(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Every size at which some rule begins or ends, or a mix may begin to be shared, in order, malloc'd; a decision can change nowhere
 * else, but where a vector has too many blocks. */
static uint64_t *boundaries(const struct nezha_table *table, size_t *count)
{
	size_t room = 1;
	uint64_t *sizes;

	for (size_t g = 0; g < table->group_count; g++)
		room += 3 * table->groups[g].rule_count;
	sizes = malloc(room * sizeof *sizes);
	if (!sizes)
		return NULL;
	*count = 0;
	sizes[(*count)++] = 1;
	for (size_t g = 0; g < table->group_count; g++)
		for (size_t r = 0; r < table->groups[g].rule_count; r++) {
			const struct nezha_rule *rule = &table->groups[g].rules[r];

			if (rule->msg_size_min > 1)
				sizes[(*count)++] = rule->msg_size_min;
			if (rule->msg_size_max < UINT64_MAX)
				sizes[(*count)++] = rule->msg_size_max + 1;
			if (rule->share)
				sizes[(*count)++] = rule->block + 1;
		}
	qsort(sizes, *count, sizeof *sizes, compare_bytes);
	return sizes;
}

/* A mix has as many bytes for the library as follow from the size. */
static bool is_same_for_people(const struct nezha_plan *a, const struct nezha_plan *b)
{
	struct nezha_plan like = *b;

	if (a->share && a->share == b->share)
		like.native = a->native;
	return nezha_plan_equal(a, &like);
}

static bool show_all_sizes(const struct nezha_table *table, const struct nezha_scale *scale, json_t *list)
{
	size_t count;
	uint64_t *sizes = boundaries(table, &count);
	struct nezha_plan plan, next;
	uint64_t first = 1;

	if (!sizes)
		return false;
	nezha_plan_make(table, scale, first, &plan);
	for (size_t i = 1; i < count; i++) {
		nezha_plan_make(table, scale, sizes[i], &next);
		if (is_same_for_people(&plan, &next))
			continue;
		show_range(first, sizes[i] - 1, &plan, list);
		first = sizes[i];
		plan = next;
	}
	show_range(first, UINT64_MAX, &plan, list);
	free(sizes);
	return true;
}

static bool show(const struct nezha_table *table, const struct nezha_info_query *query, const char *path,
                 const char *tune, json_t *json)
{
	const struct nezha_scale *scale = &query->scale;
	json_t *list = json ? json_array() : NULL;
	struct nezha_plan plan;
	bool good = true;

	if (json)
		json_object_set_new(json, "decision",
		                    json_pack("{s:i, s:i, s:i, s:o, s:o, s:O}", "ranks", scale->ranks,
		                              "nodes", scale->nodes, "ppn", scale->ppn, "table",
		                              nezha_json_text(*path ? path : NULL), "tune",
		                              nezha_json_text(*tune ? tune : NULL), "sizes", list));
	else
		printf("%d rank%s on %d node%s, at most %d on a node; %s%s%s\n", scale->ranks,
		       scale->ranks > 1 ? "s" : "", scale->nodes, scale->nodes > 1 ? "s" : "", scale->ppn,
		       *path ? path : "built-in rules", *tune ? ", NEZHA_TUNE=" : "", tune);
	if (!json && !*path && scale->nodes > 1)
		printf("(with these a job begins; then it does what it finds to be fastest, but for\n"
		       "NEZHA_REPRODUCIBLE=1%s)\n", *tune ? ", and sizes that NEZHA_TUNE is for" : "");
	if (query->all_sizes) {
		good = show_all_sizes(table, scale, list);
	} else {
		nezha_plan_make(table, scale, query->bytes, &plan);
		show_size(query->bytes, &plan, list);
	}
	json_decref(list);
	return good;
}

bool nezha_info_settings_table(const struct nezha_settings *settings, const struct nezha_fingerprint *here,
                               json_t *json)
{
	struct nezha_table *table = load(settings->table, json);
	bool good = table && override(table, settings->tune, json) && can_be_told(table, settings->table, json);
	char differences[800];

	if (table && nezha_fingerprint_differs(table, here, differences, sizeof differences))
		nezha_info_problem(json, "the table %s was measured elsewhere: %s", nezha_info_quote(settings->table),
		                   differences);
	nezha_table_free(table);
	return good;
}

bool nezha_info_table(const struct nezha_info_query *query, json_t *json)
{
	struct nezha_settings settings;
	struct nezha_table *table;
	char *problems;
	const char *path;
	int errors;
	bool good;

	if (nezha_settings_read(environ, &settings, &problems, &errors) != NEZHA_OK) {
		nezha_info_problem(json, "no memory");
		return false;
	}
	nezha_info_problems(json, problems);
	path = query->table ? query->table : settings.table;
	table = load(path, json);
	good = table && override(table, settings.tune, json) && can_be_told(table, path, json) &&
	       show(table, query, path, settings.tune, json) && errors == 0;
	nezha_table_free(table);
	nezha_settings_free(&settings);
	free(problems);
	return good;
}
