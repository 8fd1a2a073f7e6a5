/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/scales.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tuning/status.h"
#include "tuning/table.h"

static const char none[] =
	"{\"version\": 1, \"collectives\": {\"allreduce\": ["
	"{\"nodes_max\": 1, \"rules\": [{\"alg\": \"native\", \"reason\": \"one-node\"}]},"
	"{\"ppn_min\": 2, \"rules\": [{\"alg\": \"native\", \"reason\": \"shared-node\"}]}]}}";

int nezha_scales_none(struct nezha_table **out)
{
	char *error = NULL;
	int status = nezha_table_parse(none, sizeof none - 1, "new table", out, &error);

	free(error);
	return status == NEZHA_OK ? NEZHA_OK : NEZHA_ERR_NOMEM;   /* the text is in order */
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

bool nezha_scales_has(const struct nezha_table *table, int ranks)
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

int nezha_scales_put(struct nezha_table *table, const struct nezha_rule_group *group)
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

int nezha_scales_sign(struct nezha_table *table, const struct nezha_fingerprint *where, const char *comment)
{
	char **header = table->header, date[16], *today, *by;
	time_t now = time(NULL);
	struct tm day;

	strftime(date, sizeof date, "%Y-%m-%d", localtime_r(&now, &day));
	today = strdup(date);
	by = strdup(header[NEZHA_TABLE_HEADER_comment] ? header[NEZHA_TABLE_HEADER_comment] : comment);
	if (!today || !by || nezha_fingerprint_put(where, table) != NEZHA_OK) {
		free(today);
		free(by);
		return NEZHA_ERR_NOMEM;
	}
	free(header[NEZHA_TABLE_HEADER_date]);
	free(header[NEZHA_TABLE_HEADER_comment]);
	header[NEZHA_TABLE_HEADER_date] = today;
	header[NEZHA_TABLE_HEADER_comment] = by;
	return NEZHA_OK;
}
