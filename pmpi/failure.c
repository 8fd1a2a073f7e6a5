/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/failure.h"

#include "pmpi/context.h"
#include "pmpi/timeline.h"
#include "tuning/status.h"

/* At the first error only: programs may look at the highest error code in use. */
static void add_codes(void)
{
	int class = MPI_ERR_OTHER, lost = MPI_ERR_OTHER, memory = MPI_ERR_OTHER, differ = MPI_ERR_OTHER, wrong = MPI_ERR_OTHER;

	if (PMPI_Add_error_class(&class) == MPI_SUCCESS && PMPI_Add_error_code(class, &lost) == MPI_SUCCESS &&
	    PMPI_Add_error_code(class, &memory) == MPI_SUCCESS &&
	    PMPI_Add_error_code(class, &differ) == MPI_SUCCESS && PMPI_Add_error_code(class, &wrong) == MPI_SUCCESS) {
		PMPI_Add_error_string(class, "Nezha failed");
		PMPI_Add_error_string(lost, "Nezha: the rails failed within MPI_Allreduce");
		PMPI_Add_error_string(memory, "Nezha: no memory for MPI_Allreduce");
		PMPI_Add_error_string(differ, "Nezha: the ranks disagree on how to do MPI_Allreduce");
		PMPI_Add_error_string(wrong, "Nezha: the result of MPI_Allreduce is not that of the MPI library");
	}
	nezha_context.error_wrong = wrong;
	nezha_context.error_lost = lost;
	nezha_context.error_memory = memory;
	nezha_context.error_differ = differ;
}

/* The first failure of this thread's MPI call; MPI_SUCCESS: none. */
static _Thread_local int failed = MPI_SUCCESS;

int nezha_failure(int status)
{
	int code;

	nezha_context.failed = true;
	nezha_timeline_write();
	pthread_once(&nezha_context.error_once, add_codes);
	code = status == NEZHA_ERR_NOMEM ? nezha_context.error_memory :
	       status == NEZHA_ERR_WRONG ? nezha_context.error_wrong :
	       status == NEZHA_ERR_DISAGREE ? nezha_context.error_differ : nezha_context.error_lost;
	if (failed == MPI_SUCCESS)
		failed = code;
	return code;
}

void nezha_failure_tell(MPI_Comm comm)
{
	int code = failed;

	failed = MPI_SUCCESS;
	if (code != MPI_SUCCESS && comm != MPI_COMM_NULL)
		PMPI_Comm_call_errhandler(comm, code);
}
