/* SPDX-License-Identifier: BSD-3-Clause
 * Waiting for requests of MPI with a time limit. */
#ifndef NEZHA_PMPI_PATIENCE_H
#define NEZHA_PMPI_PATIENCE_H

#include <mpi.h>
#include <stdint.h>

/* Waits until all are complete (then they are MPI_REQUEST_NULL), giving the core away while nothing comes.
 * NEZHA_ERR_TIMEOUT after `seconds`: those that are complete, and only those, are MPI_REQUEST_NULL.
 * NEZHA_ERR_SYSTEM: MPI reports an error. */
int nezha_patience_wait(MPI_Request *requests, int count, double seconds);

/* CLOCK_MONOTONIC in ns. */
uint64_t nezha_patience_now(void);

#endif
