/* SPDX-License-Identifier: BSD-3-Clause
 * Memory fails once on a rank (nomemory.c): the first allocation that a communicator's first calls make, the second, and so on, each
 * time with a communicator of its own, until they make no more.  Whatever fails, no rank hangs, a call that ends well is right,
 * and the calls after one that ends well do.
 *   scarce RANK */
#include <dlfcn.h>

#include "tests/mpi/common.h"

#define COUNT 300001
#define CALLS 2
#define SECONDS 20        /* for one communicator */

static int x[COUNT];
static void (*arm)(long n);
static bool (*spent)(void);

static bool one_call(MPI_Comm comm, int k)
{
	for (int i = 0; i < COUNT; i++)
		x[i] = world_rank * 3 + i % 101 + k;
	if (MPI_Allreduce(MPI_IN_PLACE, x, COUNT, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS)
		return false;
	for (int i = 0; i < COUNT; i++)
		if (x[i] != world_size * (i % 101 + k) + 3 * world_size * (world_size - 1) / 2) {
			fail("element %d of call %d is %d", i, k, x[i]);
			break;
		}
	return true;
}

/* The n-th allocation fails.  How many ranks' calls all went well; *failed: whether there was such an allocation. */
static int one_lack(int rank, long n, bool *failed)
{
	int well = 1, all = 0, now = 0;
	MPI_Comm comm;

	watch(SECONDS, "a communicator with a failing allocation");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (world_rank == rank)
		arm(n);
	for (int k = 0; k < CALLS && well; k++)
		well = one_call(comm, k);
	if (world_rank == rank) {
		now = spent();
		arm(0);
	}
	MPI_Comm_free(&comm);
	MPI_Bcast(&now, 1, MPI_INT, rank, MPI_COMM_WORLD);
	MPI_Reduce(&well, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	*failed = now;
	return all;
}

int main(int argc, char **argv)
{
	int rank, lacks = 0, errors = 0;
	bool failed = true;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	rank = argc > 1 ? (int)number(argv[1], "RANK", 0, world_size - 1) : 0;
	*(void **)&arm = dlsym(RTLD_DEFAULT, "nomemory_arm");
	*(void **)&spent = dlsym(RTLD_DEFAULT, "nomemory_spent");
	if (!arm || !spent)
		fail("nomemory.so is not preloaded");
	for (long n = 1; arm && spent && failed; n++) {
		int well = one_lack(rank, n, &failed);

		lacks += failed;
		if (well == world_size)
			continue;
		errors++;
		if (!failed)
			fail("nothing failed, and %d of %d ranks had errors", world_size - well, world_size);
		else if (!world_rank)
			printf("allocation %ld: %d of %d ranks had an error\n", n, world_size - well, world_size);
	}
	if (!world_rank)
		printf("%d allocations failed, %d of them with an error\n", lacks, errors);
	return finish("scarce");
}
