/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/team.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/native.h"
#include "pmpi/rails.h"
#include "rails/team.h"
#include "tuning/model.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* The bits of a connection's mask that stand for rails. */
#define RAILS_MASK ((1u << NEZHA_RAILS_MAX) - 1)

/* What a rank says when a team opens. */
struct introduction {
	uint64_t id;               /* of rank 0 counts */
	uint32_t refused;          /* its info says no */
	uint32_t gpu;              /* there is a GPU's library in the process */
	uint32_t failed;           /* it has no engine */
	uint32_t reserved;
	struct nezha_card card;
};

/* Memory of a GPU looks like any other in a call's arguments, and whether a buffer is there is known to one
 * rank only.  Where a process can have such buffers at all, the MPI library keeps the communicator. */
static bool has_gpu(void)
{
	static const char *const names[] = {
		"libcuda.so.1", "libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libze_loader.so.1",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library) {
			dlclose(library);
			return true;
		}
	}
	return false;
}

/* A number that no other team of any process in it has. */
static uint64_t draw_id(void)
{
	uint32_t counter;

	pthread_mutex_lock(&nezha_context.lock);
	counter = ++nezha_context.teams;
	pthread_mutex_unlock(&nezha_context.lock);
	return (uint64_t)nezha_context.job.rank << 32 | counter;
}

/* false: no memory. */
static bool make_model(struct nezha_comm *comm)
{
	if (nezha_context.learning && !comm->model)
		comm->model = calloc(1, sizeof(*comm->model));
	return comm->model || !nezha_context.learning;
}

static void introduce(struct nezha_comm *comm, struct nezha_engine **engine, struct introduction *out)
{
	memset(out, 0, sizeof(*out));
	*engine = NULL;
	out->id = draw_id();
	out->refused = comm->refused;
	out->gpu = has_gpu();
	if (!out->refused && !out->gpu)
		out->failed = nezha_rails_engine(engine) != NEZHA_OK || !make_model(comm);
	if (*engine)
		nezha_engine_card(*engine, &out->card);
}

/* The same on all ranks: NEZHA_REASON_RULE, or what speaks against a team. */
static enum nezha_reason judge(const struct introduction *all, int ranks)
{
	uint32_t refused = 0, gpu = 0, failed = 0;

	for (int i = 0; i < ranks; i++) {
		refused |= all[i].refused;
		gpu |= all[i].gpu;
		failed |= all[i].failed;
	}
	if (refused)
		return NEZHA_REASON_DISABLED;
	if (gpu)
		return NEZHA_REASON_BUFFER;
	return failed ? NEZHA_REASON_OPEN_FAILED : NEZHA_REASON_RULE;
}

/* Connects and says which rails work to this rank's neighbour; 0 if it could not even begin. */
static uint32_t connect_rank(struct nezha_engine *engine, const struct nezha_card *cards, int ranks, int rank,
                             uint64_t id, struct nezha_team **team)
{
	uint32_t rails = 0;

	*team = NULL;
	if (nezha_team_create(engine, cards, ranks, rank, id, team) != NEZHA_OK)
		return 0;
	if (nezha_team_connect(*team, nezha_context.job.settings.open_timeout, &rails) != NEZHA_OK)
		return 0;
	return rails;
}

/* Fewer rails than there might be: told by a communicator's first rank, as a warning only the first time. */
static void tell_fewer(const struct nezha_team *team, int rank, uint32_t rails)
{
	int most = 0, common = nezha_team_rails_common(team, &most);
	int used = __builtin_popcount(rails & RAILS_MASK);
	enum nezha_log_level level;

	if (rank != 0 || used == most)
		return;
	level = atomic_exchange(&nezha_context.warned, true) ? NEZHA_LOG_INFO : NEZHA_LOG_WARN;
	if (!common)
		nezha_log(level, "no rail joins all ranks of a communicator: the MPI library does its "
		          "allreduces (nezha-info on each host shows the rails)");
	else if (!rails)
		nezha_log(level, "none of the %d rails that the ranks of a communicator have in common leads "
		          "from each rank to the next: the MPI library does its allreduces "
		          "(NEZHA_LOG=info tells more)", common);
	else
		nezha_log(level, "%d of the %d rails that a host has are used: %d are common to all ranks of "
		          "the communicator%s", used, most, common,
		          used < common ? ", not all reach (NEZHA_LOG=info tells more)" : "");
}

/* All ranks have the same `all`, and so come to the same end. */
static int join(MPI_Comm handle, struct nezha_comm *comm, struct nezha_engine *engine,
                const struct introduction *all, const struct nezha_card *cards, int rank)
{
	enum nezha_reason reason = judge(all, comm->scale.ranks);
	uint32_t mine, rails = 0;
	int error, most;

	if (reason != NEZHA_REASON_RULE) {
		nezha_comm_retire(comm, reason);
		return MPI_SUCCESS;
	}
	mine = connect_rank(engine, cards, comm->scale.ranks, rank, all[0].id, &comm->team);
	error = nezha_native_allreduce(&mine, &rails, 1, MPI_UINT32_T, MPI_BAND, handle);
	if (error != MPI_SUCCESS)
		rails = 0;
	if (comm->team)
		tell_fewer(comm->team, rank, rails);
	if (rails)
		nezha_team_activate(comm->team, rails);
	else
		nezha_comm_retire(comm, comm->team && !nezha_team_rails_common(comm->team, &most) ?
		                  NEZHA_REASON_NO_RAIL : NEZHA_REASON_OPEN_FAILED);
	return error;
}

static int exchange(MPI_Comm handle, struct nezha_comm *comm, int rank, struct introduction *all,
                    struct nezha_card *cards)
{
	struct introduction self;
	struct nezha_engine *engine;
	int error;

	introduce(comm, &engine, &self);
	error = PMPI_Allgather(&self, sizeof(self), MPI_BYTE, all, sizeof(self), MPI_BYTE, handle);
	if (error != MPI_SUCCESS)
		return error;
	for (int i = 0; i < comm->scale.ranks; i++)
		cards[i] = all[i].card;
	return join(handle, comm, engine, all, cards, rank);
}

int nezha_team_open(MPI_Comm handle, struct nezha_comm *comm)
{
	struct introduction *all = malloc((size_t)comm->scale.ranks * sizeof(*all));
	struct nezha_card *cards = malloc((size_t)comm->scale.ranks * sizeof(*cards));
	int rank, error = PMPI_Comm_rank(handle, &rank);

	if (error == MPI_SUCCESS && all && cards)
		error = exchange(handle, comm, rank, all, cards);
	else if (error == MPI_SUCCESS)
		error = nezha_failure(handle, NEZHA_ERR_NOMEM);
	free(cards);
	free(all);
	return error;
}
