/* SPDX-License-Identifier: BSD-3-Clause
 * An error handler that does not come back, as where it throws an exception, some times; then the communicator is left to the MPI
 * library, and works on.  For a job whose calls fail now and then, on all ranks together (NEZHA_CHECK=native, with a fault that
 * changes results). */
#include <setjmp.h>

#include "tests/mpi/common.h"

#define COUNT (1 << 20)
#define THROWN 3
#define CALLS 600

static jmp_buf back;

static void throw_it(MPI_Comm *which, int *code, ...)
{
	(void)which, (void)code;
	longjmp(back, 1);
}

/* Whether the call has failed. */
static bool reduce(const float *in, float *out, MPI_Comm comm)
{
	if (setjmp(back))
		return true;
	MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
	return false;
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;
	int thrown = 0, calls;
	float *in, *out;
	MPI_Comm comm;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	in = grab(COUNT * sizeof(*in));
	out = grab(COUNT * sizeof(*out));
	for (int i = 0; i < COUNT; i++)
		in[i] = (float)(i % 1021);
	MPI_Comm_create_errhandler(throw_it, &handler);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, handler);
	for (calls = 0; thrown < THROWN && calls < CALLS; calls++) {
		watch(60, "a call");
		thrown += reduce(in, out, comm);
	}
	if (thrown < THROWN)
		fail("of %d calls only %d failed", calls, thrown);
	leave_to_library(comm);
	for (calls = 0; calls < 60; calls++)
		if (reduce(in, out, comm) || out[5] != (float)(5 * world_size))
			fail("call %d of the library's failed", calls);
	MPI_Comm_free(&comm);
	MPI_Errhandler_free(&handler);
	return finish("thrown");
}
