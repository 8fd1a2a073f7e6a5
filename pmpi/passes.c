/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/passes.h"

#include <stdatomic.h>

#include "pmpi/buffers.h"
#include "pmpi/context.h"
#include "pmpi/run.h"
#include "tuning/model.h"

/* Of a thread's latest call that was looked at and went to the library; era 0: there is none. */
struct latest {
	MPI_Comm comm;
	int64_t count;
	MPI_Datatype datatype;
	MPI_Op operation;
	const void *caller;
	struct nezha_model *model;
	uint64_t bytes;
	uint64_t era;
};
static _Thread_local struct latest latest;

/* Ends with each nezha_passes_forget: a model that was remembered in an earlier one may be freed. */
static _Atomic uint64_t era = 1;

bool nezha_passes(const struct nezha_passes_call *call)
{
	struct latest *of = &latest;

	return of->count == call->count && of->comm == call->comm && of->datatype == call->datatype &&
	       of->operation == call->operation && of->caller == call->caller &&
	       of->era == atomic_load_explicit(&era, memory_order_acquire) && !nezha_run_inside &&
	       !nezha_buffers_bad(call->sendbuf, call->recvbuf, of->bytes) && nezha_model_passes(of->model, of->bytes);
}

void nezha_passes_remember(const struct nezha_mpi_call *call)
{
	/* What these want to know of each call, none that passes would tell. */
	if (nezha_context.report || nezha_context.trace || nezha_context.job.settings.check & NEZHA_CHECK_PLAN)
		return;
	latest = (struct latest){
		.comm = call->handle,
		.count = call->count,
		.datatype = (MPI_Datatype)call->words[3],
		.operation = (MPI_Op)call->words[4],
		.caller = call->caller,
		.model = call->model,
		.bytes = call->bytes,
		.era = era,
	};
}

void nezha_passes_forget(void)
{
	atomic_fetch_add(&era, 1);
}
