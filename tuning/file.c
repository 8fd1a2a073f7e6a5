/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tuning/status.h"

char *nezha_file_read(int fd, size_t most, size_t *len)
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

int nezha_file_write(int fd, const char *text, size_t len)
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

bool nezha_file_name(const char *name, int rank, char *path, size_t len)
{
	char number[16], host[HOST_NAME_MAX + 1];
	size_t at = 0;

	snprintf(number, sizeof number, "%d", rank);
	if (gethostname(host, sizeof host))
		strcpy(host, "?");
	host[sizeof host - 1] = '\0';
	while (*name) {
		bool special = name[0] == '%' && (name[1] == 'r' || name[1] == 'h');
		const char *piece = special ? name[1] == 'r' ? number : host : name;
		size_t n = special ? strlen(piece) : 1;

		if (n >= len - at)
			return false;
		memcpy(path + at, piece, n);
		at += n;
		name += special ? 2 : 1;
	}
	path[at] = '\0';
	return true;
}

int nezha_file_fix(char **name)
{
	char folder[PATH_MAX], *fixed;

	if (**name == '/' || !getcwd(folder, sizeof folder))
		return NEZHA_OK;
	if (asprintf(&fixed, "%s/%s", folder, *name) < 0)
		return NEZHA_ERR_NOMEM;
	free(*name);
	*name = fixed;
	return NEZHA_OK;
}

/* Whether fd is ours alone, and still the file of that name: another process may have renamed it since it was opened.
 * Where files cannot be locked there is nothing to be found out. */
static bool is_ours(int fd, const char *path)
{
	struct stat mine, there;

	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return false;
	return !fstat(fd, &mine) && !stat(path, &there) && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* Opens PATH.new, as `new`, if it can be ours alone; -1: errno, EBUSY if another process has it. */
static int open_alone(const char *new)
{
	int fd = open(new, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || is_ours(fd, new))
		return fd;
	close(fd);
	errno = EBUSY;
	return -1;
}

static bool name_new(const char *path, char new[PATH_MAX])
{
	if (snprintf(new, PATH_MAX, "%s.new", path) < PATH_MAX)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Opens it anew for each look instead of waiting in flock(): that has no limit, and ends with a lock on what is PATH by now, for
 * whoever had it has renamed it. */
int nezha_file_reserve(const char *path, double seconds)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	double end = now() + seconds;
	char new[PATH_MAX];
	int fd;

	if (!name_new(path, new))
		return -1;
	while ((fd = open_alone(new)) < 0 && errno == EBUSY && now() < end)
		nanosleep(&nap, NULL);
	return fd;
}

int nezha_file_replace(const char *path, int reserved, const char *text)
{
	char new[PATH_MAX];

	if (name_new(path, new) && !ftruncate(reserved, 0) && nezha_file_write(reserved, text, strlen(text)) == NEZHA_OK &&
	    !fsync(reserved) && !rename(new, path))
		return NEZHA_OK;
	return NEZHA_ERR_SYSTEM;
}

void nezha_file_release(const char *path, int reserved)
{
	char new[PATH_MAX];
	int problem = errno;

	/* It has its name still, if it was not renamed: what has that name after it was is another process's. */
	if (name_new(path, new) && is_ours(reserved, new))
		unlink(new);
	close(reserved);
	errno = problem;
}

/* The folder that `path` is in, malloc'd. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

int nezha_file_is_replaceable(const char *path)
{
	char *folder = folder_of(path);
	struct stat file;
	bool exists = !stat(path, &file);
	int problem = exists || errno == ENOENT ? 0 : errno;

	if (exists && !S_ISREG(file.st_mode))
		problem = S_ISDIR(file.st_mode) ? EISDIR : EINVAL;
	else if (!folder)
		problem = ENOMEM;
	else if (!problem && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		problem = errno;
	free(folder);
	errno = problem;
	return problem ? NEZHA_ERR_SYSTEM : NEZHA_OK;
}
