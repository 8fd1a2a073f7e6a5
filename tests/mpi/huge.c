/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors of more than 2 GiB, in place, checked against the sum that every rank can work out itself: an int
 * count whose bytes pass 2^31 and, where the library has MPI_Allreduce_c, a count that passes it too.
 * Skipped (77) when memory is short.   huge [-r RANKS_ON_THIS_HOST] */
#include <getopt.h>

#include "tests/mpi/common.h"
#include "tests/mpi/values.h"

#define PERIOD ((size_t)1000003) /* elements that repeat: a prime, so that no block or piece of a call begins where another one does */

/* Fills the vector of a rank. */
static void fill(unsigned char *buf, size_t n, struct value_kind kind, enum value_op op, int rank)
{
	size_t period = PERIOD * (size_t)kind.size, bytes = n * (size_t)kind.size;

	values_fill(buf, 0, PERIOD, kind, op, 7, rank);
	for (size_t at = period; at < bytes; at += period)
		memcpy(buf + at, buf, bytes - at < period ? bytes - at : period);
}

/* What all ranks together make of one period. */
static void fold_period(uint8_t *fold, struct value_kind kind, enum value_op op)
{
	static uint8_t one[PERIOD * 4];

	values_fill(fold, 0, PERIOD, kind, op, 7, 0);
	for (int r = 1; r < world_size; r++) {
		values_fill(one, 0, PERIOD, kind, op, 7, r);
		for (size_t i = 0; i < PERIOD; i++)
			if (kind.size == 4)
				((uint32_t *)fold)[i] += ((uint32_t *)one)[i];
			else if ((int8_t)one[i] > (int8_t)fold[i])
				fold[i] = one[i];
	}
}

/* The first element that is wrong, or n; `buf` holds what came out. */
static size_t check(const unsigned char *buf, size_t n, struct value_kind kind, enum value_op op)
{
	static uint8_t fold[PERIOD * 4];
	size_t size = (size_t)kind.size;

	fold_period(fold, kind, op);
	for (size_t first = 0; first < n; first += PERIOD) {
		size_t part = n - first < PERIOD ? n - first : PERIOD;

		if (!memcmp(fold, buf + first * size, part * size))
			continue;
		for (size_t i = 0; i < part * size; i++)
			if (fold[i] != buf[first * size + i])
				return first + i / size;
	}
	return n;
}

/* What programs can have: free memory, and what the page cache gives back, which is most of a machine's that has just built or copied
 * something.  In bytes; 0: unknown. */
static size_t available(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file) && sscanf(line, "MemAvailable: %lu kB", &kib) != 1)
		;
	if (file)
		fclose(file);
	return (size_t)kib << 10;
}

int main(int argc, char **argv)
{
	struct value_kind word = { 'i', 4, false }, byte = { 'i', 1, false };
	size_t n = ((size_t)1 << 29) + 1027, bytes = 4 * n, bad;
	unsigned char *buf = NULL;
	int option, local, enough, all;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	local = world_size;
	while ((option = getopt(argc, argv, "r:")) != -1) {
		if (option != 'r')
			return 2;
		local = (int)number(optarg, "-r", 1, 4096);
	}
	enough = available() > (size_t)(local + 1) * bytes;
	MPI_Reduce(&enough, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!all) {
		if (world_rank == 0)
			printf("skipped: %d ranks on a host need %zu MiB of memory\n", local, (size_t)(local + 1) * bytes >> 20);
		MPI_Finalize();
		return 77;
	}
	buf = grab(bytes);
	watch(280, "more than 2 GiB of int");
	fill(buf, n, word, OP_SUM, world_rank);
	if (MPI_Allreduce(MPI_IN_PLACE, buf, (int)n, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
		fail("MPI_Allreduce of %zu ints returned an error", n);
	bad = check(buf, n, word, OP_SUM);
	if (bad < n)
		fail("element %zu of %zu ints is wrong", bad, n);
#if MPI_VERSION >= 4
	watch(280, "more than 2^31 elements through MPI_Allreduce_c");
	n = bytes;
	fill(buf, n, byte, OP_MAX, world_rank);
	if (MPI_Allreduce_c(MPI_IN_PLACE, buf, (MPI_Count)n, MPI_INT8_T, MPI_MAX, MPI_COMM_WORLD))
		fail("MPI_Allreduce_c of %zu bytes returned an error", n);
	bad = check(buf, n, byte, OP_MAX);
	if (bad < n)
		fail("element %zu of %zu bytes is wrong", bad, n);
#else
	(void)byte;
#endif
	free(buf);
	return finish("huge");
}
