/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
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

char *nezha_file_follow(const char *name)
{
	struct stat link, file;

	if (lstat(name, &link) || !S_ISLNK(link.st_mode) || stat(name, &file) || !S_ISREG(file.st_mode))
		return NULL;
	return realpath(name, NULL);
}

int nezha_file_fix(char **name)
{
	char folder[PATH_MAX], *fixed = nezha_file_follow(*name);

	if (fixed) {
		free(*name);
		*name = fixed;
		return NEZHA_OK;
	}
	if (**name == '/' || !getcwd(folder, sizeof folder))
		return NEZHA_OK;
	if (asprintf(&fixed, "%s/%s", folder, *name) < 0)
		return NEZHA_ERR_NOMEM;
	free(*name);
	*name = fixed;
	return NEZHA_OK;
}

/* Whether fd is ours alone, and still the file of that name: another process may have removed it since it was opened.
 * Where files cannot be locked there is nothing to be found out. */
static bool is_ours(int fd, const char *path)
{
	struct stat mine, there;

	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return false;
	return !fstat(fd, &mine) && !stat(path, &there) && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* The folder that `path` is in, malloc'd. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static bool may_write_beside(const char *path)
{
	char *folder = folder_of(path);
	bool may = folder && !faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS);

	free(folder);
	return may;
}

/* Whatever this user's umask, others must be able to open the lock, to wait for its end; but not what somebody has put in its place. */
static void open_to_all(int fd)
{
	struct stat file;

	if (!fstat(fd, &file) && file.st_nlink == 1 && file.st_size == 0)
		fchmod(fd, 0666);
}

/* Opens PATH.new, as `new`, if it can be ours alone; -1: errno, EBUSY if another process has it. */
static int open_alone(const char *new)
{
	int fd = open(new, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd >= 0)
		open_to_all(fd);
	/* Another user's, in a folder of several: a lock needs no more. */
	if (fd < 0 && errno == EACCES) {
		fd = open(new, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			errno = may_write_beside(new) ? EBUSY : EACCES;        /* it has gone meanwhile, or it never was */
	}
	if (fd < 0 || is_ours(fd, new))
		return fd;
	close(fd);
	errno = EBUSY;
	return -1;
}

static bool name_new(const char *path, const char *suffix, char new[PATH_MAX])
{
	if (snprintf(new, PATH_MAX, "%s.new%s", path, suffix) < PATH_MAX)
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

/* Opens it anew for each look instead of waiting in flock(): that has no limit, and ends with a lock on what has no name any more,
 * for whoever had it has removed it. */
int nezha_file_reserve(const char *path, double seconds)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	double end = now() + seconds;
	char new[PATH_MAX];
	int fd;

	if (!name_new(path, "", new))
		return -1;
	while ((fd = open_alone(new)) < 0 && errno == EBUSY && now() < end)
		nanosleep(&nap, NULL);
	return fd;
}

void nezha_file_release(const char *path, int reserved)
{
	char new[PATH_MAX];
	int problem = errno;

	if (name_new(path, "", new) && is_ours(reserved, new))
		unlink(new);
	close(reserved);
	errno = problem;
}

/* Opens a file beside `path` that nobody else has, whatever locks are worth there. */
static int open_own(const char *path, char own[PATH_MAX])
{
	char suffix[16];
	uint32_t number;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -1;
	snprintf(suffix, sizeof suffix, ".%08x", number);
	return name_new(path, suffix, own) ? open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
}

/* Who could read the old file can read the new one: if that cannot have its owner, who may be the only reader, by what the umask lets. */
static void become_like(int fd, const struct stat *old)
{
	struct stat new;

	if (fstat(fd, &new))
		return;
	if (!fchown(fd, old->st_uid, old->st_gid)) {
		fchmod(fd, old->st_mode & 0777);
		return;
	}
	(void)!fchown(fd, (uid_t)-1, old->st_gid);
	fchmod(fd, (old->st_mode | new.st_mode) & 0777);
}

int nezha_file_replace(const char *path, const char *text)
{
	int status = NEZHA_ERR_SYSTEM, problem, fd;
	char own[PATH_MAX];
	struct stat old;

	fd = open_own(path, own);
	if (fd < 0)
		return NEZHA_ERR_SYSTEM;
	if (!stat(path, &old))
		become_like(fd, &old);
	if (nezha_file_write(fd, text, strlen(text)) == NEZHA_OK && !fsync(fd) && !rename(own, path))
		status = NEZHA_OK;
	problem = errno;
	if (status != NEZHA_OK)
		unlink(own);
	close(fd);
	errno = problem;
	return status;
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
