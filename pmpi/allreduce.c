/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Allreduce and MPI_Allreduce_c: which calls are ours, and the way of those that are. */
#include <limits.h>
#include <mpi.h>

#include "pmpi/agree.h"
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/handles.h"
#include "pmpi/helper.h"
#include "pmpi/patience.h"
#include "pmpi/nonblocking.h"
#include "pmpi/staging.h"
#include "pmpi/team.h"
#include "pmpi/timeline.h"
#include "pmpi/verify.h"
#include "rails/hierarchy.h"
#include "tuning/model.h"
#include "tuning/log.h"
#include "tuning/report.h"
#include "tuning/status.h"

/* One call, in C's terms. */
struct call {
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

/* The rails are busy if they send at least bytes / BUSY_PART while the library reduces; it has to send more than all. */
#define BUSY_PART 4

/* Whether this thread is in a call of ours: what MPI calls from within is MPI's. */
static _Thread_local bool inside;

/* The library's own call, for the first `count` elements. */
static int call_library(const struct call *call, int64_t count)
{
	const nezha_word *w = call->words;

	return nezha_native(call->kind)(w[0], w[1], (nezha_word)count, w[3], w[4], w[5], (nezha_word)call->caller);
}

static int go_native(const struct call *call)
{
	return call_library(call, call->count);
}

/* Erroneous, so that MPI shall say what it says: buffers that are null or overlap. */
static bool has_bad_buffers(const struct call *call)
{
	uintptr_t send = (uintptr_t)call->sendbuf, receive = (uintptr_t)call->recvbuf;
	uintptr_t apart = send < receive ? receive - send : send - receive;

	if (!call->recvbuf || call->recvbuf == MPI_IN_PLACE)
		return true;
	if (call->sendbuf == MPI_IN_PLACE)
		return false;
	return !call->sendbuf || apart < call->bytes;
}

/* Most programs call from one place, which is looked up once. */
static bool is_from_library(const void *caller)
{
	if (caller == nezha_context.outsider)
		return false;
	if (nezha_context.host->from_library(caller))
		return true;
	nezha_context.outsider = caller;
	return false;
}

/* What the arguments say: NEZHA_REASON_RULE if nothing speaks against the rails.  Of the arguments only
 * those that are the same on all ranks decide, but for errors. */
static enum nezha_reason examine_arguments(struct call *call)
{
	enum nezha_reason reason;

	if (!nezha_context.on || inside)
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
	if (has_bad_buffers(call))
		return NEZHA_REASON_BUFFER;
	return is_from_library(call->caller) ? NEZHA_REASON_LIBRARY : NEZHA_REASON_RULE;
}

/* What was learnt from earlier calls of the communicator, if anything, in place of the built-in rule. */
static void use_model(struct call *call)
{
	if (!nezha_context.learning)
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
}

/* Plans the call, and opens the rails when the first plan wants them.  An MPI error code. */
static int make_plan(struct call *call)
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

/* The rails that the plan is restricted to, as nezha_allreduce wants them. */
static uint32_t rails_of(const struct call *call)
{
	const struct nezha_team *ring = nezha_comm_ring(call->comm);
	uint32_t rails = ring && call->plan.rails ? nezha_team_rails_named(ring, call->plan.rails) : 0;
	char names[NEZHA_RAIL_SET_TEXT];

	if (ring && call->plan.rails && !rails && nezha_context.job.rank == 0 &&
	    !atomic_exchange(&nezha_context.unnamed, true)) {
		nezha_rail_set_print(call->plan.rails, ',', names, sizeof(names));
		nezha_warn("a rule names %s, which no rail of the communicator is in: all its rails are used "
		           "(nezha-info lists a host's rails)", names);
	}
	return rails;
}

static int reduce(const struct nezha_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
                  enum nezha_type type, enum nezha_op op, const struct nezha_way *way)
{
	if (comm->hierarchy)
		return nezha_hierarchy_allreduce(comm->hierarchy, sendbuf, recvbuf, count, type, op, way);
	return nezha_allreduce(comm->team, sendbuf, recvbuf, count, type, op, way);
}

/* Of a node's ranks only those that carry have rails. */
static bool is_whole(const struct nezha_comm *comm)
{
	const struct nezha_team *ring = nezha_comm_ring(comm);

	return !ring || nezha_team_is_whole(ring);
}

/* The rails' part: all but the first plan.native bytes.  A NEZHA_ status. */
static int reduce_over_rails(struct call *call)
{
	const char *sendbuf = call->sendbuf == MPI_IN_PLACE ? call->recvbuf : call->sendbuf;
	uint64_t first = call->plan.alg == NEZHA_ALG_MIX ? call->plan.native : 0;
	uint64_t note[NEZHA_NOTE_VALUES];
	bool noted = call->model && nezha_model_has_note(call->model);
	struct nezha_way way = {
		.block = call->plan.block,
		.rails = rails_of(call),
		.note = noted ? note : NULL,
	};
	int status;

	if (noted)
		nezha_model_note(call->model, is_whole(call->comm), note);
	status = reduce(call->comm, sendbuf + first, (char *)call->recvbuf + first,
	                (call->bytes - first) / nezha_type_size(call->type), call->type, call->op, &way);
	if (noted && status == NEZHA_OK)
		nezha_model_learn(call->model, note);
	return status;
}

static int run_rails(struct call *call)
{
	uint64_t begin = nezha_patience_now();
	int status;

	inside = true;
	status = reduce_over_rails(call);
	inside = false;
	call->times.rails = nezha_patience_now() - begin + call->staged;
	return status == NEZHA_OK ? MPI_SUCCESS : nezha_failure(call->handle, status);
}

static int run_library_timed(struct call *call)
{
	uint64_t begin = nezha_patience_now();
	int error = go_native(call);

	call->times.native = nezha_patience_now() - begin;
	return error;
}

/* The library alone; the rails are idle then, unless it uses the same interfaces. */
static int run_native(struct call *call)
{
	uint32_t traffic;
	int error;

	if (!call->model || !nezha_model_measures(call->model, call->bytes, &call->choice))
		return go_native(call);
	if (!call->choice.looks)
		return run_library_timed(call);
	traffic = nezha_engine_traffic(nezha_context.engine);
	error = run_library_timed(call);
	call->times.idle = nezha_engine_traffic(nezha_context.engine) - traffic < call->bytes / BUSY_PART;
	return error;
}

/* The library's part of a mix, its way the same on all ranks. */
static int run_library_part(const struct call *call)
{
	uint64_t size = nezha_type_size(call->type);
	int64_t count = (int64_t)(call->plan.native / size);

	if (!call->choice.nonblocking)
		return call_library(call, count);
	return nezha_nonblocking_allreduce((const void *)call->words[0], (void *)call->words[1], count, (MPI_Datatype)call->words[3],
	                                   size, (MPI_Op)call->words[4], call->handle);
}

struct rails_part {
	struct call *call;
	int status;
	uint64_t end;        /* when it was done */
};

static void run_rails_part(void *argument)
{
	struct rails_part *part = argument;

	part->status = reduce_over_rails(part->call);
	part->end = nezha_patience_now();
}

/* Both at once, timed from one beginning: a thread that starts late costs as well.  Where no thread is to be had they follow
 * each other, which the other ranks need not know: neither part waits for the other anywhere. */
static int run_mix(struct call *call)
{
	struct rails_part part = { .call = call };
	struct nezha_comm *comm = call->comm;
	uint64_t begin = nezha_patience_now();
	int error;

	if (!comm->helper)
		comm->helper = nezha_helper_create();
	if (comm->helper)
		nezha_helper_start(comm->helper, run_rails_part, &part);
	error = run_library_part(call);
	call->times.native = nezha_patience_now() - begin + (call->choice.carrier ? 0 : call->staged);
	if (nezha_context.trace)
		nezha_timeline_add(NEZHA_TRACE_LIBRARY, begin, call->plan.native, NEZHA_ALG_MIX, call->plan.reason);
	inside = true;
	if (comm->helper)
		nezha_helper_wait(comm->helper);
	else
		run_rails_part(&part);
	inside = false;
	call->times.rails = part.end - begin + call->staged;
	if (error == MPI_SUCCESS && part.status != NEZHA_OK)
		error = nezha_failure(call->handle, part.status);
	return error;
}

static bool is_verified(const struct call *call)
{
	return call->plan.alg != NEZHA_ALG_NATIVE && nezha_context.job.settings.check & NEZHA_CHECK_NATIVE;
}

static int run_planned(struct call *call)
{
	switch (call->plan.alg) {
	case NEZHA_ALG_RING: return run_rails(call);
	case NEZHA_ALG_MIX: return run_mix(call);
	default: return run_native(call);
	}
}

static uint64_t last_bytes(const struct nezha_comm *comm, size_t rail)
{
	return comm->hierarchy ? nezha_hierarchy_last_bytes(comm->hierarchy, rail)
	       : nezha_team_last_bytes(comm->team, rail);
}

static void tell_report(const struct call *call, uint64_t ns)
{
	struct nezha_report_call told = {
		.bytes = call->bytes,
		.alg = call->plan.alg,
		.reason = call->plan.reason,
		.ns = ns,
	};
	uint64_t rails[NEZHA_REPORT_RAILS] = { 0 };
	struct nezha_report_comm *where = call->comm ? call->comm->report : NULL;

	if (told.alg != NEZHA_ALG_NATIVE)
		for (size_t i = 0; i < NEZHA_REPORT_RAILS; i++)
			rails[i] = last_bytes(call->comm, i);
	told.rail_bytes = rails;
	nezha_report_count(nezha_context.report, where, &told);
}

/* As run_planned, for the model and the report, which want to know how long it took. */
static int run_timed(struct call *call)
{
	uint64_t begin = nezha_patience_now();
	int error = run_planned(call);

	if (call->model && error == MPI_SUCCESS)
		nezha_model_count(call->model, call->bytes, &call->choice, &call->times);
	if (nezha_context.report)
		tell_report(call, nezha_patience_now() - begin);
	if (nezha_context.trace)
		nezha_timeline_add(NEZHA_TRACE_CALL, begin, call->bytes, call->plan.alg, call->plan.reason);
	return error;
}

static int run_told(struct call *call)
{
	return call->model || nezha_context.report || nezha_context.trace ? run_timed(call) : run_planned(call);
}

/* With a comparison of the result (NEZHA_CHECK=native). */
static int run_verified(struct call *call)
{
	struct nezha_verify verify = {
		.comm = call->comm, .handle = call->handle, .datatype = (MPI_Datatype)call->words[3],
		.operation = (MPI_Op)call->words[4], .type = call->type, .op = call->op, .count = call->count,
		.sendbuf = call->sendbuf, .recvbuf = call->recvbuf,
	};

	nezha_verify_begin(&verify);
	return nezha_verify_end(&verify, run_told(call));
}

static int run_checked(struct call *call)
{
	return is_verified(call) ? run_verified(call) : run_told(call);
}

/* With the vectors in memory that the rails can read.  What this rank cannot copy the others would wait for. */
static int run_staged(struct call *call)
{
	struct nezha_staging staging = {
		.sendbuf = call->sendbuf, .recvbuf = call->recvbuf, .datatype = (MPI_Datatype)call->words[3], .count = call->count,
		.bytes = call->bytes,
	};
	uint64_t begin = nezha_patience_now();
	int status = nezha_staging_begin(&staging), error;

	call->staged = 2 * (nezha_patience_now() - begin);      /* there and back */
	call->sendbuf = staging.sendbuf;
	call->recvbuf = staging.recvbuf;
	call->words[0] = (nezha_word)staging.sendbuf;
	call->words[1] = (nezha_word)staging.recvbuf;
	if (status != NEZHA_OK) {
		nezha_comm_give_up(call->comm);
		/* From the library's part of a mix nothing but this calls the others back. */
		if (call->plan.alg == NEZHA_ALG_MIX)
			run_library_part(call);
		nezha_staging_end(&staging, false);
		return nezha_failure(call->handle, status);
	}
	error = run_checked(call);
	status = nezha_staging_end(&staging, error == MPI_SUCCESS);
	return status == NEZHA_OK ? error : nezha_failure(call->handle, status);
}

/* A call that is not below the floor. */
static int consider(struct call *call)
{
	int error = MPI_SUCCESS;

	call->plan.reason = examine_arguments(call);
	if (call->plan.reason == NEZHA_REASON_RULE)
		error = make_plan(call);
	/* Below the floor, rank 0 plans alone, for its report. */
	if (error == MPI_SUCCESS && call->comm && (uint64_t)call->count >= nezha_context.table_floor)
		error = nezha_agree(call->handle, call->comm, &call->plan, call->bytes);
	if (error != MPI_SUCCESS)
		return error;
	if (call->plan.alg != NEZHA_ALG_NATIVE && nezha_staging_wanted(call->sendbuf, call->recvbuf))
		return run_staged(call);
	return run_checked(call);
}

__attribute__((noinline)) static int look(enum nezha_call kind, int64_t count, const nezha_word words[6],
                                          nezha_word caller)
{
	struct call call = {
		.kind = kind,
		.words = { words[0], words[1], words[2], words[3], words[4], words[5] },
		.sendbuf = (const void *)words[0],
		.recvbuf = (void *)words[1],
		.count = count,
		.handle = (MPI_Comm)words[5],
		.caller = (const void *)caller,
		.plan = { .alg = NEZHA_ALG_NATIVE },
	};

	int error;

	/* Before `on` is looked at: MPI_Finalize clears that before it counts for the last time. */
	atomic_fetch_add(&nezha_context.calls, 1);
	nezha_calls_here++;
	error = consider(&call);
	if (call.comm)
		nezha_comm_release(call.comm);
	nezha_calls_here--;
	atomic_fetch_sub(&nezha_context.calls, 1);
	return error;
}

/* The one comparison that small calls pay for; a negative count is far above any floor. */
static bool is_below_floor(int64_t count)
{
	return (uint64_t)count < atomic_load_explicit(&nezha_context.floor, memory_order_relaxed);
}

int nezha_mpi_allreduce(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                        nezha_word caller)
{
	if (__builtin_expect(is_below_floor((int)c), 1))
		return nezha_native(NEZHA_CALL_Allreduce)(a, b, c, d, e, f, caller);
	return look(NEZHA_CALL_Allreduce, (int)c, (nezha_word[]){ a, b, c, d, e, f }, caller);
}

int nezha_mpi_allreduce_c(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                          nezha_word caller)
{
	if (__builtin_expect(is_below_floor((int64_t)c), 1))
		return nezha_native(NEZHA_CALL_Allreduce_c)(a, b, c, d, e, f, caller);
	return look(NEZHA_CALL_Allreduce_c, (int64_t)c, (nezha_word[]){ a, b, c, d, e, f }, caller);
}
