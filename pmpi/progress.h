/* SPDX-License-Identifier: BSD-3-Clause
 * MPI must progress while Nezha waits: a peer may be in a receive whose message this process has still
 * to push out before that peer comes to the allreduce. */
#ifndef NEZHA_PMPI_PROGRESS_H
#define NEZHA_PMPI_PROGRESS_H

/* A nezha_progress_fn: lets MPI do what it has to do, matching no message.  By the thread that is in the
 * call. */
void nezha_progress(void *context);

/* The calling thread is none of MPI's: from now on nezha_progress does nothing on it. */
void nezha_progress_never(void);

#endif
