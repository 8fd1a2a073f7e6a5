/* SPDX-License-Identifier: BSD-3-Clause
 * A program that starts others (MPI_Comm_spawn): two jobs, each with its own MPI_COMM_WORLD; communicators of both are none of the rails'. */
#include "tests/mpi/common.h"

#define COUNT (1 << 19)
#define CALLS 5
#define CHILDREN 3

/* The sum of what the `size` ranks of an intracommunicator bring: element i of rank r is r + i % 13. */
static void reduce(MPI_Comm comm, const char *what)
{
	int32_t *in = grab(COUNT * sizeof(*in)), *out = grab(COUNT * sizeof(*out));
	int rank, size, wrong = 0;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < COUNT; i++)
		in[i] = rank + i % 13;
	for (int call = 0; call < CALLS; call++) {
		watch(60, what);
		memset(out, 0, COUNT * sizeof(*out));
		MPI_Allreduce(in, out, COUNT, MPI_INT32_T, MPI_SUM, comm);
		for (int i = 0; i < COUNT; i++)
			wrong += out[i] != size * (size - 1) / 2 + size * (i % 13);
	}
	if (wrong)
		fail("%s: %d elements are wrong", what, wrong);
	free(in);
	free(out);
}

/* Over an intercommunicator each side gets the other's sum. */
static void reduce_across(MPI_Comm across)
{
	int32_t *in = grab(COUNT * sizeof(*in)), *out = grab(COUNT * sizeof(*out));
	int others, wrong = 0;

	MPI_Comm_remote_size(across, &others);
	for (int i = 0; i < COUNT; i++)
		in[i] = 1;
	watch(60, "a call across");
	MPI_Allreduce(in, out, COUNT, MPI_INT32_T, MPI_SUM, across);
	for (int i = 0; i < COUNT; i++)
		wrong += out[i] != others;
	if (wrong)
		fail("across: %d elements are wrong", wrong);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	MPI_Comm parent, across, both;
	bool child;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_get_parent(&parent);
	child = parent != MPI_COMM_NULL;
	across = parent;
	watch(60, "MPI_Comm_spawn");
	if (!child)
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &across, MPI_ERRCODES_IGNORE);
	reduce(MPI_COMM_WORLD, child ? "the children's world" : "the parents' world");
	reduce_across(across);
	MPI_Intercomm_merge(across, child, &both);
	reduce(both, "both worlds");
	reduce(MPI_COMM_WORLD, child ? "the children's world again" : "the parents' world again");
	MPI_Comm_free(&both);
	watch(60, "MPI_Comm_disconnect");
	MPI_Comm_disconnect(&across);
	return finish(child ? "child" : "family");
}
