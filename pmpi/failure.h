/* SPDX-License-Identifier: BSD-3-Clause
 * An error of ours as MPI's: the communicator's error handler decides what becomes of it. */
#ifndef NEZHA_PMPI_FAILURE_H
#define NEZHA_PMPI_FAILURE_H

#include <mpi.h>

/* Invokes the error handler of `comm` with what `status` (NEZHA_ERR_*, logged before) is in MPI's terms,
 * and returns that error code, if the handler returns. */
int nezha_failure(MPI_Comm comm, int status);

#endif
