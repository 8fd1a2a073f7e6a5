/* SPDX-License-Identifier: BSD-3-Clause
 * What one MPI_Allreduce of 8 bytes costs on MPI_COMM_WORLD, in nanoseconds: the median and the least over
 * batches.  The driver runs it with and without the preload, in turn.
 *   price_bench [BATCHES [CALLS_IN_A_BATCH]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int rank, batches = argc > 1 ? atoi(argv[1]) : 1000, calls = argc > 2 ? atoi(argv[2]) : 200;
	double in = 1, out = 0, *time;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (batches < 1 || calls < 1 || !(time = malloc(sizeof(double) * (size_t)batches)))
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int b = -batches / 10; b < batches; b++) {
		double start = now_ns();

		for (int k = 0; k < calls; k++)
			MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (b >= 0)
			time[b] = (now_ns() - start) / calls;
	}
	qsort(time, (size_t)batches, sizeof(double), compare);
	if (rank == 0)
		printf("price %.1f %.1f\n", time[batches / 2], time[0]);
	free(time);
	MPI_Finalize();
	return 0;
}
