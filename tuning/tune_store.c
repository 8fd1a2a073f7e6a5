/* SPDX-License-Identifier: BSD-3-Clause
 * What nezha-tune keeps: the table, and the journal beside it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/tune.h"

#define JOURNAL_MAX (16u << 20)     /* bytes */

/* What holds where nothing is measured. */
static const char unmeasured[] =
	"{\"version\": 1, \"collectives\": {\"allreduce\": ["
	"{\"nodes_max\": 1, \"rules\": [{\"alg\": \"native\", \"reason\": \"one-node\"}]},"
	"{\"ppn_min\": 2, \"rules\": [{\"alg\": \"native\", \"reason\": \"shared-node\"}]}]}}";

/* At most `most` + 1 bytes of the file, and a NUL.  NULL with errno: it cannot be read. */
static char *read_file(int fd, size_t most, size_t *len)
{
	char *text = malloc(most + 2);
	ssize_t got = 1;

	*len = 0;
	while (text && *len < most + 1 && got > 0) {
		got = read(fd, text + *len, most + 1 - *len);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			*len += (size_t)got;
	}
	if (!text || got < 0) {
		free(text);
		return NULL;
	}
	text[*len] = '\0';
	return text;
}

static int parse(const char *text, size_t len, const char *path, struct nezha_table **out)
{
	char *error = NULL;
	int status = nezha_table_parse(text, len, path, out, &error);

	if (status != NEZHA_OK)
		nezha_tune_problem("%s", error ? error : "no memory");
	free(error);
	return status;
}

int nezha_tune_load(const char *path, struct nezha_table **out, bool *is_new)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), status;
	char *text = NULL;
	size_t len;

	*is_new = fd < 0 && errno == ENOENT;
	if (*is_new)
		return parse(unmeasured, sizeof unmeasured - 1, "new table", out);
	if (fd >= 0)
		text = read_file(fd, NEZHA_TABLE_BYTES, &len);
	if (!text) {
		nezha_tune_problem("the table \"%s\" cannot be read: %s", path, strerror(errno));
		status = NEZHA_ERR_INVALID;
	} else {
		status = parse(text, len, path, out);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	return status;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t put = write(fd, text, len);

		if (put < 0 && errno != EINTR)
			return NEZHA_ERR_SYSTEM;
		if (put > 0) {
			text += put;
			len -= (size_t)put;
		}
	}
	return NEZHA_OK;
}

/* Whether the text says what it should: a job that reads it must not be told otherwise. */
static int check(const char *text, const char *path)
{
	struct nezha_table *again;
	int status = parse(text, strlen(text), path, &again);

	if (status == NEZHA_OK)
		nezha_table_free(again);
	return status;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), status;

	if (fd < 0)
		return NEZHA_ERR_SYSTEM;
	status = write_all(fd, text, strlen(text));
	if (status == NEZHA_OK && fsync(fd))
		status = NEZHA_ERR_SYSTEM;
	if (close(fd) && status == NEZHA_OK)
		status = NEZHA_ERR_SYSTEM;
	return status;
}

int nezha_tune_save(const struct nezha_table *table, const char *path)
{
	char *text = nezha_table_print(table), *new = NULL;
	int status = NEZHA_ERR_NOMEM;

	if (!text || asprintf(&new, "%s.new", path) < 0) {
		nezha_tune_problem("no memory for the table");
		goto done;
	}
	status = check(text, path);
	if (status != NEZHA_OK)
		goto done;
	status = write_file(new, text);
	if (status == NEZHA_OK && rename(new, path))
		status = NEZHA_ERR_SYSTEM;
	if (status != NEZHA_OK) {
		nezha_tune_problem("the table \"%s\" cannot be written: %s", path, strerror(errno));
		unlink(new);
	}
done:
	free(new);
	free(text);
	return status;
}

/* ---- the journal ---- */

struct nezha_measured *nezha_tune_journal_scale(struct nezha_tune_journal *journal, int ranks)
{
	for (size_t i = 0; i < journal->count; i++)
		if (journal->scale[i].scale.ranks == ranks)
			return &journal->scale[i];
	if (journal->count == NEZHA_TUNE_SCALES)
		return NULL;
	journal->scale[journal->count] = (struct nezha_measured){ .scale = { .ranks = ranks } };
	return &journal->scale[journal->count++];
}

/* One line of a journal.  What makes no sense is left out: at worst it is measured again. */
static void recall(struct nezha_tune_journal *journal, const char *line, struct nezha_measured **scale)
{
	enum nezha_measured_kind kind;
	uint64_t bytes;
	int ranks;

	if (sscanf(line, "job %d", &ranks) == 1)
		*scale = ranks >= 2 ? nezha_tune_journal_scale(journal, ranks) : NULL;
	if (*scale)
		nezha_measured_take(*scale, line, &kind, &bytes);
}

/* Reads whole lines; a last one without its end was being written when all ended, and is cut off. */
static int recall_all(struct nezha_tune_journal *journal)
{
	struct nezha_measured *scale = NULL;
	size_t len, at = 0;
	char *text = read_file(journal->fd, JOURNAL_MAX, &len), *end;
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

int nezha_tune_journal_open(const char *output, struct nezha_tune_journal *out)
{
	*out = (struct nezha_tune_journal){ .fd = -1 };
	out->scale = calloc(NEZHA_TUNE_SCALES, sizeof *out->scale);
	if (!out->scale || asprintf(&out->path, "%s.journal", output) < 0) {
		nezha_tune_problem("no memory for the journal");
		free(out->scale);
		return NEZHA_ERR_NOMEM;
	}
	out->fd = open(out->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (out->fd < 0 || recall_all(out) != NEZHA_OK) {
		nezha_tune_problem("-o \"%s\": the journal \"%s\" cannot be written: %s; allowed is a file in a folder "
		                   "that you may write to", output, out->path, strerror(errno));
		nezha_tune_journal_close(out, false);
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

int nezha_tune_journal_add(struct nezha_tune_journal *journal, const char *lines)
{
	if (write_all(journal->fd, lines, strlen(lines)) == NEZHA_OK && !fdatasync(journal->fd))
		return NEZHA_OK;
	nezha_tune_problem("the journal \"%s\" cannot be written: %s", journal->path, strerror(errno));
	return NEZHA_ERR_SYSTEM;
}

void nezha_tune_journal_close(struct nezha_tune_journal *journal, bool finished)
{
	struct stat file;

	/* One that holds nothing is no use either. */
	if (journal->fd >= 0 && (finished || (!fstat(journal->fd, &file) && !file.st_size)))
		unlink(journal->path);
	if (journal->fd >= 0)
		close(journal->fd);
	free(journal->path);
	free(journal->scale);
	*journal = (struct nezha_tune_journal){ .fd = -1 };
}
