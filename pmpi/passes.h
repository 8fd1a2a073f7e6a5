/* SPDX-License-Identifier: BSD-3-Clause
 * Calls that need no look, since it is known before that they are the library's: of a small class for which the model has chosen
 * it, most are, as long as a thread goes on with the arguments of its latest call.  To look at such a call takes some 0.6 us, and costs
 * more where its caches are full of other things. */
#ifndef NEZHA_PMPI_PASSES_H
#define NEZHA_PMPI_PASSES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct nezha_mpi_call;

/* A call's arguments, and where it comes from. */
struct nezha_passes_call {
	const void *sendbuf, *recvbuf;
	int64_t count;
	MPI_Datatype datatype;
	MPI_Op operation;
	MPI_Comm comm;
	const void *caller;
};

/* Whether the call goes to the library unseen: then the model has counted it.  A call that is looked at would be counted as well, since
 * ranks differ in which they look at. */
bool nezha_passes(const struct nezha_passes_call *call);

/* The call was looked at, and goes to the library because of its model. */
void nezha_passes_remember(const struct nezha_mpi_call *call);

/* What threads remember may hold no longer: a communicator's state is going, or the settings have changed. */
void nezha_passes_forget(void);

#endif
