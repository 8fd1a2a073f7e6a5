/* SPDX-License-Identifier: BSD-3-Clause
 * The plainest C program: the same two reductions as the Fortran and Python ones.
 *   plain [CALLS [dup|FOLDER]]    so many times, with dup on a communicator that is freed then, or after it has gone to
 *                                 another folder; prints "plain: passed" */
#include <unistd.h>

#include "tests/mpi/common.h"

#define N 300001

static float x[N], y[N];
static long k[N];

int main(int argc, char **argv)
{
	long calls = argc > 1 ? number(argv[1], "CALLS", 1, 1000000) : 1;
	MPI_Comm comm = MPI_COMM_WORLD;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc > 2 && !strcmp(argv[2], "dup"))
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	else if (argc > 2 && chdir(argv[2]))
		fail("%s: no such folder", argv[2]);
	watch(120, "the reductions");
	for (long c = 0; c < calls; c++) {
		for (int i = 0; i < N; i++) {
			x[i] = (float)(world_rank + i % 97);
			k[i] = world_rank * 3 + i % 101;
		}
		MPI_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, comm);
		MPI_Allreduce(MPI_IN_PLACE, k, N, MPI_LONG, MPI_MAX, comm);
		for (int i = 0; i < N; i++)
			if (y[i] != (float)(world_size * (world_size - 1) / 2 + world_size * (i % 97)) ||
			    k[i] != (world_size - 1) * 3 + i % 101) {
				fail("element %d is %g or %ld", i, (double)y[i], k[i]);
				break;
			}
	}
	if (comm != MPI_COMM_WORLD)
		MPI_Comm_free(&comm);
	return finish("plain");
}
