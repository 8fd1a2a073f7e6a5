/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Init and MPI_Init_thread: at their end, all ranks agree on the job. */
#include <mpi.h>
#include <string.h>
#include <time.h>

#include "pmpi/announce.h"
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/finalize.h"
#include "pmpi/handles.h"
#include "pmpi/learned.h"
#include "pmpi/origin.h"
#include "pmpi/passes.h"
#include "pmpi/rails.h"
#include "pmpi/timeline.h"
#include "rails/team.h"
#include "tuning/log.h"
#include "tuning/report.h"
#include "tuning/status.h"

struct nezha_context nezha_context = {
	.floor = NEZHA_FLOOR_ALL,
	.table_floor = NEZHA_FLOOR_ALL,
	.error_once = PTHREAD_ONCE_INIT,
	.self_once = PTHREAD_ONCE_INIT,
	.self = MPI_COMM_NULL,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

_Thread_local int nezha_calls_here;

void nezha_context_aim(void)
{
	nezha_passes_forget();
	if (!nezha_context.on)
		nezha_context.floor = NEZHA_FLOOR_ALL;
	else if (nezha_context.report || nezha_context.trace)
		nezha_context.floor = 0;
	else if (nezha_context.paused || !nezha_context.job.settings.enable)
		nezha_context.floor = NEZHA_FLOOR_ALL;
	else
		nezha_context.floor = nezha_context.table_floor;
}

/* Of the thread that forks: the engine that it holds, NULL: none. */
static _Thread_local struct nezha_engine *held;

/* An engine that goes away meanwhile would be the program's fault: it ends MPI in another thread. */
static void hold_for_fork(void)
{
	struct nezha_engine *engine = nezha_context.engine;

	held = engine && nezha_engine_hold(engine) ? engine : NULL;
}

static void go_on_in_parent(void)
{
	if (held)
		nezha_engine_release(held);
	held = NULL;
}

/* The service thread and the connections are the parent's.  Where it could not be held, the copies of the descriptors stay
 * until exec or the end. */
static void forget_in_child(void)
{
	nezha_context.on = false;
	nezha_context.hands_off = true;
	nezha_context_aim();
	/* another thread may have held it */
	pthread_mutex_init(&nezha_context.lock, NULL);
	if (held)
		nezha_engine_abandon(held);
	held = nezha_context.engine = NULL;
}

/* A launcher that is told of the abort may end before it has passed on what the process wrote: so the rank with the message
 * waits a moment, and the others, who have none, leave it to that one. */
static void give_up(bool told)
{
	struct timespec pause = { .tv_sec = told ? 0 : 5, .tv_nsec = told ? 200000000 : 0 };

	nanosleep(&pause, NULL);
	PMPI_Abort(MPI_COMM_WORLD, 1);
}

static int begin_report(void)
{
	struct nezha_job *job = &nezha_context.job;
	const char *where = job->settings.report;

	if (job->rank != 0 || !*where || !strcmp(where, "0"))
		return NEZHA_OK;
	return nezha_report_create(&nezha_context.report);
}

static int begin_attributes(void)
{
	int error = nezha_comm_begin();

	if (error == MPI_SUCCESS)
		error = nezha_finalize_begin();
	return error;
}

/* In a world that is initialised; the same on all ranks from here on. */
static int begin(void)
{
	struct nezha_job *job = &nezha_context.job;
	bool told;

	if (nezha_announce(job) != NEZHA_OK) {
		give_up(true);
		return MPI_ERR_OTHER;
	}
	if (job->settings.enable && nezha_rails_check(&told) != NEZHA_OK) {
		give_up(told);
		return MPI_ERR_OTHER;
	}
	nezha_origin_check();
	nezha_context.learning = !*job->settings.table && !job->settings.reproducible;
	if (begin_report() != NEZHA_OK || nezha_timeline_begin() != NEZHA_OK || nezha_learned_begin() != NEZHA_OK || begin_attributes() != MPI_SUCCESS) {
		nezha_error("MPI_Init: no memory, or no attributes of communicators, for Nezha");
		give_up(true);
		return MPI_ERR_OTHER;
	}
	nezha_handles_list(&nezha_context.handles);
	pthread_atfork(hold_for_fork, go_on_in_parent, forget_in_child);
	nezha_context.table_floor = nezha_job_floor(job);
	nezha_context.on = true;
	nezha_context_aim();
	nezha_info("%d ranks on %d nodes; calls below %llu bytes go to MPI unseen", job->ranks,
	           job->scale.nodes, (unsigned long long)nezha_context.floor);
	return MPI_SUCCESS;
}

int nezha_mpi_init(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                   nezha_word caller)
{
	int error = nezha_native(NEZHA_CALL_Init)(a, b, c, d, e, f, caller);

	return error == MPI_SUCCESS && !nezha_context.on ? begin() : error;
}

int nezha_mpi_init_thread(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                          nezha_word caller)
{
	int error = nezha_native(NEZHA_CALL_Init_thread)(a, b, c, d, e, f, caller);

	return error == MPI_SUCCESS && !nezha_context.on ? begin() : error;
}
