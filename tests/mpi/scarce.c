/* SPDX-License-Identifier: BSD-3-Clause
 * Memory fails once on a rank (nomemory.c), in the first calls of a communicator.  Whatever fails, no rank hangs, a call ends well on
 * all ranks or on none, and one that ends well is right.
 *   scarce RANK       the first allocation of a communicator fails, the second of another one, and so on until they make no more
 *   scarce RANK N     the N-th one of the process's first such communicator, with which the rails are opened */
#include <dlfcn.h>

#include "tests/mpi/common.h"

#define COUNT 300001
#define CALLS 2
#define SECONDS 20        /* for one communicator */
#define FREE_ROUNDS 3     /* without a failure: how many allocations there are depends on who is early */

static int x[COUNT];
static bool (*arm)(long n), (*spent)(void);

static bool call(MPI_Comm comm, int k)
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

/* Whether it ended well, which all ranks must agree on. */
static bool call_alike(MPI_Comm comm, int k)
{
	int well = call(comm, k), all = 0;

	MPI_Reduce(&well, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (all && all != world_size)
		fail("call %d ended well on %d of %d ranks", k, all, world_size);
	return all;
}

/* The n-th allocation fails.  Whether the calls went well; *failed: whether there was such an allocation. */
static bool lack(int rank, long n, bool *failed)
{
	int now = 0;
	bool well = true;
	MPI_Comm comm;

	watch(SECONDS, "a communicator with a failing allocation");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (world_rank == rank && !arm(n))
		fail("there is no backend of Nezha's");
	for (int k = 0; k < CALLS && well; k++)
		well = call_alike(comm, k);
	if (world_rank == rank) {
		now = spent();
		arm(0);
	}
	MPI_Comm_free(&comm);
	MPI_Bcast(&now, 1, MPI_INT, rank, MPI_COMM_WORLD);
	*failed = now;
	if (!well && !*failed)
		fail("no allocation failed, but a call did");
	return well;
}

/* All ranks end together, or none. */
static bool all_good(void)
{
	int mine = failures, all = 0;

	MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return !all;
}

static void lack_in_turn(int rank)
{
	int lacks = 0, errors = 0, free_rounds = 0;
	bool failed;

	for (long n = 1; free_rounds < FREE_ROUNDS && all_good(); n++) {
		errors += !lack(rank, n, &failed);
		lacks += failed;
		free_rounds = failed ? 0 : free_rounds + 1;
	}
	if (!world_rank)
		printf("%d allocations failed, %d of them with an error\n", lacks, errors);
}

static void lack_once(int rank, long n)
{
	bool failed, well = lack(rank, n, &failed);

	if (!world_rank)
		printf("%d allocations failed, %d of them with an error\n", failed, !well);
}

int main(int argc, char **argv)
{
	int rank;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc < 2)
		return 2;
	rank = (int)number(argv[1], "RANK", 0, world_size - 1);
	*(void **)&arm = dlsym(RTLD_DEFAULT, "nomemory_arm");
	*(void **)&spent = dlsym(RTLD_DEFAULT, "nomemory_spent");
	if (!arm || !spent)
		fail("nomemory.so is not preloaded");
	else if (argc > 2)
		lack_once(rank, number(argv[2], "N", 1, 1000000));
	else
		lack_in_turn(rank);
	return finish("scarce");
}
