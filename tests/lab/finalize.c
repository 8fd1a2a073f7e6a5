// SPDX-License-Identifier: BSD-3-Clause
/*
 * finalize.c - preload for MPICH's ranks in a lab: MPI_Finalize comes to its end.
 *
 * MPICH over UCX (seen with 4.0.2 and UCX 1.13.1) first closes its endpoints, which for TCP needs answers
 * from the peers, and then waits for all ranks in a barrier of the process manager: a read() from the
 * descriptor PMI_FD.  A rank in that barrier answers nobody any more, so a slower rank's close never ends,
 * and the job hangs; with more ranks than cores and after large messages that is the usual case.  Here such a
 * read goes on making progress until there is something to read.  It starts with the first
 * ucp_disconnect_nb(), which MPICH calls when it finalizes: before that other threads may use the worker.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_WORKERS = 16 };

static void *workers[MAX_WORKERS];
static int n_workers;
static int closing;
static int pmi_fd = -1;

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

int ucp_worker_create(void *context, const void *params, void **worker)
{
	int (*create)(void *, const void *, void **) = real("ucp_worker_create");
	const char *fd = getenv("PMI_FD");
	int status = create(context, params, worker);

	if (status != 0 || n_workers == MAX_WORKERS)
		return status;
	workers[n_workers++] = *worker;
	if (fd)
		pmi_fd = atoi(fd);
	return status;
}

void *ucp_disconnect_nb(void *endpoint)
{
	void *(*disconnect)(void *) = real("ucp_disconnect_nb");

	closing = 1;
	return disconnect(endpoint);
}

void ucp_worker_destroy(void *worker)
{
	void (*destroy)(void *) = real("ucp_worker_destroy");

	n_workers = 0;
	destroy(worker);
}

static void progress_until_readable(int fd)
{
	unsigned (*progress)(void *) = real("ucp_worker_progress");
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int i;

	while (progress && poll(&pollfd, 1, 1) == 0) {
		for (i = 0; i < n_workers; i++)
			progress(workers[i]);
	}
}

ssize_t read(int fd, void *buffer, size_t size)
{
	static ssize_t (*read_it)(int, void *, size_t);

	if (!read_it)
		*(void **)&read_it = real("read");
	if (closing && n_workers > 0 && fd == pmi_fd)
		progress_until_readable(fd);
	return read_it(fd, buffer, size);
}
