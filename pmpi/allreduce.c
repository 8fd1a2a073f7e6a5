/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Allreduce and MPI_Allreduce_c: which calls are ours, and how they are planned. */
#include <mpi.h>

#include "pmpi/agree.h"
#include "pmpi/buffers.h"
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/handles.h"
#include "pmpi/passes.h"
#include "pmpi/run.h"
#include "pmpi/team.h"
#include "tuning/model.h"

/* Programs call from few places, each of which is looked up once: that takes the loader's lock and goes through all objects. */
static bool is_from_library(const void *caller)
{
	const void *_Atomic *known = &nezha_context.outsiders[((uintptr_t)caller * 0x9e3779b97f4a7c15u) >> 58];

	if (caller == *known)
		return false;
	if (nezha_context.host->from_library(caller))
		return true;
	*known = caller;
	return false;
}

/* What the arguments say: NEZHA_REASON_RULE if nothing speaks against the rails.  Of the arguments only
 * those that are the same on all ranks decide, but for errors. */
static enum nezha_reason examine_arguments(struct nezha_mpi_call *call)
{
	enum nezha_reason reason;

	if (!nezha_context.on || nezha_run_inside)
		return NEZHA_REASON_STATE;
	reason = nezha_handles_match(&nezha_context.handles, (MPI_Datatype)call->words[3],
	                             (MPI_Op)call->words[4], &call->type, &call->op);
	if (reason != NEZHA_REASON_TYPE && call->count > 0)
		call->bytes = (uint64_t)call->count * nezha_type_size(call->type);
	if (nezha_context.paused || !nezha_context.job.settings.enable)
		return NEZHA_REASON_DISABLED;
	if (reason != NEZHA_REASON_RULE)
		return reason;
	if (call->count <= 0 || call->count > INT64_MAX / 8)
		return NEZHA_REASON_COUNT;
	if (call->handle == MPI_COMM_NULL || call->handle == MPI_COMM_SELF)
		return NEZHA_REASON_COMM;
	if (nezha_buffers_bad(call->sendbuf, call->recvbuf, call->bytes))
		return NEZHA_REASON_BUFFER;
	return is_from_library(call->caller) ? NEZHA_REASON_LIBRARY : NEZHA_REASON_RULE;
}

/* What was learnt from earlier calls of the communicator, if anything, in place of the built-in rule. */
static void use_model(struct nezha_mpi_call *call)
{
	/* What NEZHA_TUNE is for stays as it says. */
	if (!nezha_context.learning || call->plan.reason == NEZHA_REASON_TUNE)
		return;
	call->model = call->comm->model;
	if (!call->model)
		return;
	call->choice = nezha_model_choose(call->model, call->bytes, call->plan.block);
	if (call->choice.alg == NEZHA_ALG_RING)
		return;
	call->plan.alg = call->choice.alg;
	call->plan.reason = NEZHA_REASON_LEARNT;
	call->plan.native = call->choice.native;
	call->plan.nonblocking = call->choice.nonblocking;
	if (call->choice.alg == NEZHA_ALG_NATIVE)
		nezha_passes_remember(call);
}

/* Plans the call, and opens the rails when the first plan wants them.  An MPI error code. */
static int make_plan(struct nezha_mpi_call *call)
{
	struct nezha_comm *comm;
	int error = nezha_comm_find(call->handle, &call->comm);

	if (error != MPI_SUCCESS)
		return error;
	comm = call->comm;
	nezha_comm_hold(comm);
	if (comm->reason != NEZHA_REASON_RULE) {
		call->plan.reason = comm->reason;
		return MPI_SUCCESS;
	}
	nezha_plan_make(nezha_context.job.table, &comm->scale, call->bytes, &call->plan);
	if (call->plan.alg == NEZHA_ALG_NATIVE)
		return MPI_SUCCESS;
	if (!nezha_comm_is_open(comm))
		error = nezha_team_open(call->handle, comm);
	if (nezha_comm_is_open(comm))
		use_model(call);
	else
		call->plan = (struct nezha_plan){ .alg = NEZHA_ALG_NATIVE, .reason = comm->reason };
	return error;
}

/* A call that is not below the floor. */
static int consider(struct nezha_mpi_call *call)
{
	int error = MPI_SUCCESS;

	call->plan.reason = examine_arguments(call);
	if (call->plan.reason == NEZHA_REASON_RULE)
		error = make_plan(call);
	/* Below the floor, rank 0 plans alone, for its report. */
	if (error == MPI_SUCCESS && call->comm && call->bytes >= nezha_context.table_floor)
		error = nezha_agree(call->handle, call->comm, &call->plan, call->bytes);
	if (error != MPI_SUCCESS)
		return error;
	return nezha_run(call);
}

__attribute__((noinline)) static int look(enum nezha_call kind, int64_t count, const nezha_word words[6],
                                          nezha_word caller)
{
	struct nezha_mpi_call call = {
		.kind = kind,
		.words = { words[0], words[1], words[2], words[3], words[4], words[5] },
		.sendbuf = (const void *)words[0],
		.recvbuf = (void *)words[1],
		.count = count,
		.handle = (MPI_Comm)words[5],
		.caller = (const void *)caller,
		.plan = { .alg = NEZHA_ALG_NATIVE },
	};

	bool gone;
	int error;

	/* Before `on` is looked at: MPI_Finalize clears that before it counts for the last time. */
	atomic_fetch_add(&nezha_context.calls, 1);
	nezha_calls_here++;
	error = consider(&call);
	gone = call.comm && call.comm->gone;
	if (call.comm)
		nezha_comm_release(call.comm);
	nezha_calls_here--;
	atomic_fetch_sub(&nezha_context.calls, 1);
	if (error != MPI_SUCCESS)
		nezha_failure_tell(gone ? MPI_COMM_NULL : call.handle);
	return error;
}

/* For calls that may be below the floor, or not, as the type is.  It comes before all that is looked up for other calls: in a
 * program that goes from one collective to the next, half a microsecond before the library is called may cost it several. */
static bool is_small(int64_t count, MPI_Datatype datatype, uint64_t floor)
{
	size_t size = nezha_handles_size(&nezha_context.handles, datatype);

	return size && floor && (uint64_t)count <= (floor - 1) / size;
}

/* The one comparison that most small calls pay for; a negative count is far above any floor. */
static bool is_below_floor(int64_t count, nezha_word datatype)
{
	uint64_t floor = atomic_load_explicit(&nezha_context.floor, memory_order_relaxed);

	return __builtin_expect((uint64_t)count < floor / NEZHA_TYPE_SIZE_MAX, 1) || is_small(count, (MPI_Datatype)datatype, floor);
}

static bool passes(int64_t count, const nezha_word words[6], nezha_word caller)
{
	struct nezha_passes_call call = {
		.sendbuf = (const void *)words[0],
		.recvbuf = (const void *)words[1],
		.count = count,
		.datatype = (MPI_Datatype)words[3],
		.operation = (MPI_Op)words[4],
		.comm = (MPI_Comm)words[5],
		.caller = (const void *)caller,
	};

	return nezha_passes(&call);
}

int nezha_mpi_allreduce(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                        nezha_word caller)
{
	if (is_below_floor((int)c, d) || passes((int)c, (nezha_word[]){ a, b, c, d, e, f }, caller))
		return nezha_native(NEZHA_CALL_Allreduce)(a, b, c, d, e, f, caller);
	return look(NEZHA_CALL_Allreduce, (int)c, (nezha_word[]){ a, b, c, d, e, f }, caller);
}

int nezha_mpi_allreduce_c(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                          nezha_word caller)
{
	if (is_below_floor((int64_t)c, d) || passes((int64_t)c, (nezha_word[]){ a, b, c, d, e, f }, caller))
		return nezha_native(NEZHA_CALL_Allreduce_c)(a, b, c, d, e, f, caller);
	return look(NEZHA_CALL_Allreduce_c, (int64_t)c, (nezha_word[]){ a, b, c, d, e, f }, caller);
}
