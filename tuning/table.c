/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/table.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tuning/bytes.h"
#include "tuning/rules.h"
#include "tuning/status.h"

void nezha_table_free(struct nezha_table *table)
{
	if (!table)
		return;
	for (int i = 0; i < NEZHA_TABLE_HEADER_COUNT; i++)
		free(table->header[i]);
	for (size_t i = 0; i < table->group_count; i++)
		free(table->groups[i].rules);
	free(table->groups);
	free(table);
}

/* Prints a header field.  NEZHA_ERR_NOMEM: it could not be quoted. */
static int print_header(FILE *f, const char *name, const char *text)
{
	json_t *value = json_string(text);
	char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
	int status = quoted ? NEZHA_OK : NEZHA_ERR_NOMEM;

	if (quoted)
		fprintf(f, "  \"%s\": %s,\n", name, quoted);
	free(quoted);
	json_decref(value);
	return status;
}

static int print_headers(FILE *f, const struct nezha_table *table)
{
	static const char *const names[] = {
#define X(name) #name,
		NEZHA_TABLE_HEADERS(X)
#undef X
	};
	int status = NEZHA_OK;

	for (int i = 0; i < NEZHA_TABLE_HEADER_COUNT && status == NEZHA_OK; i++)
		if (table->header[i])
			status = print_header(f, names[i], table->header[i]);
	return status;
}

static void print_bytes(FILE *f, const char *key, uint64_t bytes)
{
	char text[24];

	nezha_bytes_print(bytes, text, sizeof text);
	fprintf(f, "\"%s\": \"%s\", ", key, text);
}

static void print_rule(FILE *f, const struct nezha_rule *rule)
{
	fputs("        {", f);
	if (rule->msg_size_min)
		print_bytes(f, "msg_size_min", rule->msg_size_min);
	if (rule->msg_size_max != UINT64_MAX)
		print_bytes(f, "msg_size_max", rule->msg_size_max);
	if (rule->block)
		print_bytes(f, "block", rule->block);
	if (rule->share)
		fprintf(f, "\"native_share\": 0.%03u, ", rule->share);
	if (rule->blocking)
		fputs("\"native_call\": \"blocking\", ", f);
	if (rule->rails.count) {
		char rails[NEZHA_RAIL_SET_TEXT];

		nezha_rail_set_print(&rule->rails, ',', rails, sizeof rails);
		fprintf(f, "\"rails\": \"%s\", ", rails);
	}
	if (rule->reason != NEZHA_REASON_RULE)
		fprintf(f, "\"reason\": \"%s\", ", nezha_reason_name(rule->reason));
	fprintf(f, "\"alg\": \"%s\"}", nezha_algorithm_name(rule->alg));
}

static void print_range(FILE *f, const char *what, int min, int max)
{
	if (min != 1)
		fprintf(f, "\"%s_min\": %d, ", what, min);
	if (max != INT_MAX)
		fprintf(f, "\"%s_max\": %d, ", what, max);
}

static void print_group(FILE *f, const struct nezha_rule_group *group)
{
	fputs("      {", f);
	print_range(f, "comm_size", group->comm_size_min, group->comm_size_max);
	print_range(f, "nodes", group->nodes_min, group->nodes_max);
	print_range(f, "ppn", group->ppn_min, group->ppn_max);
	if (group->measured)
		fprintf(f, "\"measured\": %d, ", group->measured);
	if (group->measured_ppn > 1)
		fprintf(f, "\"measured_ppn\": %d, ", group->measured_ppn);
	fputs("\"rules\": [\n", f);
	for (size_t i = 0; i < group->rule_count; i++) {
		print_rule(f, &group->rules[i]);
		fputs(i + 1 < group->rule_count ? ",\n" : "\n", f);
	}
	fputs("      ]}", f);
}

char *nezha_table_print(const struct nezha_table *table)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int status;

	if (!f)
		return NULL;
	fputs("{\n  \"version\": 1,\n", f);
	status = print_headers(f, table);
	fputs("  \"collectives\": {\n    \"allreduce\": [\n", f);
	for (size_t i = 0; i < table->group_count; i++) {
		print_group(f, &table->groups[i]);
		fputs(i + 1 < table->group_count ? ",\n" : "\n", f);
	}
	fputs("    ]\n  }\n}\n", f);
	if (ferror(f))
		status = NEZHA_ERR_NOMEM;
	if (fclose(f) || status != NEZHA_OK) {
		free(text);
		return NULL;
	}
	return text;
}
