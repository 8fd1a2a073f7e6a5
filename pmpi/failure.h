/* SPDX-License-Identifier: BSD-3-Clause
 * An error of ours as MPI's: the communicator's error handler decides what becomes of it. */
#ifndef NEZHA_PMPI_FAILURE_H
#define NEZHA_PMPI_FAILURE_H

#include <mpi.h>

/* What `status` (NEZHA_ERR_*, logged before) is in MPI's terms: the error code with which the MPI call that this thread is in
 * shall end.  Its error handler waits for nezha_failure_tell. */
int nezha_failure(int status);

/* The end of that MPI call: invokes the error handler of `comm` if there was a failure; MPI_COMM_NULL: the communicator is gone
 * meanwhile, and nobody is told.  Nothing of ours is held then: the handler may free the communicator, end MPI, or leave by longjmp
 * or an exception. */
void nezha_failure_tell(MPI_Comm comm);

#endif
