/* SPDX-License-Identifier: BSD-3-Clause
 * What every MPI test program shares: failures with a name, a time limit that tells what was
 * waited for, and an end that all ranks agree on.  Only calls that Nezha does not intercept are used
 * here, so that a broken MPI_Allreduce cannot hide itself. */
#ifndef NEZHA_TESTS_MPI_COMMON_H
#define NEZHA_TESTS_MPI_COMMON_H

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAILURES_SHOWN 10

static atomic_int failures;          /* of this rank; threads may add */
static const char *volatile watched; /* what the time limit is for */
static int world_rank, world_size;

/* Counts a failure and prints the first ones. */
__attribute__((format(printf, 1, 2), unused)) static void fail(const char *format, ...)
{
	char line[400];
	va_list args;

	if (atomic_fetch_add(&failures, 1) >= FAILURES_SHOWN)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "rank %d: FAILED: %s\n", world_rank, line);
}

static void expire(int signal)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "rank %d: FAILED: time limit reached in: %s\n", world_rank,
	                 watched);

	(void)signal;
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		_exit(4);
	_exit(3);
}

/* From now on the process ends, naming `what`, if it is not watched anew or over within `seconds`. */
__attribute__((unused)) static void watch(unsigned seconds, const char *what)
{
	watched = what;
	alarm(seconds);
}

/* Initialises MPI; `wanted` is the thread level.  Exits 77 if the library cannot do it. */
__attribute__((unused)) static void begin(int *argc, char ***argv, int wanted)
{
	int given;

	signal(SIGALRM, expire);
	setvbuf(stdout, NULL, _IOLBF, 0);
	watch(60, "MPI_Init_thread");
	MPI_Init_thread(argc, argv, wanted, &given);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	if (given < wanted) {
		if (world_rank == 0)
			printf("skipped: this MPI library gives thread level %d, needed is %d\n", given,
			       wanted);
		MPI_Finalize();
		exit(77);
	}
}

/* Tells the verdict over all ranks (rank 0, before MPI_Finalize, which some libraries hang in) and ends MPI.
 * Returns the exit status, the same on every rank. */
__attribute__((unused)) static int finish(const char *name)
{
	int mine = atomic_load(&failures), all = 0;

	watch(60, "the final MPI_Reduce");
	MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (world_rank == 0) {
		if (all)
			printf("%s: %d failures\n", name, all);
		else
			printf("%s: passed\n", name);
		fflush(stdout);
	}
	watch(60, "MPI_Finalize");
	MPI_Finalize();
	return all ? 1 : 0;
}

/* A number from the command line within [low, high]; ends the program with a message otherwise. */
__attribute__((unused)) static long number(const char *text, const char *what, long low, long high)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || end == text || *end || value < low || value > high) {
		fprintf(stderr, "%s: \"%s\" is not a number from %ld to %ld\n", what, text, low, high);
		exit(2);
	}
	return value;
}

/* From here on the MPI library does the calls. */
__attribute__((unused)) static void leave_to_library(MPI_Comm comm)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "nezha_enable", "0");
	MPI_Comm_set_info(comm, info);
	MPI_Info_free(&info);
}

/* Memory or death. */
__attribute__((unused)) static void *grab(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);

	if (!memory) {
		fprintf(stderr, "rank %d: no memory for %zu bytes\n", world_rank, bytes);
		exit(2);
	}
	return memory;
}

#endif
