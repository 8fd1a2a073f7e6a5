/* SPDX-License-Identifier: BSD-3-Clause
 * The MPI library's allreduce for our own comparisons, among ranks of which one may be lost: the library itself would wait for
 * that one for ever. */
#ifndef NEZHA_PMPI_ATTENDED_H
#define NEZHA_PMPI_ATTENDED_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct nezha_comm;

/* Collective over `handle`, whose state `comm` is; `count` elements, `op` is one of MPI's own.  An MPI error code, after the error
 * handler: also if the communicator's rails are open and show that a rank is lost, or has given a call up.  Then (and only
 * then) nezha_attended_lost(comm) holds, and the library may still touch `in` and `out`: they must not be freed. */
int nezha_attended_allreduce(struct nezha_comm *comm, MPI_Comm handle, const void *in, void *out, int64_t count,
                             MPI_Datatype type, MPI_Op op);

/* Whether it is known that no call over the rails can be finished any more.  Attends to the rails for a moment. */
bool nezha_attended_lost(struct nezha_comm *comm);

#endif
