/* SPDX-License-Identifier: BSD-3-Clause
 * What nezha-tune keeps: the table, and the journal beside it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning/file.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/tune.h"

#define JOURNAL_MAX (16u << 20)     /* bytes */

int nezha_tune_load(const char *path, struct nezha_table **out, bool *is_new)
{
	char *error;
	int status = nezha_table_load(path, out, &error);

	*is_new = status == NEZHA_ERR_SYSTEM && errno == ENOENT;
	if (*is_new)
		status = nezha_scales_none(out);
	else if (status == NEZHA_ERR_SYSTEM)
		nezha_tune_problem("the table \"%s\" cannot be read: %s", path, strerror(errno));
	else if (status != NEZHA_OK && error)
		nezha_tune_problem("%s", error);
	if (status == NEZHA_ERR_NOMEM)
		nezha_tune_problem("no memory for the table");
	free(error);
	return status == NEZHA_ERR_SYSTEM ? NEZHA_ERR_INVALID : status;
}

int nezha_tune_reserve(const char *path)
{
	int reserved = nezha_file_reserve(path, NEZHA_FILE_PATIENCE);

	if (reserved < 0)
		nezha_tune_problem("the table \"%s\" cannot be written: %s.new: %s", path, path,
		                   errno == EBUSY ? "others have been writing it for some seconds" : strerror(errno));
	return reserved;
}

int nezha_tune_save(const struct nezha_table *table, const char *path)
{
	char *error;
	int status = nezha_table_save(table, path, &error);

	if (status == NEZHA_ERR_SYSTEM)
		nezha_tune_problem("the table \"%s\" cannot be written: %s", path, strerror(errno));
	else if (status != NEZHA_OK)
		nezha_tune_problem("%s", error ? error : "no memory for the table");
	free(error);
	return status;
}

/* ---- the journal ---- */

static struct nezha_measured *find(const struct nezha_tune_journal *journal, int ranks, int ppn)
{
	for (size_t i = 0; i < journal->count; i++)
		if (journal->scale[i].scale.ranks == ranks && journal->scale[i].scale.ppn == ppn)
			return &journal->scale[i];
	return NULL;
}

bool nezha_tune_journal_has(const struct nezha_tune_journal *journal, int ranks, int ppn)
{
	const struct nezha_measured *scale = find(journal, ranks, ppn);

	return scale && nezha_measured_any(scale);
}

struct nezha_measured *nezha_tune_journal_scale(struct nezha_tune_journal *journal, int ranks, int ppn)
{
	struct nezha_measured *scale = find(journal, ranks, ppn);

	if (scale)
		return scale;
	if (journal->count == NEZHA_TUNE_SCALES)
		return NULL;
	journal->scale[journal->count] = (struct nezha_measured){ .scale = { .ranks = ranks, .ppn = ppn } };
	return &journal->scale[journal->count++];
}

/* Nothing was measured of the scale. */
static void forget(struct nezha_measured *scale)
{
	*scale = (struct nezha_measured){ .scale = { .ranks = scale->scale.ranks, .ppn = scale->scale.ppn } };
}

/* The scale that a line of a journal is about; NULL: there is no such scale, or no room for it. */
static struct nezha_measured *recall_scale(struct nezha_tune_journal *journal, int ranks, int ppn)
{
	return ranks >= 2 && ppn >= 1 ? nezha_tune_journal_scale(journal, ranks, ppn) : NULL;
}

/* One line of a journal.  What makes no sense is left out: at worst it is measured again. */
static void recall(struct nezha_tune_journal *journal, const char *line, struct nezha_measured **scale)
{
	enum nezha_measured_kind kind;
	uint64_t bytes;
	int ranks, nodes, ppn;

	if (sscanf(line, "concluded %d %d", &ranks, &ppn) == 2 && (*scale = recall_scale(journal, ranks, ppn)))
		forget(*scale);
	if (sscanf(line, "job %d %d %d", &ranks, &nodes, &ppn) == 3)
		*scale = recall_scale(journal, ranks, ppn);
	if (*scale)
		nezha_measured_take(*scale, line, &kind, &bytes);
}

/* Reads whole lines; a last one without its end was being written when all ended, and is cut off. */
static int recall_all(struct nezha_tune_journal *journal)
{
	struct nezha_measured *scale = NULL;
	size_t len, at = 0;
	char *text = nezha_file_read(journal->fd, JOURNAL_MAX, &len), *end;
	int status = NEZHA_OK;

	if (!text)
		return NEZHA_ERR_SYSTEM;
	while ((end = memchr(text + at, '\n', len - at))) {
		*end = '\0';
		recall(journal, text + at, &scale);
		at = (size_t)(end - text) + 1;
	}
	if (at < len && (len > JOURNAL_MAX || ftruncate(journal->fd, (off_t)at)))
		status = NEZHA_ERR_SYSTEM;
	free(text);
	return status;
}

/* Opens the journal and locks it; another one that has just ended may have removed the file in between. */
static bool open_alone(struct nezha_tune_journal *journal)
{
	struct stat file;

	for (int tries = 0; tries < 10; tries++) {
		journal->fd = open(journal->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (journal->fd < 0)
			return false;
		/* Where files cannot be locked nobody is found out. */
		if ((flock(journal->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || fstat(journal->fd, &file))
			return false;
		if (file.st_nlink)
			return true;
		close(journal->fd);
		journal->fd = -1;
	}
	errno = EWOULDBLOCK;
	return false;
}

static void release(struct nezha_tune_journal *journal)
{
	if (journal->fd >= 0)
		close(journal->fd);
	free(journal->path);
	free(journal->scale);
	*journal = (struct nezha_tune_journal){ .fd = -1 };
}

int nezha_tune_journal_open(const char *output, struct nezha_tune_journal *out)
{
	*out = (struct nezha_tune_journal){ .fd = -1 };
	out->scale = calloc(NEZHA_TUNE_SCALES, sizeof *out->scale);
	if (asprintf(&out->path, "%s.journal", output) < 0)
		out->path = NULL;
	if (!out->scale || !out->path) {
		nezha_tune_problem("no memory for the journal");
		release(out);
		return NEZHA_ERR_NOMEM;
	}
	if (!open_alone(out) || recall_all(out) != NEZHA_OK) {
		if (errno == EWOULDBLOCK)
			nezha_tune_problem("-o \"%s\": another nezha-tune is at work on it (it has the journal \"%s\"); wait for its end, "
			                   "or give another file", output, out->path);
		else
			nezha_tune_problem("-o \"%s\": the journal \"%s\" cannot be written: %s; allowed is a file in a folder "
			                   "that you may write to", output, out->path, strerror(errno));
		release(out);
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

int nezha_tune_journal_add(struct nezha_tune_journal *journal, const char *lines)
{
	if (nezha_file_write(journal->fd, lines, strlen(lines)) == NEZHA_OK && !fdatasync(journal->fd))
		return NEZHA_OK;
	nezha_tune_problem("the journal \"%s\" cannot be written: %s", journal->path, strerror(errno));
	return NEZHA_ERR_SYSTEM;
}

int nezha_tune_journal_conclude(struct nezha_tune_journal *journal, struct nezha_measured *scale)
{
	char line[64];

	snprintf(line, sizeof line, "concluded %d %d\n", scale->scale.ranks, scale->scale.ppn);
	forget(scale);
	return nezha_tune_journal_add(journal, line);
}

bool nezha_tune_journal_holds(const struct nezha_tune_journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		if (nezha_measured_any(&journal->scale[i]))
			return true;
	return false;
}

void nezha_tune_journal_close(struct nezha_tune_journal *journal)
{
	if (journal->fd >= 0 && !nezha_tune_journal_holds(journal))
		unlink(journal->path);
	release(journal);
}
