/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Finalize. */
#include "pmpi/finalize.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/learned.h"
#include "pmpi/patience.h"
#include "pmpi/rails.h"
#include "pmpi/summary.h"
#include "pmpi/timeline.h"
#include "tuning/log.h"

/* Seconds that calls of other threads get to end: without a word, and after one. */
#define SHORTLY 1.0
#define PATIENTLY 5.0
#define FOREVER 1e9                /* for all that matters */

static int calls_elsewhere(void)
{
	return nezha_context.calls - nezha_calls_here;
}

static bool calls_end_within(double seconds)
{
	uint64_t end = nezha_patience_now() + (uint64_t)(seconds * 1e9);
	const struct timespec nap = { .tv_nsec = 1000000 };

	while (calls_elsewhere() && nezha_patience_now() < end)
		nanosleep(&nap, NULL);
	return !calls_elsewhere();
}

/* MPI forbids it, and what these calls use would go.  false: some do not even end when they are given up. */
static bool await_calls(void)
{
	if (calls_end_within(SHORTLY))
		return true;
	nezha_error("MPI_Finalize was called while other threads are in MPI_Allreduce (%d), which MPI forbids: it waits %g s for "
	            "them", calls_elsewhere(), PATIENTLY);
	if (calls_end_within(PATIENTLY))
		return true;
	nezha_error("MPI_Allreduce fails in other threads (%d): MPI_Finalize was called meanwhile", calls_elsewhere());
	nezha_comm_give_up_all();
	return calls_end_within(SHORTLY);
}

static void end_calls(void)
{
	if (!nezha_context.hands_off)
		nezha_context.hands_off = !await_calls();
}

/* Some rank may still be in its last call and need our service thread's answer: nobody closes before all are
 * here.  But who has seen a call fail does not wait for ever: a rank may be dead.  Jobs that never use rails are spared. */
static void await_all(void)
{
	MPI_Request all;

	if (!nezha_context.job.settings.enable || nezha_context.table_floor == NEZHA_FLOOR_ALL)
		return;
	if (PMPI_Ibarrier(MPI_COMM_WORLD, &all) == MPI_SUCCESS)
		nezha_patience_wait(&all, 1, nezha_context.failed ? PATIENTLY : FOREVER);
}

static int end(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	if (!nezha_context.on)
		return MPI_SUCCESS;
	nezha_context.on = false;
	nezha_context_aim();
	end_calls();
	if (nezha_calls_here)
		nezha_context.hands_off = true;
	await_all();
	nezha_summary_write();
	nezha_learned_end();
	if (!nezha_context.hands_off) {
		nezha_comm_end();
		nezha_rails_end();
		nezha_timeline_end();
	} else {
		nezha_timeline_write();
	}
	if (!nezha_context.hands_off && nezha_context.self != MPI_COMM_NULL)
		PMPI_Comm_free(&nezha_context.self);
	PMPI_Comm_free_keyval(&nezha_context.keyval);
	PMPI_Comm_free_keyval(&nezha_context.self_keyval);
	return MPI_SUCCESS;
}

int nezha_finalize_begin(void)
{
	int error = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &nezha_context.self_keyval, NULL);

	if (error == MPI_SUCCESS)
		error = PMPI_Comm_set_attr(MPI_COMM_SELF, nezha_context.self_keyval, NULL);
	return error;
}

int nezha_mpi_finalize(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                       nezha_word caller)
{
	int error;

#ifndef OPEN_MPI
	/* MPICH locks nothing from here on: a thread that is in it by now stays the owner of its lock, and it ends the process for that.
	 * Elsewhere the program's own callbacks may yet end such calls. */
	if (nezha_context.on)
		end_calls();
#endif
	error = nezha_native(NEZHA_CALL_Finalize)(a, b, c, d, e, f, caller);
	/* The library runs the callbacks of MPI_COMM_SELF only at the end of the last session, if there are any: ours is due now.  Not
	 * before: it awaits the other ranks, and they may still wait for what the program does in a callback of its own. */
	if (error == MPI_SUCCESS && nezha_context.on)
		PMPI_Comm_delete_attr(MPI_COMM_SELF, nezha_context.self_keyval);
	if (!nezha_context.on && !nezha_context.hands_off)
		nezha_job_free(&nezha_context.job);
	return error;
}
