/* SPDX-License-Identifier: BSD-3-Clause
 * Nezha's own addition to the OSU Micro-Benchmarks: the option --nezha of osu_allreduce and osu_iallreduce.
 * `apply` puts this file and nezha.h into an OSU tree; the patches insert nothing but calls of what is here.
 * The benchmarks' own loop and clock measure; with the option it makes twice the calls, half of them after
 * MPI_Pcontrol(0), half after MPI_Pcontrol(1).  Without the option every function here does nothing.
 *
 * In the order of the calls:
 *   osu_nezha_take     before OSU reads its options      osu_nezha_before  just before a timed call
 *   osu_nezha_help     after OSU's help                  osu_nezha_after   after it, and after its validation
 *   osu_nezha_begin    MPI runs, the options are known   osu_nezha_print   after a size's calls
 *   osu_nezha_header   instead of OSU's header
 *   osu_nezha_turn     first in OSU's loop of calls */
#ifndef OSU_NEZHA_H
#define OSU_NEZHA_H

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nezha.h"

#define OSU_NEZHA_OPTION "--nezha"
#define OSU_NEZHA_RAILS 12 /* nezha.h: there are no more */

enum { OSU_NEZHA_NATIVE, OSU_NEZHA_ON };

/* What one rank knows of its rails; sent as it is to rank 0, so without pointers. */
struct osu_nezha_rails {
	uint64_t count;
	struct nezha_rail_counter rail[OSU_NEZHA_RAILS];
};

static struct {
	int wanted;                       /* the option was given */
	const char *call;                 /* the MPI function that is measured */
	nezha_rail_counters_fn *counters; /* NULL: Nezha is not in this process */
	int ranks, ranks_with;            /* of the communicator; those that have Nezha (known to rank 0) */
	int noted;                        /* the notes are out */
	int way;                          /* of the present call */
	int errors_seen;                  /* OSU's count before the present call */
	struct osu_nezha_rails before;    /* the counters before the present call */
	/* of the present size */
	double seconds[2];
	long calls[2];
	int errors[2];
	struct osu_nezha_rails sent;
} osu_nezha;

/* Takes the option out of the arguments, so that OSU's parser need not know it. */
static void osu_nezha_take(int *argc, char **argv)
{
	int kept = 1, i = 1;

	for (; i < *argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], OSU_NEZHA_OPTION))
			osu_nezha.wanted = 1;
		else
			argv[kept++] = argv[i];
	}
	for (; i < *argc; i++)
		argv[kept++] = argv[i];
	argv[kept] = NULL;
	*argc = kept;
}

static void osu_nezha_help(int rank)
{
	if (rank == 0)
		printf("\n  %s\t\tmeasure each size with and without Nezha in turn (MPI_Pcontrol) and print\n"
		       "\t\t\tboth latencies, their ratio, and what Nezha sent over each rail;\n"
		       "\t\t\tnot together with -f, -G, -P, -z\n", OSU_NEZHA_OPTION);
}

static int osu_nezha_wanted(void)
{
	return osu_nezha.wanted;
}

/* Whether the numbers of calls may be multiplied by 2 and added: OSU's loop counts with an int. */
static int osu_nezha_doubles(size_t skip, size_t iterations)
{
	return skip <= INT_MAX / 4 && iterations <= INT_MAX / 4;
}

/* Collective.  `call` is the MPI function that is measured; `others` is not 0 if options were given whose
 * output has no place for two ways.  The four numbers are OSU's and are doubled: each way then has as many.
 * Returns 0, or -1 with a message if the benchmark cannot go on. */
static int osu_nezha_begin(int rank, MPI_Comm comm, const char *call, int others, size_t *skip,
                           size_t *iterations, size_t *skip_large, size_t *iterations_large)
{
	void *self;
	int mine;

	if (!osu_nezha.wanted)
		return 0;
	if (others) {
		if (rank == 0)
			fprintf(stderr, "%s cannot be given together with -f, -G, -P or -z: their output knows "
			        "one way only\n", OSU_NEZHA_OPTION);
		return -1;
	}
	if (!osu_nezha_doubles(*skip, *iterations) || !osu_nezha_doubles(*skip_large, *iterations_large)) {
		if (rank == 0)
			fprintf(stderr, "%s: -i %zu and -x %zu are too many calls, at most %d are allowed\n",
			        OSU_NEZHA_OPTION, *iterations, *skip, INT_MAX / 4);
		return -1;
	}
	*skip *= 2;
	*iterations *= 2;
	*skip_large *= 2;
	*iterations_large *= 2;
	osu_nezha.call = call;
	self = dlopen(NULL, RTLD_LAZY);
	if (self)
		osu_nezha.counters = (nezha_rail_counters_fn *)dlsym(self, NEZHA_RAIL_COUNTERS);
	mine = osu_nezha.counters != NULL;
	MPI_Reduce(&mine, &osu_nezha.ranks_with, 1, MPI_INT, MPI_SUM, 0, comm);
	MPI_Comm_size(comm, &osu_nezha.ranks);
	return 0;
}

/* What the reader of the columns must know. */
static void osu_nezha_notes(MPI_Datatype type)
{
	(void)type;
	if (!osu_nezha.noted)
		printf("# native: after MPI_Pcontrol(0), nezha: after MPI_Pcontrol(1), in turn; "
		       "ratio: native / nezha.\n");
	if (!osu_nezha.noted && osu_nezha.ranks_with < osu_nezha.ranks)
		printf("# NEZHA IS NOT IN %d OF %d PROCESSES (is libnezha_pmpi.so in LD_PRELOAD?): both columns "
		       "are the MPI library's own.\n", osu_nezha.ranks - osu_nezha.ranks_with, osu_nezha.ranks);
	else if (!osu_nezha.noted && strcmp(osu_nezha.call, "MPI_Allreduce"))
		printf("# NEZHA DOES NOT TAKE %s: both columns are the MPI library's own.\n", osu_nezha.call);
#ifdef OPEN_MPI
	else if (type == MPI_CHAR && osu_nezha.ranks_with == osu_nezha.ranks)
		printf("# NEZHA LEAVES 8-BIT SUMS TO OPEN MPI, which saturates them or not as the CPU has it: both "
		       "columns are its own.  -T mpi_int and -T mpi_float go over the rails.\n");
#endif
	osu_nezha.noted = 1;
}

/* Prints the header in place of OSU's; 0: the option was not given, OSU's is wanted. */
static int osu_nezha_header(int rank, int validate, MPI_Datatype type)
{
	if (!osu_nezha.wanted)
		return 0;
	if (rank == 0) {
		osu_nezha_notes(type);
		printf("%-10s%16s%16s%10s%s  %s\n", "# Size", "native(us)", "nezha(us)", "ratio",
		       validate ? "       Validation" : "",
		       "bytes over each rail (a nezha call's, mean of the ranks)");
		fflush(stdout);
	}
	return 1;
}

static void osu_nezha_read(struct osu_nezha_rails *out)
{
	memset(out, 0, sizeof(*out));
	if (osu_nezha.counters)
		out->count = osu_nezha.counters(out->rail, OSU_NEZHA_RAILS);
	if (out->count > OSU_NEZHA_RAILS)
		out->count = OSU_NEZHA_RAILS;
}

/* Before call `i` of a size and its warm-up: which way it goes.  N Z Z N N Z Z N ...: after an even number of
 * calls each way had as many, and each followed either way equally often. */
static void osu_nezha_turn(int i)
{
	if (!osu_nezha.wanted)
		return;
	osu_nezha.way = (i ^ i >> 1) & 1;
	MPI_Pcontrol(osu_nezha.way);
}

static void osu_nezha_before(void)
{
	if (osu_nezha.wanted)
		osu_nezha_read(&osu_nezha.before);
}

/* `counts`: it was no warm-up; `errors`: OSU's, counted from the start. */
static void osu_nezha_after(int counts, double seconds, int errors)
{
	struct osu_nezha_rails now;
	int way = osu_nezha.way;

	if (!osu_nezha.wanted)
		return;
	osu_nezha.errors[way] += errors - osu_nezha.errors_seen;
	osu_nezha.errors_seen = errors;
	if (!counts)
		return;
	osu_nezha.seconds[way] += seconds;
	osu_nezha.calls[way]++;
	if (way != OSU_NEZHA_ON)
		return;
	osu_nezha_read(&now);
	for (uint64_t r = 0; r < now.count; r++) {
		uint64_t had = r < osu_nezha.before.count ? osu_nezha.before.rail[r].bytes : 0;
		uint64_t sum = osu_nezha.sent.rail[r].bytes;

		osu_nezha.sent.rail[r] = now.rail[r];
		osu_nezha.sent.rail[r].bytes = sum + now.rail[r].bytes - had;
	}
	osu_nezha.sent.count = now.count;
}

/* Adds `from` to what `all` has of the same subnets; rails beyond the room for them are left out. */
static void osu_nezha_merge(struct osu_nezha_rails *all, const struct osu_nezha_rails *from)
{
	for (uint64_t r = 0; r < from->count; r++) {
		uint64_t at = 0;

		while (at < all->count && strcmp(all->rail[at].subnet, from->rail[r].subnet))
			at++;
		if (at < all->count)
			all->rail[at].bytes += from->rail[r].bytes;
		else if (at < OSU_NEZHA_RAILS)
			all->rail[all->count++] = from->rail[r];
	}
}

/* "SUBNET=BYTES,...", or "-" if nothing went over rails. */
static void osu_nezha_print_rails(const struct osu_nezha_rails *all, double calls)
{
	uint64_t sum = 0;

	for (uint64_t r = 0; r < all->count; r++)
		sum += all->rail[r].bytes;
	if (sum == 0)
		printf("-");
	for (uint64_t r = 0; sum && r < all->count; r++)
		printf("%s%s=%.0f", r ? "," : "", all->rail[r].subnet, (double)all->rail[r].bytes / calls);
}

static const char *osu_nezha_verdict(const int errors[2])
{
	if (errors[OSU_NEZHA_NATIVE] && errors[OSU_NEZHA_ON])
		return "Fail(both)";
	if (errors[OSU_NEZHA_NATIVE])
		return "Fail(native)";
	return errors[OSU_NEZHA_ON] ? "Fail(nezha)" : "Pass";
}

/* Collective, after the calls of a size: rank 0 prints the line, Nezha is switched on again.  Latencies are means
 * over calls and ranks, as OSU's are.  Returns the validation errors of all ranks, on all of them. */
static int osu_nezha_print(int rank, int size, int validate, MPI_Comm comm)
{
	double mine[2], mean[2] = {0, 0}, ranks = osu_nezha.ranks;
	int errors[2], bytes = sizeof(struct osu_nezha_rails);
	struct osu_nezha_rails *each = NULL, all;

	MPI_Pcontrol(1);
	for (int way = 0; way < 2; way++)
		mine[way] = osu_nezha.seconds[way] * 1e6 / (double)osu_nezha.calls[way] / ranks;
	if (rank == 0 && !(each = malloc((size_t)osu_nezha.ranks * sizeof(*each)))) {
		fprintf(stderr, "%s: no memory for the rails of %d ranks\n", OSU_NEZHA_OPTION, osu_nezha.ranks);
		MPI_Abort(comm, EXIT_FAILURE);
	}
	MPI_Reduce(mine, mean, 2, MPI_DOUBLE, MPI_SUM, 0, comm);
	MPI_Reduce(osu_nezha.errors, errors, 2, MPI_INT, MPI_SUM, 0, comm);
	MPI_Bcast(errors, 2, MPI_INT, 0, comm);
	MPI_Gather(&osu_nezha.sent, bytes, MPI_BYTE, each, bytes, MPI_BYTE, 0, comm);
	if (rank == 0) {
		memset(&all, 0, sizeof(all));
		for (int i = 0; i < osu_nezha.ranks; i++)
			osu_nezha_merge(&all, &each[i]);
		printf("%-10d%16.2f%16.2f%10.2f", size, mean[OSU_NEZHA_NATIVE], mean[OSU_NEZHA_ON],
		       mean[OSU_NEZHA_NATIVE] / mean[OSU_NEZHA_ON]);
		if (validate)
			printf("%17s", osu_nezha_verdict(errors));
		printf("  ");
		osu_nezha_print_rails(&all, ranks * (double)osu_nezha.calls[OSU_NEZHA_ON]);
		printf("\n");
		fflush(stdout);
		free(each);
	}
	for (int way = 0; way < 2; way++) {
		osu_nezha.seconds[way] = 0;
		osu_nezha.calls[way] = 0;
		osu_nezha.errors[way] = 0;
	}
	memset(&osu_nezha.sent, 0, sizeof(osu_nezha.sent));
	MPI_Barrier(comm);
	return errors[OSU_NEZHA_NATIVE] + errors[OSU_NEZHA_ON];
}

#endif
