/* SPDX-License-Identifier: BSD-3-Clause
 * NEZHA_CHECK=native: each result of the rails is compared with what the MPI library makes of the same call.  For debugging: the
 * library does every call once or twice more, and up to five vectors of memory are taken. */
#ifndef NEZHA_PMPI_VERIFY_H
#define NEZHA_PMPI_VERIFY_H

#include <mpi.h>
#include <stdint.h>

#include "tuning/types.h"

struct nezha_comm;

/* One call that is compared. */
struct nezha_verify {
	struct nezha_comm *comm;     /* its state */
	MPI_Comm handle;
	MPI_Datatype datatype;
	MPI_Op operation;
	enum nezha_type type;
	enum nezha_op op;
	int64_t count;
	const void *sendbuf;         /* may be MPI_IN_PLACE */
	const void *recvbuf;
	void *input;                 /* verify.c's own: a copy of what is reduced in place; owned */
};

/* Before the call: the fields but `input` are the caller's. */
void nezha_verify_begin(struct nezha_verify *verify);

/* After it, collective: `error` is how it ended on this rank.  An MPI error code: `error`; or, on all ranks if the results
 * differ on any, after a message that names the first element and the error handler; or, if a rank is lost, as attended.h says.
 * Where the call has failed since a rank is lost, nothing is compared. */
int nezha_verify_end(struct nezha_verify *verify, int error);

#endif
