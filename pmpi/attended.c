/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/attended.h"

#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/patience.h"
#include "rails/hierarchy.h"
#include "tuning/status.h"

#define ATTEND_EVERY 0.002       /* seconds */
#define PIECE (1 << 30)          /* elements of one call of the library's */

bool nezha_attended_lost(struct nezha_comm *comm)
{
	if (comm->hierarchy)
		return nezha_hierarchy_attend(comm->hierarchy) != NEZHA_OK;
	return comm->team && nezha_team_attend(comm->team) != NEZHA_OK;
}

/* The request stays as it is if a rank is lost: nothing can end it.  Of an error of its own the library has told already. */
static int wait_for(struct nezha_comm *comm, MPI_Request *request)
{
	int status;

	while ((status = nezha_patience_wait(request, 1, ATTEND_EVERY)) == NEZHA_ERR_TIMEOUT)
		if (nezha_attended_lost(comm))
			return nezha_failure(NEZHA_ERR_UNREACHABLE);
	if (status == NEZHA_OK)
		return MPI_SUCCESS;
	nezha_context.failed = true;
	return MPI_ERR_OTHER;
}

int nezha_attended_allreduce(struct nezha_comm *comm, MPI_Comm handle, const void *in, void *out, int64_t count,
                             MPI_Datatype type, MPI_Op op)
{
	MPI_Aint low, extent;
	int error = PMPI_Type_get_extent(type, &low, &extent);

	for (int64_t done = 0; error == MPI_SUCCESS && done < count; done += PIECE) {
		int piece = count - done < PIECE ? (int)(count - done) : PIECE;
		MPI_Request request;

		error = PMPI_Iallreduce((const char *)in + done * extent, (char *)out + done * extent, piece, type, op, handle,
		                        &request);
		if (error == MPI_SUCCESS)
			error = wait_for(comm, &request);
	}
	return error;
}
