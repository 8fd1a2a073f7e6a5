// SPDX-License-Identifier: BSD-3-Clause
/*
 * hello.c - the smallest MPI job that shows what the lab promises of jobs.
 *
 *   hello [exit STATUS | sleep SECONDS]
 *
 * Each rank prints its host, two variables of its environment and the sum of all ranks over 4 MiB.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 20 };

static int mine[COUNT], sum[COUNT];

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "unset";
}

int main(int argc, char **argv)
{
	char host[64] = "";
	int rank, size, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	gethostname(host, sizeof(host) - 1);
	for (i = 0; i < COUNT; i++)
		mine[i] = rank + i;
	MPI_Allreduce(mine, sum, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d on %s sum %d GIVEN=%s CALLER=%s\n", rank, size, host,
	       sum[COUNT - 1] - size * (COUNT - 1), variable("LAB_TEST_GIVEN"), variable("LAB_TEST_CALLER"));
	fflush(stdout);
	if (argc > 2 && strcmp(argv[1], "sleep") == 0)
		sleep(atoi(argv[2]));
	MPI_Finalize();
	return argc > 2 && strcmp(argv[1], "exit") == 0 ? atoi(argv[2]) : 0;
}
