/* SPDX-License-Identifier: BSD-3-Clause
 * At the end of MPI_Init every rank tells rank 0 of MPI_COMM_WORLD that it has Nezha, and gets the job
 * from it. */
#ifndef NEZHA_PMPI_ANNOUNCE_H
#define NEZHA_PMPI_ANNOUNCE_H

#include "pmpi/job.h"

/* Collective over MPI_COMM_WORLD as far as its ranks have Nezha; takes no longer than the settings'
 * open_timeout (a little more on the other ranks than on rank 0).  On success `job` is the same on all
 * ranks.  Any failure was logged, once, and the job has to be aborted. */
int nezha_announce(struct nezha_job *job);

#endif
