/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/context.h"
#include "pmpi/patience.h"
#include "rails/host.h"
#include "tuning/file.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define ROUNDS 9                  /* odd: there is a median */

/* Better now than after the run; rank 0's was looked at when the settings were read. */
static bool find_path(char path[PATH_MAX])
{
	const char *name = nezha_context.job.settings.trace;
	FILE *file = NULL;

	errno = ENAMETOOLONG;
	if (nezha_file_name(name, nezha_context.job.rank, path, PATH_MAX))
		file = fopen(path, "ae");
	if (!file) {
		nezha_warn("NEZHA_TRACE=%s: the timeline cannot be written: %m", name);
		return false;
	}
	fclose(file);
	return true;
}

/* Makes the setting the file's whole name, for the program may go to another folder before it is written.  What looks like "%r" in
 * the folder's own name is no more than that. */
static int fix_path(const char *path)
{
	char *fixed = strdup(path);

	if (!fixed || nezha_file_fix(&fixed) != NEZHA_OK) {
		free(fixed);
		return NEZHA_ERR_NOMEM;
	}
	free(nezha_context.job.settings.trace);
	nezha_context.job.settings.trace = fixed;
	return NEZHA_OK;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* All leave a barrier at about the same time: the median over some of them is good to what a message takes.  All ranks
 * count from rank 0's time at the last one. */
static int agree_on_clock(void)
{
	int64_t mine[ROUNDS], first[ROUNDS], apart[ROUNDS];
	int error = MPI_SUCCESS;

	for (int i = 0; i < ROUNDS && error == MPI_SUCCESS; i++) {
		error = PMPI_Barrier(MPI_COMM_WORLD);
		mine[i] = (int64_t)nezha_patience_now();
	}
	memcpy(first, mine, sizeof(first));
	if (error == MPI_SUCCESS)
		error = PMPI_Bcast(first, ROUNDS, MPI_INT64_T, 0, MPI_COMM_WORLD);
	if (error != MPI_SUCCESS)
		return error;
	for (int i = 0; i < ROUNDS; i++)
		apart[i] = first[i] - mine[i];
	qsort(apart, ROUNDS, sizeof(apart[0]), compare);
	nezha_context.trace_shift = apart[ROUNDS / 2] - first[ROUNDS - 1];
	/* The outermost ones are what a busy host does to anybody. */
	nezha_context.trace_error = (uint64_t)(apart[ROUNDS - 2] - apart[1]);
	return MPI_SUCCESS;
}

int nezha_timeline_begin(void)
{
	const char *name = nezha_context.job.settings.trace;
	char path[PATH_MAX];

	if (!*name)
		return NEZHA_OK;
	if (agree_on_clock() != MPI_SUCCESS)
		return NEZHA_ERR_SYSTEM;
	if ((nezha_context.job.rank != 0 && !strstr(name, "%r")) || !find_path(path))
		return NEZHA_OK;
	if (fix_path(path) != NEZHA_OK)
		return NEZHA_ERR_NOMEM;
	return nezha_trace_create(NEZHA_TRACE_EVENTS, &nezha_context.trace);
}

/* Threads are numbered as they come. */
static int32_t thread_number(void)
{
	static _Thread_local int32_t number;

	if (!number)
		number = ++nezha_context.trace_threads;
	return number;
}

void nezha_timeline_add(enum nezha_trace_kind kind, uint64_t begin, uint64_t bytes, enum nezha_algorithm alg,
                        enum nezha_reason reason)
{
	nezha_trace_record(nezha_context.trace, &(struct nezha_trace_event){
		.begin = begin, .end = nezha_patience_now(), .bytes = bytes, .kind = (uint8_t)kind, .alg = (uint8_t)alg,
		.reason = (uint8_t)reason, .peer = thread_number(),
	});
}

static int print(const char *path, uint64_t *lost)
{
	char host[64];
	struct nezha_trace_process process = {
		.rank = nezha_context.job.rank, .host = host, .shift = nezha_context.trace_shift,
		.error = nezha_context.trace_error,
	};
	FILE *file = fopen(path, "we");
	int status = NEZHA_ERR_SYSTEM;

	nezha_host_identity(host, sizeof(host));
	if (file) {
		status = nezha_trace_print(nezha_context.trace, &process, file, lost);
		if (fclose(file) && status == NEZHA_OK)
			status = NEZHA_ERR_SYSTEM;
	}
	return status;
}

void nezha_timeline_write(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     /* calls of two threads may fail at once */
	const char *path = nezha_context.job.settings.trace;
	uint64_t lost = 0;
	int status;

	if (!nezha_context.trace)
		return;
	pthread_mutex_lock(&lock);
	status = print(path, &lost);
	pthread_mutex_unlock(&lock);
	if (status != NEZHA_OK)
		nezha_error("NEZHA_TRACE=%s: the timeline cannot be written: %s", path,
		            status == NEZHA_ERR_NOMEM ? "no memory" : strerror(errno));
	else if (lost)
		nezha_warn("NEZHA_TRACE: the last %u events are in %s, %" PRIu64 " before them were overwritten",
		           NEZHA_TRACE_EVENTS, path, lost);
}

void nezha_timeline_end(void)
{
	nezha_timeline_write();
	nezha_trace_free(nezha_context.trace);
	nezha_context.trace = NULL;
}
