/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/patience.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include "tuning/status.h"

#define BUSY 200                  /* polls before sleeping */
#define NAP_MAX 1000000           /* ns */

uint64_t nezha_patience_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Short naps first: the answer usually comes at once. */
static void rest(unsigned poll)
{
	struct timespec nap = { .tv_nsec = (long)(poll - BUSY) * 1000 };

	if (poll < BUSY) {
		sched_yield();
		return;
	}
	if (nap.tv_nsec > NAP_MAX)
		nap.tv_nsec = NAP_MAX;
	nanosleep(&nap, NULL);
}

/* One by one: those that are complete become MPI_REQUEST_NULL. */
static int settle(MPI_Request *requests, int count, bool *all)
{
	*all = true;
	for (int i = 0; i < count; i++) {
		int done;

		if (PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return NEZHA_ERR_SYSTEM;
		if (!done)
			*all = false;
	}
	return NEZHA_OK;
}

int nezha_patience_wait(MPI_Request *requests, int count, double seconds)
{
	uint64_t end = nezha_patience_now() + (uint64_t)(seconds * 1e9);
	bool all;

	for (unsigned poll = 0;; poll++) {
		int status = settle(requests, count, &all);

		if (status != NEZHA_OK || all)
			return status;
		if (nezha_patience_now() > end)
			return NEZHA_ERR_TIMEOUT;
		rest(poll);
	}
}
