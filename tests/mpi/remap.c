/* SPDX-License-Identifier: BSD-3-Clause
 * remap CALLS [BYTES [GO]]: allreduces of up to BYTES (256 KiB) on buffers that are mapped anew for each call, at the same addresses if
 * the kernel has them: unmapped and mapped, laid over, or emptied by madvise.  Results are right, and between the first
 * tenth of the calls and the last one the process gains neither memory nor descriptors.  Says "remap: warm" and "remap: last" then,
 * and goes on when there is a file GO.warm or GO.last, so that who looks at it from outside has the time to. */
#include <dirent.h>
#include <sys/mman.h>

#include "common.h"

#define GROWTH (1l << 20)       /* bytes that an MPI library's pools may take meanwhile */

static size_t room = 256 << 10;

struct holdings {
	long bytes;             /* resident */
	int descriptors;
};

static struct holdings look(void)
{
	struct holdings seen = { 0, 0 };
	FILE *file = fopen("/proc/self/statm", "re");
	DIR *directory = opendir("/proc/self/fd");
	long all;

	if (!file || fscanf(file, "%ld %ld", &all, &seen.bytes) != 2 || !directory) {
		fail("/proc cannot be read");
		return seen;
	}
	seen.bytes *= sysconf(_SC_PAGESIZE);
	while (readdir(directory))
		seen.descriptors++;
	fclose(file);
	closedir(directory);
	return seen;
}

/* New pages where the old ones lay, in one of three ways. */
static void remap(float **at, int how)
{
	void *old = *at;

	if (old && how == 2 && !madvise(old, room, MADV_DONTNEED))
		return;
	if (old && how == 0)
		munmap(old, room);
	*at = mmap(old, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (old && how ? MAP_FIXED : 0), -1, 0);
	if (*at == MAP_FAILED) {
		fprintf(stderr, "rank %d: no memory for %zu bytes\n", world_rank, room);
		exit(2);
	}
}

static float value(int rank, int i, int k)
{
	return (float)((i % 500 * 31 + k % 1021) * (rank + 1));
}

static void check(const float *sums, int count, int i)
{
	for (int k = 0; k < count; k++) {
		float sum = 0;

		for (int rank = 0; rank < world_size; rank++)
			sum += value(rank, i, k);
		if (sums[k] != sum) {
			fail("call %d, element %d of %d: %g instead of %g", i, k, count, (double)sums[k], (double)sum);
			return;
		}
	}
}

static void call(float **sums, float **values, int i)
{
	int most = (int)(room / sizeof(float)), count = most / 4 + (int)((unsigned)i * 7919u % (unsigned)(most - most / 4));
	bool in_place = i % 4 == 3;
	float *from;

	remap(sums, i % 3);
	remap(values, i / 3 % 3);
	from = in_place ? *sums : *values;
	for (int k = 0; k < count; k++)
		from[k] = value(world_rank, i, k);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : from, *sums, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	check(*sums, count, i);
}

/* Still until the file GO.when is there, if GO is given. */
static void pause_at(const char *go, const char *when)
{
	char path[4096];

	if (world_rank == 0) {
		printf("remap: %s\n", when);
		snprintf(path, sizeof path, "%s.%s", go ? go : "", when);
		while (go && access(path, F_OK) != 0)
			usleep(10000);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	const char *go = argc > 3 ? argv[3] : NULL;
	float *sums = NULL, *values = NULL;
	struct holdings before = { 0, 0 }, after;
	int calls;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	calls = (int)number(argc > 1 ? argv[1] : "1000", "CALLS", 10, 1000000);
	room = (size_t)number(argc > 2 ? argv[2] : "262144", "BYTES", 4096, 1 << 30);
	watch(600, "the calls");
	for (int i = 0; i < calls; i++) {
		if (i == calls / 10) {
			MPI_Barrier(MPI_COMM_WORLD);
			before = look();
			pause_at(go, "warm");
		}
		call(&sums, &values, i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	after = look();
	pause_at(go, "last");
	if (after.bytes - before.bytes > GROWTH)
		fail("%ld KiB more are resident", (after.bytes - before.bytes) / 1024);
	if (after.descriptors != before.descriptors)
		fail("%+d descriptors", after.descriptors - before.descriptors);
	if (world_rank == 0)
		printf("remap: %d calls, %+ld KiB\n", calls, (after.bytes - before.bytes) / 1024);
	return finish("remap");
}
