/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/run.h"

#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/helper.h"
#include "pmpi/nonblocking.h"
#include "pmpi/patience.h"
#include "pmpi/staging.h"
#include "pmpi/team.h"
#include "pmpi/timeline.h"
#include "pmpi/verify.h"
#include "rails/hierarchy.h"
#include "tuning/log.h"
#include "tuning/report.h"
#include "tuning/status.h"

/* The rails are busy if they send at least bytes / BUSY_PART while the library reduces; it has to send more than all. */
#define BUSY_PART 4

_Thread_local bool nezha_run_inside;

/* The library's own call, for the first `count` elements. */
static int call_library(const struct nezha_mpi_call *call, int64_t count)
{
	const nezha_word *w = call->words;

	return nezha_native(call->kind)(w[0], w[1], (nezha_word)count, w[3], w[4], w[5], (nezha_word)call->caller);
}

static int go_native(const struct nezha_mpi_call *call)
{
	return call_library(call, call->count);
}

/* The rails that the plan is restricted to, as nezha_allreduce wants them. */
static uint32_t rails_of(const struct nezha_mpi_call *call)
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
static int reduce_over_rails(struct nezha_mpi_call *call)
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

static int run_rails(struct nezha_mpi_call *call)
{
	uint64_t begin = nezha_patience_now();
	int status;

	nezha_run_inside = true;
	status = reduce_over_rails(call);
	nezha_run_inside = false;
	call->times.rails = nezha_patience_now() - begin + call->staged;
	return status == NEZHA_OK ? MPI_SUCCESS : nezha_failure(status);
}

static int run_library_timed(struct nezha_mpi_call *call)
{
	uint64_t begin = nezha_patience_now();
	int error = go_native(call);

	call->times.native = nezha_patience_now() - begin;
	return error;
}

/* The library alone; the rails are idle then, unless it uses the same interfaces. */
static int run_native(struct nezha_mpi_call *call)
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

/* The library's part of a mix, its way the same on all ranks.  readable: by the host, too. */
static int run_library_part(const struct nezha_mpi_call *call, bool readable)
{
	uint64_t size = nezha_type_size(call->type);
	int64_t count = (int64_t)(call->plan.native / size);

	if (!call->plan.nonblocking)
		return call_library(call, count);
	return nezha_nonblocking_allreduce((const void *)call->words[0], (void *)call->words[1], count, (MPI_Datatype)call->words[3],
	                                   size, (MPI_Op)call->words[4], call->handle, readable);
}

struct rails_part {
	struct nezha_mpi_call *call;
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
static int run_mix(struct nezha_mpi_call *call)
{
	struct rails_part part = { .call = call };
	struct nezha_comm *comm = call->comm;
	uint64_t begin = nezha_patience_now();
	int error;

	if (!comm->helper)
		comm->helper = nezha_helper_create();
	if (comm->helper)
		nezha_helper_start(comm->helper, run_rails_part, &part);
	error = run_library_part(call, true);
	call->times.native = nezha_patience_now() - begin + (call->choice.carrier ? 0 : call->staged);
	if (nezha_context.trace)
		nezha_timeline_add(NEZHA_TRACE_LIBRARY, begin, call->plan.native, NEZHA_ALG_MIX, call->plan.reason);
	nezha_run_inside = true;
	if (comm->helper)
		nezha_helper_wait(comm->helper);
	else
		run_rails_part(&part);
	nezha_run_inside = false;
	call->times.rails = part.end - begin + call->staged;
	if (error == MPI_SUCCESS && part.status != NEZHA_OK)
		error = nezha_failure(part.status);
	return error;
}

static bool is_verified(const struct nezha_mpi_call *call)
{
	return call->plan.alg != NEZHA_ALG_NATIVE && nezha_context.job.settings.check & NEZHA_CHECK_NATIVE;
}

static int run_planned(struct nezha_mpi_call *call)
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

static void tell_report(const struct nezha_mpi_call *call, uint64_t ns)
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

/* The library's calls count if they fail, too: other ranks may let them pass (passes.h), which counts them before. */
static int run_counted(struct nezha_mpi_call *call)
{
	int error = run_planned(call);

	if (call->model && (error == MPI_SUCCESS || call->plan.alg == NEZHA_ALG_NATIVE))
		nezha_model_count(call->model, call->bytes, &call->choice, &call->times);
	return error;
}

/* For the report and the timeline, which want to know how long it took. */
static int run_timed(struct nezha_mpi_call *call)
{
	uint64_t begin = nezha_patience_now();
	int error = run_counted(call);

	if (nezha_context.report)
		tell_report(call, nezha_patience_now() - begin);
	if (nezha_context.trace)
		nezha_timeline_add(NEZHA_TRACE_CALL, begin, call->bytes, call->plan.alg, call->plan.reason);
	return error;
}

static int run_told(struct nezha_mpi_call *call)
{
	return nezha_context.report || nezha_context.trace ? run_timed(call) : run_counted(call);
}

/* With a comparison of the result (NEZHA_CHECK=native). */
static int run_verified(struct nezha_mpi_call *call)
{
	struct nezha_verify verify = {
		.comm = call->comm, .handle = call->handle, .datatype = (MPI_Datatype)call->words[3],
		.operation = (MPI_Op)call->words[4], .type = call->type, .op = call->op, .count = call->count,
		.sendbuf = call->sendbuf, .recvbuf = call->recvbuf,
	};

	nezha_verify_begin(&verify);
	return nezha_verify_end(&verify, run_told(call));
}

static int run_checked(struct nezha_mpi_call *call)
{
	return is_verified(call) ? run_verified(call) : run_told(call);
}

/* With the vectors in memory that the rails can read.  What this rank cannot copy the others would wait for. */
static int run_staged(struct nezha_mpi_call *call)
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
			run_library_part(call, status != NEZHA_ERR_NOMEM);
		nezha_staging_end(&staging, false);
		return nezha_failure(status);
	}
	error = run_checked(call);
	status = nezha_staging_end(&staging, error == MPI_SUCCESS);
	return status == NEZHA_OK ? error : nezha_failure(status);
}

int nezha_run(struct nezha_mpi_call *call)
{
	if (call->plan.alg != NEZHA_ALG_NATIVE && nezha_staging_wanted(call->sendbuf, call->recvbuf))
		return run_staged(call);
	return run_checked(call);
}
