/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of one kind, one after another: with `few`, most go to the MPI library unseen, with `all` none do, with `first` none of rank 0
 * do.  A call that is looked at asks for its communicator's attribute, which is counted here.  Results are right, and what changes
 * meanwhile is heeded at once.  For a job whose MPI library has the far faster network. */
#include <dlfcn.h>

#include "tests/mpi/common.h"

#define COUNT 4096              /* floats, 16 KiB: the least that is looked at */
#define CALLS 2000

static int looks;

/* In place of the library's. */
int PMPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag)
{
	static int (*real)(MPI_Comm, int, void *, int *);

	looks++;
	if (!real)
		real = (int (*)(MPI_Comm, int, void *, int *))dlsym(RTLD_NEXT, "PMPI_Comm_get_attr");
	return real(comm, keyval, value, flag);
}

/* Returns how many of the calls were looked at. */
static int reduce(MPI_Comm comm, int calls)
{
	static float in[COUNT], out[COUNT];

	looks = 0;
	watch(100, "calls");
	for (int i = 0; i < calls; i++) {
		in[i % COUNT] = (float)(world_rank + i % 7);
		MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
		if (out[i % COUNT] != (float)(world_size * (world_size - 1) / 2 + world_size * (i % 7)))
			fail("call %d: %g", i, out[i % COUNT]);
	}
	return looks;
}

static void expect(const char *what, int seen, int least, int most)
{
	if (seen < least || seen > most)
		fail("%s: %d calls were looked at, %d to %d were expected", what, seen, least, most);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "few";
	int most, least;
	bool few;
	MPI_Comm comm, other;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	few = !strcmp(which, "few") || (!strcmp(which, "first") && world_rank > 0);
	most = few ? CALLS / 4 : CALLS;
	least = few ? 1 : CALLS;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	reduce(comm, CALLS);
	expect("the same again", reduce(comm, CALLS), least, most);

	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	expect("another communicator", reduce(other, 3), 3, 3);
	MPI_Comm_free(&other);
	expect("once it is freed", reduce(comm, 1), 1, 1);

	MPI_Pcontrol(0);
	expect("switched off", reduce(comm, 100), 0, few ? 0 : 100);
	MPI_Pcontrol(1);
	expect("switched on", reduce(comm, 1), 1, 1);
	expect("and on", reduce(comm, CALLS), least, most);

	/* The next one may have the same handle. */
	MPI_Comm_free(&comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	expect("a new communicator", reduce(comm, 3), 3, 3);
	reduce(comm, CALLS);

	leave_to_library(comm);
	expect("left to the library", reduce(comm, 100), 100, 100);
	MPI_Comm_free(&comm);
	return finish("passes");
}
