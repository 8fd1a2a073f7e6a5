/* SPDX-License-Identifier: BSD-3-Clause
 * Tables in files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/file.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"

int nezha_table_load(const char *path, struct nezha_table **out, char **error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), status, problem;
	char *text = NULL;
	size_t len;

	*error = NULL;
	if (fd < 0)
		return NEZHA_ERR_SYSTEM;
	text = nezha_file_read(fd, NEZHA_TABLE_BYTES, &len);
	problem = errno;
	close(fd);
	errno = problem;
	if (!text)
		return NEZHA_ERR_SYSTEM;
	status = nezha_table_parse(text, len, path, out, error);
	free(text);
	return status;
}

/* Whether the text says what it should: a job that reads it must not be told otherwise. */
static int check(const char *text, const char *name, char **error)
{
	struct nezha_table *again;
	int status = nezha_table_parse(text, strlen(text), name, &again, error);

	if (status == NEZHA_OK)
		nezha_table_free(again);
	return status;
}

int nezha_table_check(const struct nezha_table *table, const char *name, char **error)
{
	char *text = nezha_table_print(table), *printed = NULL;
	int status = NEZHA_ERR_NOMEM;

	*error = NULL;
	if (text && asprintf(&printed, "%s, as Nezha prints it", name) >= 0) {
		status = check(text, printed, error);
		free(printed);
	}
	free(text);
	return status;
}

int nezha_table_save(const struct nezha_table *table, const char *path, char **error)
{
	char *text = nezha_table_print(table);
	int status, problem;

	*error = NULL;
	if (!text)
		return NEZHA_ERR_NOMEM;
	status = check(text, path, error);
	if (status == NEZHA_OK)
		status = nezha_file_replace(path, text);
	problem = errno;
	free(text);
	errno = problem;
	return status;
}
