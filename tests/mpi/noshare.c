/* SPDX-License-Identifier: BSD-3-Clause
 * A fault to preload: one rank gets no memory to share (NOSHARE=memfd: rank 2), or may not look at what another one offers
 * (NOSHARE=readlink: rank 3). */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int is_faulty(const char *what, const char *which)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
	const char *fault = getenv("NOSHARE");

	return rank && fault && !strcmp(fault, what) && !strcmp(rank, which);
}

int memfd_create(const char *name, unsigned flags)
{
	static int (*real)(const char *, unsigned);

	if (!real)
		real = (int (*)(const char *, unsigned))dlsym(RTLD_NEXT, "memfd_create");
	if (!strncmp(name, "nezha-", 6) && is_faulty("memfd", "2")) {
		errno = EMFILE;
		return -1;
	}
	return real(name, flags);
}

ssize_t readlink(const char *path, char *target, size_t len)
{
	static ssize_t (*real)(const char *, char *, size_t);

	if (!real)
		real = (ssize_t (*)(const char *, char *, size_t))dlsym(RTLD_NEXT, "readlink");
	if (!strncmp(path, "/proc/", 6) && strstr(path, "/fd/") && is_faulty("readlink", "3")) {
		errno = EACCES;
		return -1;
	}
	return real(path, target, len);
}
