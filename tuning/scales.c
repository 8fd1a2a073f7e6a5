/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/scales.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tuning/status.h"
#include "tuning/table.h"

int nezha_scales_none(struct nezha_table **out)
{
	int status = nezha_table_builtin(out);
	char **comment;

	if (status != NEZHA_OK)
		return NEZHA_ERR_NOMEM;   /* the text is in order */
	comment = &(*out)->header[NEZHA_TABLE_HEADER_comment];
	free(*comment);
	*comment = NULL;
	return NEZHA_OK;
}

static bool is_of(const struct nezha_rule_group *group, int ranks, int ppn)
{
	return group->measured == ranks && group->measured_ppn == ppn;
}

static bool comes_before(const struct nezha_rule_group *a, const struct nezha_rule_group *b)
{
	return a->measured_ppn != b->measured_ppn ? a->measured_ppn < b->measured_ppn : a->measured < b->measured;
}

/* Puts a measured group into its place among `count` groups, of which the measured ones come first. */
static void insert(struct nezha_rule_group *groups, size_t count, const struct nezha_rule_group *group)
{
	size_t at = 0;

	while (at < count && groups[at].measured && comes_before(&groups[at], group))
		at++;
	memmove(&groups[at + 1], &groups[at], (count - at) * sizeof *groups);
	groups[at] = *group;
}

/* The last number that is nearer to `low` than to `high`. */
static int between(int low, int high)
{
	return (int)sqrt((double)low * (double)high);
}

/* Shares out all numbers of ranks among `count` groups of as many ranks a node, and gives them these bounds of ppn. */
static void share_ranks(struct nezha_rule_group *groups, size_t count, int ppn_min, int ppn_max)
{
	int from = 1;

	for (size_t i = 0; i < count; i++) {
		struct nezha_rule_group *group = &groups[i];

		group->nodes_min = 2;
		group->nodes_max = INT_MAX;
		group->ppn_min = ppn_min;
		group->ppn_max = ppn_max;
		group->comm_size_min = from;
		group->comm_size_max = i + 1 == count ? INT_MAX : between(group->measured, groups[i + 1].measured);
		from = i + 1 == count ? from : group->comm_size_max + 1;
	}
}

/* Shares out all scales of more than one node among the measured groups, which come first. */
static void share_out(struct nezha_table *table)
{
	struct nezha_rule_group *groups = table->groups;
	int ppn_min = 2;

	for (size_t first = 0, end; first < table->group_count && groups[first].measured; first = end) {
		int ppn = groups[first].measured_ppn, ppn_max = INT_MAX;

		for (end = first; end < table->group_count && groups[end].measured_ppn == ppn; end++)
			;
		if (ppn == 1) {
			share_ranks(groups, end, 1, 1);
			continue;
		}
		if (end < table->group_count && groups[end].measured)
			ppn_max = between(ppn, groups[end].measured_ppn);
		share_ranks(&groups[first], end - first, ppn_min, ppn_max);
		ppn_min = end < table->group_count ? ppn_max + 1 : ppn_min;
	}
}

const struct nezha_rule_group *nezha_scales_find(const struct nezha_table *table, int ranks, int ppn)
{
	for (size_t i = 0; i < table->group_count; i++)
		if (is_of(&table->groups[i], ranks, ppn))
			return &table->groups[i];
	return NULL;
}

/* The groups in two parts: the measured ones, in order and without that of this scale, then the others. */
static size_t sort_groups(const struct nezha_table *table, int ranks, int ppn, struct nezha_rule_group *out)
{
	size_t count = 0;

	for (size_t i = 0; i < table->group_count; i++)
		if (table->groups[i].measured && !is_of(&table->groups[i], ranks, ppn))
			insert(out, count++, &table->groups[i]);
	for (size_t i = 0; i < table->group_count; i++)
		if (!table->groups[i].measured)
			out[count++] = table->groups[i];
	return count;
}

int nezha_scales_put(struct nezha_table *table, const struct nezha_rule_group *group)
{
	struct nezha_rule_group *groups = calloc(table->group_count + 1, sizeof *groups);
	size_t count;

	if (!groups)
		return NEZHA_ERR_NOMEM;
	count = sort_groups(table, group->measured, group->measured_ppn, groups);
	if (count == NEZHA_TABLE_GROUPS) {
		free(groups);
		return NEZHA_ERR_INVALID;
	}
	for (size_t i = 0; i < table->group_count; i++)
		if (is_of(&table->groups[i], group->measured, group->measured_ppn))
			free(table->groups[i].rules);
	insert(groups, count, group);
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
