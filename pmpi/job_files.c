/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/job_files.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning/file.h"
#include "tuning/log.h"
#include "tuning/status.h"
#include "tuning/table.h"

static bool is_report_file(const struct nezha_settings *settings)
{
	const char *report = settings->report;

	return *report && strcmp(report, "0") != 0 && strcmp(report, "1") != 0;
}

/* Rank 0's; others warn of theirs. */
static int check_trace(const struct nezha_settings *settings, int rank)
{
	const char *name = settings->trace;
	char path[PATH_MAX];
	FILE *file = NULL;

	if (!*name)
		return NEZHA_OK;
	errno = ENAMETOOLONG;
	if (nezha_file_name(name, rank, path, sizeof(path)))
		file = fopen(path, "ae");
	if (!file) {
		nezha_error("NEZHA_TRACE=%s: the timeline cannot be written: %m (allowed: the name of a file; "
		            "%%r in it stands for the rank, %%h for the host)", name);
		return NEZHA_ERR_INVALID;
	}
	fclose(file);
	return NEZHA_OK;
}

static int check_report(const struct nezha_settings *settings)
{
	const char *path = settings->report;
	FILE *file;

	if (!is_report_file(settings))
		return NEZHA_OK;
	file = fopen(path, "ae");
	if (!file) {
		nezha_error("NEZHA_REPORT=%s: the report cannot be written: %m "
		            "(allowed: 0, 1, or the name of a file)", path);
		return NEZHA_ERR_INVALID;
	}
	fclose(file);
	return NEZHA_OK;
}

/* Where what is learnt shall go can be written, and what is there can be extended. */
static int check_learned(const struct nezha_settings *settings)
{
	const char *path = settings->learned;
	struct nezha_table *table = NULL;
	char *error = NULL;
	int status;

	if (!*path)
		return NEZHA_OK;
	if (nezha_file_is_replaceable(path) != NEZHA_OK) {
		nezha_error("NEZHA_LEARNED=%s: the table cannot be written: %m "
		            "(allowed: the name of a file in a folder that may be written to)", path);
		return NEZHA_ERR_INVALID;
	}
	status = nezha_table_load(path, &table, &error);
	if (status == NEZHA_ERR_SYSTEM && errno == ENOENT)
		return NEZHA_OK;
	if (status == NEZHA_OK)
		status = nezha_table_check(table, path, &error);
	if (status == NEZHA_ERR_SYSTEM)
		nezha_error("NEZHA_LEARNED=%s: the table that is there cannot be read: %m", path);
	else if (status != NEZHA_OK)
		nezha_error("NEZHA_LEARNED: what is there cannot be extended: %s", error ? error : "no memory");
	free(error);
	nezha_table_free(table);
	return status == NEZHA_OK ? NEZHA_OK : NEZHA_ERR_INVALID;
}

int nezha_job_check_files(const struct nezha_settings *settings, int rank)
{
	int status = check_report(settings);

	if (status == NEZHA_OK)
		status = check_trace(settings, rank);
	return status == NEZHA_OK ? check_learned(settings) : status;
}

int nezha_job_fix_files(struct nezha_settings *settings)
{
	int status = is_report_file(settings) ? nezha_file_fix(&settings->report) : NEZHA_OK;

	if (status == NEZHA_OK && *settings->learned)
		status = nezha_file_fix(&settings->learned);
	return status;
}

static bool is_no_file(const char *path)
{
	struct stat file;

	return !stat(path, &file) && !S_ISREG(file.st_mode);
}

static int part(char **name, const char *path)
{
	char *parted;

	if (is_no_file(path))
		return NEZHA_OK;
	if (asprintf(&parted, "%s.%ld", *name, (long)getpid()) < 0)
		return NEZHA_ERR_NOMEM;
	free(*name);
	*name = parted;
	return NEZHA_OK;
}

int nezha_job_part_files(struct nezha_settings *settings, int rank)
{
	int status = is_report_file(settings) ? part(&settings->report, settings->report) : NEZHA_OK;
	char path[PATH_MAX];

	if (status == NEZHA_OK && *settings->trace && nezha_file_name(settings->trace, rank, path, sizeof(path)))
		status = part(&settings->trace, path);
	return status;
}
