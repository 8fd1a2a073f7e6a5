/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/pieces.h"

#include <limits.h>

#define TOGETHER 8               /* pieces under way; */
#define LEAST (128 * 1024)       /* bytes of one, or what starting it takes weighs.  See doc/design.md for what other numbers take */

/* Elements of a piece. */
static int64_t length_of(int64_t count, uint64_t size)
{
	int64_t length = (count + TOGETHER - 1) / TOGETHER, least = (int64_t)(LEAST / size);

	if (length < least)
		length = least;
	return length < INT_MAX ? length : INT_MAX;
}

static const void *moved(const void *in, uint64_t bytes)
{
	return in == MPI_IN_PLACE ? in : (const char *)in + bytes;
}

/* What was begun is waited for, whatever became of the others: the library writes to `out` until it is done. */
static int finish(MPI_Request *requests, int count, int error)
{
	for (int i = 0; i < count; i++) {
		int status = PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);

		if (error == MPI_SUCCESS)
			error = status;
	}
	return error;
}

int nezha_pieces_allreduce(const void *in, void *out, int64_t count, MPI_Datatype type, uint64_t size, MPI_Op op, MPI_Comm comm)
{
	int64_t length = length_of(count, size);
	int error = MPI_SUCCESS;

	for (int64_t done = 0; error == MPI_SUCCESS && done < count;) {
		MPI_Request requests[TOGETHER];
		int begun = 0;

		while (error == MPI_SUCCESS && begun < TOGETHER && done < count) {
			int64_t piece = count - done < length ? count - done : length;
			uint64_t at = (uint64_t)done * size;

			error = PMPI_Iallreduce(moved(in, at), (char *)out + at, (int)piece, type, op, comm, &requests[begun]);
			begun += error == MPI_SUCCESS;
			done += piece;
		}
		error = finish(requests, begun, error);
	}
	return error;
}
