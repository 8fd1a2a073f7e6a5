/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/agree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/attended.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/native.h"
#include "tuning/agree.h"
#include "tuning/log.h"
#include "tuning/rail_set.h"
#include "tuning/status.h"

/* A rank that differs from rank 0 says so; `theirs` is rank 0's statement. */
static void tell(MPI_Comm handle, const struct nezha_plan *plan, const struct nezha_statement *mine,
                 const struct nezha_statement *theirs)
{
	char name[MPI_MAX_OBJECT_NAME + 1] = "", what[NEZHA_STATEMENT_TEXT], text[NEZHA_RAIL_SET_TEXT + 128];
	int rank = -1, len;

	nezha_statement_differs(mine, theirs, what, sizeof(what));
	if (!*what || PMPI_Comm_rank(handle, &rank) != MPI_SUCCESS)
		return;
	PMPI_Comm_get_name(handle, name, &len);
	nezha_plan_print(plan, text, sizeof(text));
	nezha_error("NEZHA_CHECK=plan: communicator \"%s\": rank %d differs from rank 0 in %s: here call %" PRIu64
	            ", %" PRIu64 " bytes, model %016" PRIx64 ", plan %016" PRIx64 " (%s); on rank 0 call %" PRIu64
	            ", %" PRIu64 " bytes, model %016" PRIx64 ", plan %016" PRIx64, name, rank, what, mine->call,
	            mine->bytes, mine->model, mine->plan, text, theirs->call, theirs->bytes, theirs->model, theirs->plan);
}

/* What all ranks have stated, folded.  On the heap: if a rank is lost, the library keeps it. */
struct statements {
	uint64_t mine[NEZHA_STATEMENT_WORDS], all[NEZHA_STATEMENT_WORDS];
};

/* Without rails nothing would tell that a rank is lost: no use in waiting with care, for which there may be no memory. */
static int fold_natively(MPI_Comm handle, uint64_t words[NEZHA_STATEMENT_WORDS], MPI_Op op)
{
	uint64_t mine[NEZHA_STATEMENT_WORDS];

	memcpy(mine, words, sizeof(mine));
	return nezha_native_allreduce(mine, words, NEZHA_STATEMENT_WORDS, MPI_UINT64_T, op, handle);
}

/* The same for a communicator whose rails are open. */
static int fold_attended(MPI_Comm handle, struct nezha_comm *comm, uint64_t words[NEZHA_STATEMENT_WORDS], MPI_Op op)
{
	struct statements *said = malloc(sizeof(*said));
	int error;

	if (!said) {
		/* The others would wait for this rank. */
		nezha_comm_give_up(comm);
		return nezha_failure(NEZHA_ERR_NOMEM);
	}
	memcpy(said->mine, words, sizeof(said->mine));
	error = nezha_attended_allreduce(comm, handle, said->mine, said->all, NEZHA_STATEMENT_WORDS, MPI_UINT64_T, op);
	if (error == MPI_SUCCESS)
		memcpy(words, said->all, sizeof(said->all));
	if (error == MPI_SUCCESS || !nezha_attended_lost(comm))
		free(said);
	return error;
}

/* Folds `words` of all ranks in place. */
static int fold(MPI_Comm handle, struct nezha_comm *comm, uint64_t words[NEZHA_STATEMENT_WORDS], MPI_Op op)
{
	return nezha_comm_is_open(comm) ? fold_attended(handle, comm, words, op) : fold_natively(handle, words, op);
}

/* All ranks know that they differ, and hear what rank 0 has: the others say nothing. */
static int disagree(MPI_Comm handle, struct nezha_comm *comm, const struct nezha_plan *plan, const struct nezha_statement *mine)
{
	uint64_t words[NEZHA_STATEMENT_WORDS] = { 0 };
	struct nezha_statement theirs;
	int rank, error = PMPI_Comm_rank(handle, &rank);

	if (error == MPI_SUCCESS && rank == 0)
		memcpy(words, mine, sizeof(*mine));
	/* (MPICH's MAX takes 64 bits without a sign for signed ones.) */
	if (error == MPI_SUCCESS)
		error = fold(handle, comm, words, MPI_BOR);
	if (error != MPI_SUCCESS)
		return error;
	memcpy(&theirs, words, sizeof(theirs));
	tell(handle, plan, mine, &theirs);
	return nezha_failure(NEZHA_ERR_DISAGREE);
}

int nezha_agree(MPI_Comm handle, struct nezha_comm *comm, const struct nezha_plan *plan, uint64_t bytes)
{
	uint64_t words[NEZHA_STATEMENT_WORDS];
	struct nezha_statement mine;
	int error;

	/* Of a communicator that is none of ours, all ranks know that without a plan. */
	if (!(nezha_context.job.settings.check & NEZHA_CHECK_PLAN) || comm->reason == NEZHA_REASON_COMM)
		return MPI_SUCCESS;
	mine = (struct nezha_statement){
		.call = ++comm->checked,
		.bytes = bytes,
		/* of one that is left to the library some ranks may have none */
		.model = nezha_comm_is_open(comm) ? nezha_model_digest(comm->model) : 0,
		.plan = nezha_plan_digest(plan),
	};
	nezha_statement_spread(&mine, words);
	error = fold(handle, comm, words, MPI_MIN);
	if (error != MPI_SUCCESS)
		return error;
	return nezha_statement_agreed(words) ? MPI_SUCCESS : disagree(handle, comm, plan, &mine);
}
