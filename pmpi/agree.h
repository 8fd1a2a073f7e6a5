/* SPDX-License-Identifier: BSD-3-Clause
 * NEZHA_CHECK=plan: all ranks of a communicator state model and plan before a call, and compare. */
#ifndef NEZHA_PMPI_AGREE_H
#define NEZHA_PMPI_AGREE_H

#include <mpi.h>
#include <stdint.h>

struct nezha_comm;
struct nezha_plan;

/* Compares, if the job is told to, the model of `comm`, the plan that this rank has for the call, and its bytes.
 * Collective over `handle`, by the MPI library; for planned calls that are not below the table's floor, which are the
 * same on all ranks.  MPI_SUCCESS: all agree, or there is nothing to compare.  Else an error code on all ranks, after
 * the ranks that differ from rank 0 have logged how, and the communicator's error handler has run: the call must not
 * be done. */
int nezha_agree(MPI_Comm handle, struct nezha_comm *comm, const struct nezha_plan *plan, uint64_t bytes);

#endif
