/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/nonblocking.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/failure.h"
#include "tuning/status.h"

#define TOGETHER 8               /* pieces under way */
#define LEAST (128 * 1024)       /* bytes of a piece: of less the start weighs */
#define MOST (1 << 30)           /* elements of a piece: their number is an int */

/* In place Open MPI's nonblocking allreduce is a tree, which takes three times as long as its ring (4.1, 4 nodes, 16 MiB: 1116 and 355 ms). */
#ifdef OPEN_MPI
#define COPIES true
#else
#define COPIES false
#endif

/* Elements of a piece. */
static int64_t length_of(int64_t count, uint64_t size)
{
	int64_t length = (count + TOGETHER - 1) / TOGETHER, least = (int64_t)(LEAST / size);

	if (length < least)
		length = least;
	return length < MOST ? length : MOST;
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

/* A vector and where its pieces are sent from. */
struct vector {
	const void *in;         /* may be MPI_IN_PLACE */
	char *out;
	char *copy;             /* takes a copy of each piece of `out`, to be sent; NULL: not wanted */
	bool single;            /* `copy` has the bytes of one piece: one is under way at a time */
	char *sink;             /* gets each piece's result, which nobody wants; NULL: `out` does */
};

static const void *source(const struct vector *vector, uint64_t at, uint64_t bytes)
{
	if (vector->sink)
		return vector->copy;
	if (vector->copy)
		return memcpy(vector->copy + (vector->single ? 0 : at), vector->out + at, bytes);
	return vector->in == MPI_IN_PLACE ? vector->in : (const char *)vector->in + at;
}

static int reduce(const struct vector *vector, int64_t count, MPI_Datatype type, uint64_t size, MPI_Op op, MPI_Comm comm)
{
	int64_t length = length_of(count, size);
	int error = MPI_SUCCESS, together = vector->single ? 1 : TOGETHER;

	for (int64_t done = 0; error == MPI_SUCCESS && done < count;) {
		MPI_Request requests[TOGETHER];
		int begun = 0;

		while (error == MPI_SUCCESS && begun < together && done < count) {
			int64_t piece = count - done < length ? count - done : length;
			uint64_t at = (uint64_t)done * size;

			error = PMPI_Iallreduce(source(vector, at, (uint64_t)piece * size), vector->sink ? vector->sink : vector->out + at,
			                        (int)piece, type, op, comm, &requests[begun]);
			begun += error == MPI_SUCCESS;
			done += piece;
		}
		error = finish(requests, begun, error);
	}
	return error;
}

/* Where there is no memory for all of it, for one piece at least: the pieces are the same, and the other ranks, which wait for them, need
 * not know. */
static bool make_copy(struct vector *vector, int64_t count, uint64_t size)
{
	vector->copy = malloc((size_t)count * size);
	vector->single = !vector->copy;
	if (vector->single)
		vector->copy = malloc((size_t)length_of(count, size) * size);
	return vector->copy;
}

/* What only a device can read cannot be copied, and in place it would be reduced in another way than the other ranks' copies are.  The call
 * has failed already: any bytes will do for them. */
static bool make_sink(struct vector *vector, int64_t count, uint64_t size)
{
	size_t piece = (size_t)length_of(count, size) * size;

	vector->single = true;
	vector->copy = calloc(2, piece);
	if (vector->copy)
		vector->sink = vector->copy + piece;
	return vector->copy;
}

int nezha_nonblocking_allreduce(const void *in, void *out, int64_t count, MPI_Datatype type, uint64_t size, MPI_Op op, MPI_Comm comm,
                                bool readable)
{
	struct vector vector = { .in = in, .out = out };
	int error;

	if (COPIES && in == MPI_IN_PLACE && !(readable ? make_copy(&vector, count, size) : make_sink(&vector, count, size)))
		return nezha_failure(NEZHA_ERR_NOMEM);
	error = reduce(&vector, count, type, size, op, comm);
	free(vector.copy);
	return error;
}
