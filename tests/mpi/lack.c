/* SPDX-License-Identifier: BSD-3-Clause
 * Something of the system is used up before the first call that would go to the rails, on one rank or on all: all ranks have to go to
 * the MPI library together, and the results are right.
 *   lack files SPARE RANKS       SPARE descriptors are left
 *   lack memory KIB RANKS        so much more address space
 *   lack length KIB RANKS        no file may be longer (RLIMIT_FSIZE)
 *   lack hosts LIBRARY RANKS     loads it: if it is a GPU's, nobody can tell that a buffer is the host's
 * RANKS: their numbers, with commas */
#include <dlfcn.h>
#include <sys/resource.h>

#include "tests/mpi/common.h"

#define COUNT 300001

static int x[COUNT];

/* The library makes its own connections and buffers on first need. */
static void warm_up(void)
{
	int *all = grab((size_t)world_size * sizeof *all), one = world_rank;

	MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++) {
		MPI_Bcast(x, COUNT, MPI_INT, i % world_size, MPI_COMM_WORLD);
		MPI_Reduce(world_rank ? x : MPI_IN_PLACE, x, COUNT, MPI_INT, MPI_BOR, 0, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(all);
}

static void limit(int what, rlim_t most)
{
	struct rlimit now;

	getrlimit(what, &now);
	now.rlim_cur = most;
	if (setrlimit(what, &now))
		fail("setrlimit: %s", strerror(errno));
}

/* What is used is given to nobody: the lowest free descriptor plus so many. */
static void limit_files(long spare)
{
	int lowest = dup(0);

	close(lowest);
	limit(RLIMIT_NOFILE, (rlim_t)(lowest + spare));
}

static void limit_memory(long kib)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld", &pages) != 1)
		fail("no statm");
	if (f)
		fclose(f);
	limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)kib * 1024);
}

static void load(const char *library)
{
	if (!dlopen(library, RTLD_NOW))
		fail("%s", dlerror());
}

static bool lacks(char *ranks)
{
	for (char *rank = strtok(ranks, ","); rank; rank = strtok(NULL, ","))
		if (number(rank, "RANKS", 0, 1000) == world_rank)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long much = 0;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc < 4)
		return 2;
	if (strcmp(what, "hosts"))
		much = number(argv[2], "how much", 0, 1 << 24);
	watch(60, "the library's own connections");
	warm_up();
	if (lacks(argv[3])) {
		if (!strcmp(what, "hosts"))
			load(argv[2]);
		else if (!strcmp(what, "files"))
			limit_files(much);
		else if (!strcmp(what, "memory"))
			limit_memory(much);
		else
			limit(RLIMIT_FSIZE, (rlim_t)much * 1024);
	}
	watch(60, "the reductions");
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < COUNT; i++)
			x[i] = world_rank * 3 + i % 101 + k;
		MPI_Allreduce(MPI_IN_PLACE, x, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < COUNT; i++)
			if (x[i] != world_size * (i % 101 + k) + 3 * world_size * (world_size - 1) / 2) {
				fail("element %d is %d", i, x[i]);
				break;
			}
	}
	return finish("lack");
}
