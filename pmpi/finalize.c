/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Finalize. */
#include "pmpi/finalize.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/learned.h"
#include "pmpi/rails.h"
#include "pmpi/summary.h"
#include "tuning/log.h"

/* Some rank may still be in its last call and need our service thread's answer: nobody closes before all are
 * here.  Jobs that never use rails are spared. */
static void await_all(void)
{
	if (nezha_context.job.settings.enable && nezha_context.table_floor != NEZHA_FLOOR_ALL)
		PMPI_Barrier(MPI_COMM_WORLD);
}

static int end(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	if (!nezha_context.on)
		return MPI_SUCCESS;
	nezha_context.on = false;
	nezha_context_aim();
	await_all();
	nezha_summary_write();
	nezha_learned_end();
	nezha_comm_end();
	nezha_rails_end();
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
	int error = nezha_native(NEZHA_CALL_Finalize)(a, b, c, d, e, f, caller);

	nezha_job_free(&nezha_context.job);
	return error;
}
