/* SPDX-License-Identifier: BSD-3-Clause
 * A call that is planned, on its way: the library, the rails, or both. */
#ifndef NEZHA_PMPI_RUN_H
#define NEZHA_PMPI_RUN_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "tuning/model.h"
#include "tuning/plan.h"
#include "tuning/types.h"

/* One call, in C's terms. */
struct nezha_mpi_call {
	enum nezha_call kind;
	nezha_word words[6];                 /* as they came */
	const void *sendbuf;
	void *recvbuf;
	int64_t count;
	MPI_Comm handle;
	const void *caller;
	enum nezha_type type;
	enum nezha_op op;
	uint64_t bytes;                      /* of the vector; 0 where the type is not known */
	struct nezha_comm *comm;             /* NULL: not looked up */
	struct nezha_plan plan;
	struct nezha_model *model;           /* learns of the call; NULL: none */
	struct nezha_choice choice;          /* the model's */
	struct nezha_model_times times;      /* what the parts took */
	uint64_t staged;                     /* ns that copies from and to other memory than the host's take */
};

/* Whether this thread is in a call of ours: what MPI calls from within is MPI's. */
extern _Thread_local bool nezha_run_inside;

/* Does the call, as call->plan has it; for the model and the report it is timed.  An MPI error code, which the communicator's error
 * handler has been told of. */
int nezha_run(struct nezha_mpi_call *call);

#endif
