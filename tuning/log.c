/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/file.h"
#include "tuning/text.h"

#define LINE_MAX_BYTES 1024   /* of a line, its '\n' included */

/* Where lines go.  Never changed once published, and kept when replaced: another thread may be using it. */
struct destination {
	int fd;
	char who[HOST_NAME_MAX + 16];   /* "host:rank" */
	struct destination *former;
};

static _Atomic int current_level = NEZHA_LOG_WARN;
static _Atomic(struct destination *) current;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

const char *nezha_log_level_name(enum nezha_log_level level)
{
	return level_names[level];
}

enum nezha_log_level nezha_log_level(void)
{
	return (enum nezha_log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

static void name_host(char *buf, size_t len, int rank)
{
	char host[HOST_NAME_MAX + 1];

	if (gethostname(host, sizeof host))
		strcpy(host, "?");
	host[sizeof host - 1] = '\0';
	if (rank < 0)
		snprintf(buf, len, "%s", host);
	else
		snprintf(buf, len, "%s:%d", host, rank);
}

static int open_file(const char *file, int rank)
{
	char path[PATH_MAX];
	int fd = -1;

	errno = ENAMETOOLONG;
	if (nezha_file_name(file, rank, path, sizeof path))
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		nezha_warn("cannot open the log file %s: %m; the log goes to standard error", file);
	return fd;
}

void nezha_log_open(enum nezha_log_level level, const char *file, int rank)
{
	struct destination *former = atomic_load(&current), *d = malloc(sizeof *d);
	int fd = file && *file ? open_file(file, rank) : -1;

	atomic_store(&current_level, (int)level);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	d->fd = fd >= 0 ? fd : STDERR_FILENO;
	d->former = former;
	name_host(d->who, sizeof d->who, rank);
	if (former && former->fd != STDERR_FILENO) {
		/* The number of the former file may be in use by another thread: it gets the new meaning. */
		dup3(d->fd, former->fd, O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		d->fd = former->fd;
	}
	atomic_store(&current, d);
}

/* The length of a line of `at` bytes after printf has put `printed` more, as far as there was room. */
static size_t grown(size_t at, int printed)
{
	if (printed < 0)
		return at;
	at += (size_t)printed;
	return at < LINE_MAX_BYTES ? at : LINE_MAX_BYTES - 1;   /* the NUL makes room for '\n' */
}

void nezha_log(enum nezha_log_level level, const char *format, ...)
{
	const struct destination *d = atomic_load(&current);
	char line[LINE_MAX_BYTES], host[HOST_NAME_MAX + 1];
	int saved = errno, fd = d ? d->fd : STDERR_FILENO;
	size_t head, len;
	va_list args;

	if (level > nezha_log_level())
		return;
	if (!d)
		name_host(host, sizeof host, -1);
	head = grown(0, snprintf(line, sizeof line, "nezha[%s] %s: ", d ? d->who : host, level_names[level]));
	errno = saved;
	va_start(args, format);
	len = grown(head, vsnprintf(line + head, sizeof line - head, format, args));
	va_end(args);
	if (len > head && line[len - 1] == '\n')
		len--;
	nezha_text_clean(line + head, len - head);
	line[len++] = '\n';
	while (write(fd, line, len) < 0 && errno == EINTR)
		;
	errno = saved;
}
