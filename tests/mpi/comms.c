/* SPDX-License-Identifier: BSD-3-Clause
 * Communicators opened, used and freed in great numbers must leave neither memory nor descriptors behind.
 *   comms [-n COMMUNICATORS] [-l ALIVE_AT_ONCE] [-m BYTES] [-g KIB_OF_GROWTH_ALLOWED] */
#include <dirent.h>
#include <getopt.h>

#include "tests/mpi/common.h"

#define ALIVE_MAX 1000

static long resident_kib(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static long count_entries(const char *path)
{
	long n = 0;
	DIR *dir = opendir(path);

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Makes and frees `n` communicators, `alive` of them at a time; duplicates and, every fourth time, halves. */
static void churn(long n, int alive, int *buffer, int elements)
{
	static MPI_Comm comms[ALIVE_MAX];

	for (long done = 0; done < n; done += alive) {
		watch(60, "a batch of communicators");
		for (int i = 0; i < alive; i++) {
			int size, rank;

			if (i % 4 == 3)
				MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comms[i]);
			else
				MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
			MPI_Comm_size(comms[i], &size);
			MPI_Comm_rank(comms[i], &rank);
			for (int k = 0; k < elements; k++)
				buffer[k] = rank + k;
			MPI_Allreduce(MPI_IN_PLACE, buffer, elements, MPI_INT, MPI_SUM, comms[i]);
			for (int k = 0; k < elements; k++)
				if (buffer[k] != size * (size - 1) / 2 + size * k) {
					fail("communicator %ld: element %d is %d", done + i, k, buffer[k]);
					break;
				}
		}
		for (int i = 0; i < alive; i++)
			MPI_Comm_free(&comms[i]);
	}
}

int main(int argc, char **argv)
{
	long n = 1000, alive = 50, bytes = 65536, growth = 4096;
	long before[3], after[3];
	int option, *buffer;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	while ((option = getopt(argc, argv, "n:l:m:g:")) != -1)
		switch (option) {
		case 'n': n = number(optarg, "-n", 1, 10000000); break;
		case 'l': alive = number(optarg, "-l", 1, ALIVE_MAX); break;
		case 'm': bytes = number(optarg, "-m", 4, 1 << 28); break;
		case 'g': growth = number(optarg, "-g", 0, 1 << 30); break;
		default: return 2;
		}
	buffer = grab((size_t)bytes);
	/* the first tenth fills pools and caches of both libraries */
	churn(n / 10 > alive ? n / 10 : alive, (int)alive, buffer, (int)(bytes / 4));
	before[0] = resident_kib();
	before[1] = count_entries("/proc/self/fd");
	before[2] = count_entries("/proc/self/task");
	churn(n, (int)alive, buffer, (int)(bytes / 4));
	after[0] = resident_kib();
	after[1] = count_entries("/proc/self/fd");
	after[2] = count_entries("/proc/self/task");
	printf("rank %d: %ld communicators, KiB %ld -> %ld, descriptors %ld -> %ld, threads %ld -> %ld\n",
	       world_rank, n, before[0], after[0], before[1], after[1], before[2], after[2]);
	if (after[0] - before[0] > growth)
		fail("memory grew by %ld KiB over %ld communicators, allowed are %ld", after[0] - before[0],
		     n, growth);
	if (after[1] > before[1])
		fail("%ld descriptors are left", after[1] - before[1]);
	if (after[2] > before[2])
		fail("%ld threads are left", after[2] - before[2]);
	free(buffer);
	return finish("comms");
}
