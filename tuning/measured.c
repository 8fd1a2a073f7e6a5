/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/measured.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/status.h"
#include "tuning/table.h"

/* How many sizes are smaller: the place of that size, if it is there. */
static size_t smaller(const struct nezha_measured *measured, uint64_t bytes)
{
	size_t i = 0;

	while (i < measured->count && measured->size[i].bytes < bytes)
		i++;
	return i;
}

static bool is_there(const struct nezha_measured *measured, size_t i, uint64_t bytes)
{
	return i < measured->count && measured->size[i].bytes == bytes;
}

/* The place of that size, made if there is none; NULL: no room. */
static struct nezha_measured_size *place(struct nezha_measured *measured, uint64_t bytes)
{
	size_t i = smaller(measured, bytes);

	if (is_there(measured, i, bytes))
		return &measured->size[i];
	if (measured->count == NEZHA_MEASURED_SIZES)
		return NULL;
	memmove(&measured->size[i + 1], &measured->size[i],
	        (measured->count - i) * sizeof measured->size[i]);
	measured->count++;
	memset(&measured->size[i], 0, sizeof measured->size[i]);
	measured->size[i].bytes = bytes;
	return &measured->size[i];
}

/* The candidate's place, made if there is none; NULL: no room. */
static struct nezha_measured_time *candidate(struct nezha_measured_size *size, const struct nezha_rule *rule)
{
	for (size_t i = 0; i < size->count; i++)
		if (nezha_choice_alike(&size->time[i].rule, rule))
			return &size->time[i];
	if (size->count == NEZHA_SWEEP_CANDIDATES)
		return NULL;
	size->time[size->count] = (struct nezha_measured_time){ .rule = *rule };
	return &size->time[size->count++];
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median over the jobs, of `time` in units of what `unit` (NULL: 1 ns) took in the same job; 0: there is no such job. */
static double median_of_jobs(const struct nezha_measured_time *time, const struct nezha_measured_time *unit)
{
	double values[NEZHA_MEASURED_JOBS];
	size_t count = 0;

	for (size_t i = 0; i < NEZHA_MEASURED_JOBS; i++)
		if (time->job_ns[i] > 0 && (!unit || unit->job_ns[i] > 0))
			values[count++] = time->job_ns[i] / (unit ? unit->job_ns[i] : 1);
	return count ? median(values, count) : 0;
}

/* What all jobs together say of a candidate. */
static void sum_up(const struct nezha_measured_size *size, struct nezha_measured_time *time)
{
	for (size_t i = 0; i < size->count; i++)
		if (size->time[i].rule.alg == NEZHA_ALG_NATIVE) {
			time->ns = median_of_jobs(time, &size->time[i]) * median_of_jobs(&size->time[i], NULL);
			if (time->ns > 0)
				return;
		}
	time->ns = median_of_jobs(time, NULL);
}

static int take_time(struct nezha_measured *measured, const char *rest, uint64_t *bytes)
{
	struct nezha_measured_size *size;
	struct nezha_measured_time *time;
	struct nezha_rule rule;
	uint64_t calls;
	char *error = NULL;
	double ns;
	int used = 0, status;

	if (sscanf(rest, "%" SCNu64 " %lf %" SCNu64 " %n", bytes, &ns, &calls, &used) < 3 || !used || !isfinite(ns) || ns <= 0)
		return NEZHA_ERR_INVALID;
	status = nezha_rule_parse(rest + used, &rule, &error);
	free(error);
	if (status != NEZHA_OK)
		return status;
	size = place(measured, *bytes);
	if (!size || size->jobs == NEZHA_MEASURED_JOBS)
		return NEZHA_ERR_INVALID;
	time = candidate(size, &rule);
	if (!time || time->job_ns[size->jobs] > 0)
		return NEZHA_ERR_INVALID;
	time->job_ns[size->jobs] = ns;
	time->calls += calls;
	sum_up(size, time);
	return NEZHA_OK;
}

/* What the last job told of a size that it has not finished. */
static void drop_unfinished(struct nezha_measured_size *size)
{
	size_t kept = 0;

	if (size->jobs == NEZHA_MEASURED_JOBS)
		return;
	for (size_t i = 0; i < size->count; i++) {
		size->time[i].job_ns[size->jobs] = 0;
		if (median_of_jobs(&size->time[i], NULL) > 0)
			size->time[kept++] = size->time[i];
	}
	size->count = kept;
	for (size_t i = 0; i < size->count; i++)
		sum_up(size, &size->time[i]);
}

static int take_job(struct nezha_measured *measured, const char *rest)
{
	struct nezha_scale scale;
	char more;

	if (sscanf(rest, "%d %d %d%c", &scale.ranks, &scale.nodes, &scale.ppn, &more) != 3 || scale.ranks < 2 ||
	    scale.nodes < 1 || scale.ppn < 1)
		return NEZHA_ERR_INVALID;
	measured->scale = scale;
	for (size_t i = 0; i < measured->count; i++)
		drop_unfinished(&measured->size[i]);
	return NEZHA_OK;
}

static int take_size(struct nezha_measured *measured, uint64_t bytes)
{
	size_t at = smaller(measured, bytes);
	struct nezha_measured_size *size;
	bool told = false;

	if (!is_there(measured, at, bytes))
		return NEZHA_ERR_INVALID;
	size = &measured->size[at];
	for (size_t i = 0; size->jobs < NEZHA_MEASURED_JOBS && i < size->count; i++)
		told |= size->time[i].job_ns[size->jobs] > 0;
	if (!told)
		return NEZHA_ERR_INVALID;
	size->jobs++;
	for (size_t i = 0; i < size->count; i++)
		sum_up(size, &size->time[i]);
	return NEZHA_OK;
}

int nezha_measured_take(struct nezha_measured *measured, const char *line, enum nezha_measured_kind *kind,
                        uint64_t *bytes)
{
	static const char *const words[] = {
		[NEZHA_MEASURED_JOB] = "job",         [NEZHA_MEASURED_WHERE] = "",
		[NEZHA_MEASURED_AT] = "at",           [NEZHA_MEASURED_TIME] = "time",
		[NEZHA_MEASURED_SIZE] = "size",       [NEZHA_MEASURED_SKIPPED] = "skipped",
		[NEZHA_MEASURED_FAILED] = "failed",   [NEZHA_MEASURED_END] = "end",
	};
	const char *rest = line + strcspn(line, " ");
	char word[16], *field, more;
	int found;

	*bytes = 0;
	snprintf(word, sizeof word, "%.*s", (int)(rest - line), line);
	rest += *rest == ' ';
	field = nezha_fingerprint_field(&measured->where, word);
	if (field) {
		*kind = NEZHA_MEASURED_WHERE;
		snprintf(field, NEZHA_TABLE_TEXT + 1, "%s", rest);
		return NEZHA_OK;
	}
	for (found = 0; found <= NEZHA_MEASURED_END; found++)
		if (found != NEZHA_MEASURED_WHERE && !strcmp(word, words[found]))
			break;
	if (found > NEZHA_MEASURED_END)
		return NEZHA_ERR_INVALID;
	*kind = (enum nezha_measured_kind)found;
	switch (*kind) {
	case NEZHA_MEASURED_JOB:
		return take_job(measured, rest);
	case NEZHA_MEASURED_TIME:
		return take_time(measured, rest, bytes);
	case NEZHA_MEASURED_AT:
	case NEZHA_MEASURED_SIZE:
	case NEZHA_MEASURED_SKIPPED:
		if (sscanf(rest, "%" SCNu64 "%c", bytes, &more) != 1 || !*bytes)
			return NEZHA_ERR_INVALID;
		return *kind == NEZHA_MEASURED_SIZE ? take_size(measured, *bytes) : NEZHA_OK;
	default:
		return NEZHA_OK;
	}
}

bool nezha_measured_any(const struct nezha_measured *measured)
{
	for (size_t i = 0; i < measured->count; i++)
		if (measured->size[i].jobs)
			return true;
	return false;
}

const struct nezha_measured_size *nezha_measured_find(const struct nezha_measured *measured, uint64_t bytes)
{
	size_t i = smaller(measured, bytes);

	return is_there(measured, i, bytes) && measured->size[i].jobs ? &measured->size[i] : NULL;
}
