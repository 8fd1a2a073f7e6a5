/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/job.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmpi/job_files.h"
#include "tuning/log.h"
#include "tuning/rules.h"
#include "tuning/status.h"

struct head {
	uint32_t settings, table;          /* bytes */
	struct nezha_scale scale;
	unsigned char key[NEZHA_KEY_BYTES];
};

static void log_lines(enum nezha_log_level level, const char *lines)
{
	for (size_t len; *lines; lines += len + (lines[len] == '\n')) {
		len = strcspn(lines, "\n");
		nezha_log(level, "%.*s", (int)len, lines);
	}
}

static int read_settings(struct nezha_job *job)
{
	char *problems;
	int errors, status;

	status = nezha_settings_read(environ, &job->settings, &problems, &errors);
	if (status != NEZHA_OK)
		return status;
	nezha_log_open(job->settings.log, *job->settings.log_file ? job->settings.log_file : NULL, job->rank);
	log_lines(errors ? NEZHA_LOG_ERROR : NEZHA_LOG_WARN, problems);
	free(problems);
	return errors ? NEZHA_ERR_INVALID : NEZHA_OK;
}

static int load_table(const char *path, struct nezha_table **out, char **error)
{
	int status;

	if (!*path)
		return nezha_table_builtin(out);
	status = nezha_table_load(path, out, error);
	if (status != NEZHA_ERR_SYSTEM)
		return status;
	nezha_error("NEZHA_TABLE=%s: the table cannot be read: %m", path);
	return NEZHA_ERR_INVALID;
}

static int read_table(struct nezha_job *job)
{
	char *error = NULL;
	int status = load_table(job->settings.table, &job->table, &error);

	if (status == NEZHA_OK && *job->settings.tune)
		status = nezha_table_override(job->table, job->settings.tune, &error);
	if (status == NEZHA_OK)
		status = nezha_table_check(job->table, job->settings.table, &error);
	if (error)
		nezha_error("%s", error);
	free(error);
	return status;
}

static int check_rails(const struct nezha_job *job)
{
	char *error = NULL;
	int status = nezha_nic_spec_check(job->settings.rails, &error);

	if (error)
		nezha_error("%s", error);
	free(error);
	return status;
}

int nezha_job_read(struct nezha_job *job)
{
	int status = read_settings(job);

	if (status == NEZHA_OK)
		status = check_rails(job);
	if (status == NEZHA_OK)
		status = read_table(job);
	if (status == NEZHA_OK && job->spawned)
		status = nezha_job_part_files(&job->settings, job->rank);
	if (status == NEZHA_OK)
		status = nezha_job_check_files(&job->settings, job->rank);
	if (status != NEZHA_OK)
		return status;
	if (sodium_init() < 0) {
		nezha_error("libsodium cannot be initialised: the job has no key");
		return NEZHA_ERR_SYSTEM;
	}
	randombytes_buf(job->key, sizeof(job->key));
	return NEZHA_OK;
}

int nezha_job_guess(struct nezha_job *job)
{
	char *problems;
	int errors;
	int status = nezha_settings_read(environ, &job->settings, &problems, &errors);

	if (status != NEZHA_OK)
		return status;
	free(problems);
	nezha_log_open(job->settings.log, NULL, job->rank);
	return NEZHA_OK;
}

struct place {
	uint64_t host;
	int rank;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *p = a, *q = b;

	return p->host < q->host ? -1 : p->host > q->host;
}

int nezha_job_place(struct nezha_job *job, const uint64_t *hosts)
{
	struct place *places = malloc((size_t)job->ranks * sizeof(*places));
	int *node = malloc((size_t)job->ranks * sizeof(*node));
	int nodes = 0, ppn = 0;

	if (!places || !node) {
		free(places);
		free(node);
		return NEZHA_ERR_NOMEM;
	}
	for (int i = 0; i < job->ranks; i++)
		places[i] = (struct place){ .host = hosts[i], .rank = i };
	qsort(places, (size_t)job->ranks, sizeof(*places), compare_places);
	for (int i = 0, first = 0; i < job->ranks; i++) {
		if (i == 0 || places[i].host != places[i - 1].host) {
			first = i;
			nodes++;
		}
		node[places[i].rank] = nodes - 1;
		if (i - first + 1 > ppn)
			ppn = i - first + 1;
	}
	free(places);
	free(job->node);
	job->node = node;
	job->scale = (struct nezha_scale){ .ranks = job->ranks, .nodes = nodes, .ppn = ppn };
	return NEZHA_OK;
}

int nezha_job_pack(const struct nezha_job *job, void **out, size_t *len)
{
	char *settings = nezha_settings_pack(&job->settings), *table = nezha_table_print(job->table);
	size_t nodes = (size_t)job->ranks * sizeof(*job->node);
	struct head head = { .scale = job->scale };
	char *bytes = NULL;

	if (!settings || !table)
		goto done;
	head.settings = (uint32_t)strlen(settings);
	head.table = (uint32_t)strlen(table);
	memcpy(head.key, job->key, sizeof(head.key));
	*len = sizeof(head) + nodes + head.settings + head.table;
	bytes = malloc(*len);
	if (!bytes)
		goto done;
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), job->node, nodes);
	memcpy(bytes + sizeof(head) + nodes, settings, head.settings);
	memcpy(bytes + sizeof(head) + nodes + head.settings, table, head.table);
	*out = bytes;
done:
	free(settings);
	free(table);
	return bytes ? NEZHA_OK : NEZHA_ERR_NOMEM;
}

static int take_nodes(struct nezha_job *job, const struct nezha_scale *scale, const char *bytes)
{
	size_t len = (size_t)scale->ranks * sizeof(*job->node);
	int *node = malloc(len);

	if (!node)
		return NEZHA_ERR_NOMEM;
	memcpy(node, bytes, len);
	free(job->node);
	job->node = node;
	job->scale = *scale;
	for (int i = 0; i < scale->ranks; i++)
		if (node[i] < 0 || node[i] >= scale->nodes)
			return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}

int nezha_job_unpack(struct nezha_job *job, const void *bytes, size_t len)
{
	const char *at = (const char *)bytes + sizeof(struct head);
	struct nezha_settings settings;
	struct nezha_table *table;
	struct head head;
	char *error = NULL;
	int status;

	if (len < sizeof(head))
		return NEZHA_ERR_PROTOCOL;
	memcpy(&head, bytes, sizeof(head));
	if (head.scale.ranks < 1 || head.scale.ranks != job->ranks ||
	    len != sizeof(head) + (size_t)head.scale.ranks * sizeof(*job->node) + head.settings + head.table)
		return NEZHA_ERR_PROTOCOL;
	memcpy(job->key, head.key, sizeof(job->key));
	status = take_nodes(job, &head.scale, at);
	if (status != NEZHA_OK)
		return status;
	at += (size_t)head.scale.ranks * sizeof(*job->node);
	status = nezha_settings_unpack(at, head.settings, &settings);
	if (status != NEZHA_OK)
		return status;
	nezha_settings_free(&job->settings);
	job->settings = settings;
	status = nezha_table_parse(at + head.settings, head.table, "rank 0's table", &table, &error);
	if (error)
		nezha_error("%s", error);
	free(error);
	if (status != NEZHA_OK)
		return status;
	nezha_table_free(job->table);
	job->table = table;
	nezha_log_open(job->settings.log, *job->settings.log_file ? job->settings.log_file : NULL, job->rank);
	return NEZHA_OK;
}

/* Where lookups in the table may change with one number of the scale: at a group's bounds. */
#define CUTS_MAX (2 * NEZHA_TABLE_GROUPS + 4)
#define LOOKUPS_MOST 1000   /* of scales: a millisecond with a table of nezha-tune's, some tens with one that is full */

struct cuts {
	int count, high;
	int at[CUTS_MAX];
};

static void add_cut(struct cuts *cuts, int value)
{
	if (value < 1 || value > cuts->high || cuts->count == CUTS_MAX)
		return;
	for (int i = 0; i < cuts->count; i++)
		if (cuts->at[i] == value)
			return;
	cuts->at[cuts->count++] = value;
}

static void add_range(struct cuts *cuts, int min, int max)
{
	add_cut(cuts, min);
	if (max < INT_MAX)
		add_cut(cuts, max + 1);
}

/* Combinations that cannot be are tried too: at worst the floor is lower than need be. */
static uint64_t lowest(const struct nezha_job *job, const struct cuts *ranks, const struct cuts *nodes,
                       const struct cuts *ppns)
{
	uint64_t floor = UINT64_MAX;

	for (int i = 0; i < ranks->count; i++) {
		for (int j = 0; j < nodes->count; j++) {
			for (int k = 0; k < ppns->count; k++) {
				struct nezha_scale scale = { ranks->at[i], nodes->at[j], ppns->at[k] };
				uint64_t below = nezha_plan_native_below(job->table, &scale);

				if (below < floor)
					floor = below;
			}
		}
	}
	return floor;
}

uint64_t nezha_job_floor(const struct nezha_job *job)
{
	struct cuts ranks = { .high = job->scale.ranks };
	struct cuts nodes = { .high = job->scale.nodes }, ppns = { .high = job->scale.ppn };

	add_cut(&ranks, 2);
	add_cut(&nodes, 1);
	add_cut(&ppns, 1);
	for (size_t i = 0; i < job->table->group_count; i++) {
		const struct nezha_rule_group *group = &job->table->groups[i];

		add_range(&ranks, group->comm_size_min, group->comm_size_max);
		add_range(&nodes, group->nodes_min, group->nodes_max);
		add_range(&ppns, group->ppn_min, group->ppn_max);
	}
	/* Too much to try it all: the first look tells nothing, the second is still right. */
	if ((size_t)ranks.count * (size_t)nodes.count * (size_t)ppns.count > LOOKUPS_MOST)
		return job->ranks > 1 ? 1 : UINT64_MAX;
	return lowest(job, &ranks, &nodes, &ppns);
}

void nezha_job_free(struct nezha_job *job)
{
	nezha_settings_free(&job->settings);
	nezha_table_free(job->table);
	free(job->node);
	sodium_memzero(job->key, sizeof(job->key));
	job->table = NULL;
	job->node = NULL;
}
