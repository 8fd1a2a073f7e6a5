/* SPDX-License-Identifier: BSD-3-Clause
 * The MPI library's allreduce of a vector in several nonblocking ones that are under way together: where the blocking one waits, as one
 * that sends and receives in turn does, another piece uses the network. */
#ifndef NEZHA_PMPI_NONBLOCKING_H
#define NEZHA_PMPI_NONBLOCKING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Collective over `comm`, on which the pieces come in the same order on all ranks; `count` (> 0) elements of `size` bytes, `type` and
 * `op` are MPI's own, `in` may be MPI_IN_PLACE.  Returns when all are done.  An MPI error code, after the error handler, which
 * may be called for each piece; the first one if several fail.  Open MPI in place takes memory for a copy; where there is none, this rank
 * leaves the others waiting.  readable: the host can read the vector.  If not, in place under Open MPI, the call is for the other ranks
 * alone: nothing is read of it or written to it. */
int nezha_nonblocking_allreduce(const void *in, void *out, int64_t count, MPI_Datatype type, uint64_t size, MPI_Op op, MPI_Comm comm,
                                bool readable);

#endif
