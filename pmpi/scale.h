/* SPDX-License-Identifier: BSD-3-Clause
 * How large a communicator is, known without talking: rank 0 told all which process is on which node. */
#ifndef NEZHA_PMPI_SCALE_H
#define NEZHA_PMPI_SCALE_H

#include <mpi.h>

#include "tuning/plan.h"

/* The scale of a valid intracommunicator, the same on all of its ranks.  NEZHA_ERR_UNSUPPORTED if it
 * reaches outside of MPI_COMM_WORLD (spawned or connected processes), NEZHA_ERR_NOMEM. */
int nezha_scale_find(MPI_Comm comm, struct nezha_scale *out);

/* The node of each of its `size` ranks, as numbers from 0 on without a gap.  Errors as above. */
int nezha_scale_nodes(MPI_Comm comm, int size, int *node);

#endif
