/* SPDX-License-Identifier: BSD-3-Clause
 * A thread of a communicator that does the rails' part of a call while the caller is in the MPI library with the
 * library's part: the rails need no MPI. */
#ifndef NEZHA_PMPI_HELPER_H
#define NEZHA_PMPI_HELPER_H

struct nezha_helper;

/* What it is given to do; calls no MPI. */
typedef void nezha_helper_fn(void *argument);

/* NULL: there is no memory, or no thread is to be had. */
struct nezha_helper *nezha_helper_create(void);

/* Begins run(argument) on the thread; the last one must have been waited for. */
void nezha_helper_start(struct nezha_helper *helper, nezha_helper_fn *run, void *argument);

/* Waits for its end, and lets MPI progress meanwhile. */
void nezha_helper_wait(struct nezha_helper *helper);

/* Ends the thread, which has nothing to do.  NULL is allowed. */
void nezha_helper_destroy(struct nezha_helper *helper);

#endif
