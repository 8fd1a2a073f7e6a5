/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/measured.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/status.h"
#include "tuning/table.h"

/* The place of that size, made if there is none; NULL: no room. */
static struct nezha_measured_size *place(struct nezha_measured *measured, uint64_t bytes)
{
	size_t i = 0;

	while (i < measured->count && measured->size[i].bytes < bytes)
		i++;
	if (i < measured->count && measured->size[i].bytes == bytes)
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

static int take_time(struct nezha_measured *measured, const char *rest, uint64_t *bytes)
{
	struct nezha_measured_size *size;
	struct nezha_measured_time time;
	char *error = NULL;
	int used = 0, status;

	if (sscanf(rest, "%" SCNu64 " %lf %" SCNu64 " %n", bytes, &time.ns, &time.calls, &used) < 3 || !used ||
	    !isfinite(time.ns) || time.ns <= 0)
		return NEZHA_ERR_INVALID;
	status = nezha_rule_parse(rest + used, &time.rule, &error);
	free(error);
	if (status != NEZHA_OK)
		return status;
	size = place(measured, *bytes);
	if (!size)
		return NEZHA_ERR_INVALID;
	if (size->finished) {              /* measured anew */
		size->finished = false;
		size->count = 0;
	}
	if (size->count == NEZHA_SWEEP_CANDIDATES)
		return NEZHA_ERR_INVALID;
	size->time[size->count++] = time;
	return NEZHA_OK;
}

static int take_job(struct nezha_measured *measured, const char *rest)
{
	struct nezha_scale scale;
	char more;

	if (sscanf(rest, "%d %d %d%c", &scale.ranks, &scale.nodes, &scale.ppn, &more) != 3 || scale.ranks < 2 ||
	    scale.nodes < 1 || scale.ppn < 1)
		return NEZHA_ERR_INVALID;
	measured->scale = scale;
	/* What the last job left unfinished. */
	for (size_t i = 0; i < measured->count; i++)
		if (!measured->size[i].finished)
			measured->size[i].count = 0;
	return NEZHA_OK;
}

static int take_size(struct nezha_measured *measured, uint64_t bytes)
{
	for (size_t i = 0; i < measured->count; i++)
		if (measured->size[i].bytes == bytes && measured->size[i].count) {
			measured->size[i].finished = true;
			return NEZHA_OK;
		}
	return NEZHA_ERR_INVALID;
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
		if (measured->size[i].finished)
			return true;
	return false;
}

const struct nezha_measured_size *nezha_measured_find(const struct nezha_measured *measured, uint64_t bytes)
{
	for (size_t i = 0; i < measured->count; i++)
		if (measured->size[i].bytes == bytes && measured->size[i].finished)
			return &measured->size[i];
	return NULL;
}
