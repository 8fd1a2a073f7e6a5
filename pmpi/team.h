/* SPDX-License-Identifier: BSD-3-Clause
 * Opening the rails for a communicator. */
#ifndef NEZHA_PMPI_TEAM_H
#define NEZHA_PMPI_TEAM_H

#include <mpi.h>

struct nezha_comm;

/* Collective over `handle`, in its first call that the table sends to the rails: either comm->team is
 * open on all ranks, or the communicator has been retired on all of them, for the same reason.  An MPI
 * error code: then MPI's own error handler has run. */
int nezha_team_open(MPI_Comm handle, struct nezha_comm *comm);

#endif
