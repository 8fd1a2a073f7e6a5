/* SPDX-License-Identifier: BSD-3-Clause
 * An error handler that frees the communicator whose call has failed, some times.  For a job whose calls fail now and then, on all
 * ranks together (NEZHA_CHECK=native, with a fault that changes results). */
#include "tests/mpi/common.h"

#define COUNT (1 << 20)
#define FREED 3
#define CALLS 600

static MPI_Comm comm = MPI_COMM_NULL;
static int freed;

static void free_it(MPI_Comm *which, int *code, ...)
{
	(void)code;
	if (*which != comm)
		fail("the handler was called for another communicator");
	freed++;
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;
	float *in, *out;
	int calls;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	in = grab(COUNT * sizeof(*in));
	out = grab(COUNT * sizeof(*out));
	for (int i = 0; i < COUNT; i++)
		in[i] = (float)(i % 1021);
	MPI_Comm_create_errhandler(free_it, &handler);
	for (calls = 0; freed < FREED && calls < CALLS; calls++) {
		int before = freed, rc;

		watch(60, "a call");
		if (comm == MPI_COMM_NULL) {
			MPI_Comm_dup(MPI_COMM_WORLD, &comm);
			MPI_Comm_set_errhandler(comm, handler);
		}
		rc = MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
		if ((rc != MPI_SUCCESS) != (freed > before))
			fail("call %d returned %d, its handler was called %d times", calls, rc, freed - before);
	}
	if (freed < FREED)
		fail("of %d calls only %d failed", calls, freed);
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	MPI_Errhandler_free(&handler);
	return finish("freed");
}
