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
#define PLACES 64
#define FREE_ROUNDS 3     /* without a failure: how many allocations there are depends on who is early */

/* Places in Nezha's code. */
struct places {
	unsigned long at[PLACES];
	int count;
};

static int x[COUNT];
static bool (*arm)(long n);
static uintptr_t (*site)(void);

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

/* The n-th allocation fails.  Whether the calls went well; *where: the place in the code that asked for it, 0 if there was none. */
static bool lack(int rank, long n, unsigned long *where)
{
	bool well = true;
	MPI_Comm comm;

	watch(SECONDS, "a communicator with a failing allocation");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (world_rank == rank && !arm(n))
		fail("there is no backend of Nezha's");
	for (int k = 0; k < CALLS && well; k++)
		well = call_alike(comm, k);
	*where = 0;
	if (world_rank == rank) {
		*where = site();
		arm(0);
	}
	MPI_Comm_free(&comm);
	MPI_Bcast(where, 1, MPI_UNSIGNED_LONG, rank, MPI_COMM_WORLD);
	if (!well && !*where)
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

/* Adds a place to those that an error came from, each once.  The service thread allocates, too, when a peer calls or more is to be
 * polled, so that one place may be the n-th of a communicator and the n+1-st of the next, and fail twice. */
static void note(struct places *places, unsigned long where)
{
	for (int i = 0; i < places->count; i++)
		if (places->at[i] == where)
			return;
	if (places->count < PLACES)
		places->at[places->count++] = where;
}

static void tell(int lacks, const struct places *errors)
{
	if (!world_rank)
		printf("%d allocations failed, at %d places with an error\n", lacks, errors->count);
}

static void lack_in_turn(int rank)
{
	struct places errors = {0};
	int lacks = 0, free_rounds = 0;
	unsigned long where;

	for (long n = 1; free_rounds < FREE_ROUNDS && all_good(); n++) {
		if (!lack(rank, n, &where))
			note(&errors, where);
		lacks += where != 0;
		free_rounds = where ? 0 : free_rounds + 1;
	}
	tell(lacks, &errors);
}

static void lack_once(int rank, long n)
{
	struct places errors = {0};
	unsigned long where;

	if (!lack(rank, n, &where))
		note(&errors, where);
	tell(where != 0, &errors);
}

int main(int argc, char **argv)
{
	int rank;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc < 2)
		return 2;
	rank = (int)number(argv[1], "RANK", 0, world_size - 1);
	*(void **)&arm = dlsym(RTLD_DEFAULT, "nomemory_arm");
	*(void **)&site = dlsym(RTLD_DEFAULT, "nomemory_site");
	if (!arm || !site)
		fail("nomemory.so is not preloaded");
	else if (argc > 2)
		lack_once(rank, number(argv[2], "N", 1, 1000000));
	else
		lack_in_turn(rank);
	return finish("scarce");
}
