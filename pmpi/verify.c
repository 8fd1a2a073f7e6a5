/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/attended.h"
#include "pmpi/comm.h"
#include "pmpi/compare.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* What the library makes of it.  On the heap, with all that it points to: if a rank is lost, the library keeps it. */
struct answer {
	void *input;                 /* this rank's: the caller's may be gone when the library still reads it */
	void *result;
	void *weight, *weights;      /* this rank's, all ranks'; unused for integers */
	int mine, all;               /* of agreements */
};

static size_t bytes_of(const struct nezha_verify *verify)
{
	return (size_t)verify->count * nezha_type_size(verify->type);
}

void nezha_verify_begin(struct nezha_verify *verify)
{
	verify->input = NULL;
	if (verify->sendbuf == MPI_IN_PLACE && (verify->input = malloc(bytes_of(verify))))
		memcpy(verify->input, verify->recvbuf, bytes_of(verify));
}

static bool make_room(const struct nezha_verify *verify, struct answer *out)
{
	bool weighs = nezha_compare_weighs(verify->type);

	if (verify->sendbuf != MPI_IN_PLACE && (out->input = malloc(bytes_of(verify))))
		memcpy(out->input, verify->sendbuf, bytes_of(verify));
	out->result = malloc(bytes_of(verify));
	out->weight = weighs ? malloc(bytes_of(verify)) : NULL;
	out->weights = weighs ? malloc(bytes_of(verify)) : NULL;
	return out->input && out->result && (!weighs || (out->weight && out->weights));
}

static void free_answer(struct answer *answer)
{
	free(answer->input);
	free(answer->result);
	free(answer->weight);
	free(answer->weights);
	free(answer);
}

static int reduce(const struct nezha_verify *verify, const void *in, void *out, MPI_Op op)
{
	return nezha_attended_allreduce(verify->comm, verify->handle, in, out, verify->count, verify->datatype, op);
}

/* answer->all of answer->mine. */
static int agree(const struct nezha_verify *verify, struct answer *answer, MPI_Op op)
{
	return nezha_attended_allreduce(verify->comm, verify->handle, &answer->mine, &answer->all, 1, MPI_INT, op);
}

/* Collective. */
static int ask_library(const struct nezha_verify *verify, struct answer *answer)
{
	int error = reduce(verify, answer->input, answer->result, verify->operation);

	if (error != MPI_SUCCESS || !nezha_compare_weighs(verify->type))
		return error;
	nezha_compare_weight(verify->type, verify->op, answer->input, answer->weight, (size_t)verify->count);
	return reduce(verify, answer->weight, answer->weights,
	              nezha_compare_fold(verify->op) == NEZHA_PROD ? MPI_PROD : MPI_SUM);
}

static void tell(const struct nezha_verify *verify, const struct nezha_results *results, size_t wrong, size_t first)
{
	static const char *const ops[NEZHA_OP_COUNT] = { "SUM", "PROD", "MIN", "MAX", "LAND", "LOR", "LXOR",
	                                                 "BAND", "BOR", "BXOR" };
	char comm[MPI_MAX_OBJECT_NAME + 1] = "", type[MPI_MAX_OBJECT_NAME + 1] = "", mine[48], other[48];
	int len, rank = -1;

	PMPI_Comm_rank(verify->handle, &rank);
	PMPI_Comm_get_name(verify->handle, comm, &len);
	PMPI_Type_get_name(verify->datatype, type, &len);
	nezha_compare_print(verify->type, results->mine, first, mine, sizeof(mine));
	nezha_compare_print(verify->type, results->other, first, other, sizeof(other));
	nezha_error("NEZHA_CHECK=native: communicator \"%s\", rank %d of %d, %" PRId64 " elements of %s, MPI_%s%s: element %zu is %s"
	            " by Nezha and %s by the MPI library; %zu elements differ", comm, rank, results->ranks, verify->count,
	            type, ops[verify->op], verify->sendbuf == MPI_IN_PLACE ? " in place" : "", first, mine, other, wrong);
}

/* Collective: all ranks hear of it. */
static int judge(const struct nezha_verify *verify, struct answer *answer)
{
	struct nezha_results results = {
		.type = verify->type, .op = verify->op, .mine = verify->recvbuf, .other = answer->result,
		.weight = answer->weights,
	};
	size_t first = 0, wrong;
	int error = PMPI_Comm_size(verify->handle, &results.ranks);

	if (error != MPI_SUCCESS)
		return error;
	wrong = nezha_compare(&results, (size_t)verify->count, &first);
	answer->mine = wrong > 0;
	if (wrong)
		tell(verify, &results, wrong, first);
	error = agree(verify, answer, MPI_MAX);
	if (error != MPI_SUCCESS)
		return error;
	return answer->all ? nezha_failure(NEZHA_ERR_WRONG) : MPI_SUCCESS;
}

/* Collective: where one rank cannot, none compares. */
static int compare(const struct nezha_verify *verify, bool ready, struct answer *answer)
{
	int error;

	answer->mine = ready;
	error = agree(verify, answer, MPI_MIN);
	if (error != MPI_SUCCESS)
		return error;
	if (!answer->all) {
		nezha_warn("NEZHA_CHECK=native: a call is not compared: some rank has no memory for it, or its call has failed");
		return MPI_SUCCESS;
	}
	error = ask_library(verify, answer);
	return error == MPI_SUCCESS ? judge(verify, answer) : error;
}

int nezha_verify_end(struct nezha_verify *verify, int error)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	int compared = error;
	bool keeps = false;

	if (!answer) {
		/* The others would wait for this rank. */
		free(verify->input);
		nezha_comm_give_up(verify->comm);
		return error == MPI_SUCCESS ? nezha_failure(NEZHA_ERR_NOMEM) : error;
	}
	answer->input = verify->input;
	/* The error handler may have ended MPI, or freed the communicator. */
	if (!nezha_context.hands_off && !verify->comm->gone && (error == MPI_SUCCESS || !nezha_attended_lost(verify->comm))) {
		compared = compare(verify, make_room(verify, answer) && error == MPI_SUCCESS, answer);
		keeps = compared != MPI_SUCCESS && nezha_attended_lost(verify->comm);
	} else if (!nezha_context.hands_off && verify->comm->gone) {
		/* The others would wait for this rank. */
		nezha_comm_give_up(verify->comm);
	}
	if (!keeps)
		free_answer(answer);
	return error == MPI_SUCCESS ? compared : error;
}
