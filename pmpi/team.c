/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/team.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/native.h"
#include "pmpi/rails.h"
#include "pmpi/scale.h"
#include "rails/hierarchy.h"
#include "tuning/model.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* The bits of a connection's mask that stand for rails. */
#define RAILS_MASK ((1u << NEZHA_RAILS_MAX) - 1)

/* What a rank says when a team opens. */
struct introduction {
	uint64_t id;               /* of a ring's first rank counts */
	uint32_t refused;          /* its info says no */
	uint32_t gpu;              /* there is a GPU's library in the process */
	uint32_t failed;           /* it has no engine, or no memory to share */
	uint32_t reserved;
	struct nezha_node_offer offer;
	struct nezha_card card;
};

/* Of a loaded object; *found: the beginning of its file's name, if it is a GPU's library of any version. */
static int look_for_gpu(struct dl_phdr_info *object, size_t size, void *found)
{
	static const char *const names[] = { "libcuda.so", "libamdhip64.so", "libze_loader.so" };
	const char *slash = strrchr(object->dlpi_name, '/'), *file = slash ? slash + 1 : object->dlpi_name;

	(void)size;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			*(const char **)found = names[i];
	return *(const char **)found != NULL;
}

/* Memory of a GPU looks like any other in a call's arguments, and whether a buffer is there is known to one
 * rank only.  Where a process can have such buffers at all, the MPI library keeps the communicator.  The name of the GPU's
 * library; NULL: there is none. */
static const char *gpu_library(void)
{
	const char *found = NULL;

	dl_iterate_phdr(look_for_gpu, &found);
	return found;
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

/* With several ranks on a node there is a hierarchy.  On one node alone, where only a rule of the user's leads to, all ranks
 * are a ring. */
static int make_hierarchy(MPI_Comm handle, struct nezha_comm *comm, int rank, struct nezha_engine *engine,
                          struct nezha_node_offer *offer)
{
	const struct nezha_scale *scale = &comm->scale;
	int *node, status = NEZHA_ERR_NOMEM;

	if (scale->ppn == 1 || scale->nodes == 1)
		return NEZHA_OK;
	node = malloc((size_t)scale->ranks * sizeof(*node));
	if (node)
		status = nezha_scale_nodes(handle, scale->ranks, node);
	if (status == NEZHA_OK)
		status = nezha_hierarchy_create(engine, node, scale->ranks, scale->nodes, rank, &comm->hierarchy, offer);
	free(node);
	return status;
}

static void introduce(MPI_Comm handle, struct nezha_comm *comm, int rank, struct nezha_engine **engine,
                      struct introduction *out)
{
	memset(out, 0, sizeof(*out));
	*engine = NULL;
	out->id = draw_id();
	out->refused = comm->refused;
	out->gpu = gpu_library() != NULL;
	nezha_lack_clear(&nezha_context.lack);
	if (!out->refused && !out->gpu)
		out->failed = nezha_rails_engine(engine) != NEZHA_OK || !make_model(comm) ||
		              make_hierarchy(handle, comm, rank, *engine, &out->offer) != NEZHA_OK;
	if (*engine)
		nezha_engine_card(*engine, &out->card);
}

/* What is used up, or not to be had; as a warning only the first time. */
static void tell_lack(void)
{
	const char *what = atomic_load(&nezha_context.lack.what);
	int number = atomic_load(&nezha_context.lack.error);
	char cause[128] = "no memory";

	if (what)
		snprintf(cause, sizeof(cause), "%s%s%s", what, number ? ": " : "", number ? strerror(number) : "");
	nezha_log(atomic_exchange(&nezha_context.lacking, true) ? NEZHA_LOG_INFO : NEZHA_LOG_WARN,
	          "%s: the MPI library does the allreduces of a communicator with this rank", cause);
}

/* The rank that shall say why all of them stay with the MPI library: the first one that is to blame. */
static int first_reason(const struct introduction *all, int ranks, enum nezha_reason reason)
{
	int first = 0;

	while (first < ranks && !(reason == NEZHA_REASON_BUFFER ? all[first].gpu : all[first].failed))
		first++;
	return first;
}

/* By that rank, of a reason that the user can do something about. */
static void tell_reason(enum nezha_reason reason)
{
	const char *library = gpu_library();

	if (reason == NEZHA_REASON_OPEN_FAILED)
		tell_lack();
	else if (reason == NEZHA_REASON_BUFFER)
		nezha_log(atomic_exchange(&nezha_context.gpu, true) ? NEZHA_LOG_INFO : NEZHA_LOG_WARN,
		          "a process has loaded %s, so that buffers may be a GPU's: the MPI library does the allreduces of a "
		          "communicator with this rank", library ? library : "a GPU's library");
}

/* Whether a lack was why the rails of some rank do not work; the first of them tells. */
static int agree_on_lack(MPI_Comm handle, int rank, bool mine, bool *any)
{
	int first = INT_MAX, own = mine ? rank : INT_MAX;
	int error = nezha_native_allreduce(&own, &first, 1, MPI_INT, MPI_MIN, handle);

	*any = first != INT_MAX;
	if (error == MPI_SUCCESS && first == rank)
		tell_lack();
	return error;
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

/* Connects and says which rails work to this rank's neighbour; 0 if it could not even begin, all bits if others of its node
 * connect. */
static uint32_t connect_rank(struct nezha_comm *comm, struct nezha_engine *engine, const struct introduction *all,
                             const struct nezha_card *cards, int rank)
{
	double timeout = nezha_context.job.settings.open_timeout;
	uint32_t rails = 0;

	if (comm->hierarchy)
		nezha_hierarchy_connect(comm->hierarchy, cards, &all[nezha_hierarchy_host(comm->hierarchy)].offer,
		                        all[nezha_hierarchy_leader(comm->hierarchy)].id, timeout, &rails);
	else if (nezha_team_create(engine, cards, comm->scale.ranks, rank, all[0].id, &comm->team) != NEZHA_OK ||
	         nezha_team_connect(comm->team, timeout, &rails) != NEZHA_OK)
		return 0;
	return rails;
}

/* Whether a rail joins all ranks, as far as this one can tell. */
static bool has_common(const struct nezha_team *team)
{
	int most;

	return !team || nezha_team_rails_common(team, &most) > 0;
}

/* Fewer rails than there might be: told by a communicator's first rank, as a warning only the first time. */
static void tell_fewer(const struct nezha_team *team, int rank, uint32_t rails)
{
	int most = 0, common = nezha_team_rails_common(team, &most);
	int used = __builtin_popcount(rails & RAILS_MASK);
	enum nezha_log_level level;

	if (rank != 0 || (used == most && used))
		return;
	level = atomic_exchange(&nezha_context.warned, true) ? NEZHA_LOG_INFO : NEZHA_LOG_WARN;
	if (!common && !rails)
		nezha_log(level, "no rail joins all ranks of a communicator: the MPI library does its "
		          "allreduces (nezha-info on each host shows the rails)");
	else if (!rails)
		nezha_log(level, "none of the %d rails that the ranks of a communicator have in common leads "
		          "from each rank to the next: the MPI library does its allreduces "
		          "(a firewall? NEZHA_LOG=info tells more)", common);
	else if (!used)
		nezha_log(level, "no rail leads from each rank of a communicator to the next: each uses those that do from it to its "
		          "neighbour (NEZHA_LOG=info tells more)");
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
	uint32_t mine[3], agreed[3] = { 0 };   /* the rails that work; whether there is one in common; calls that share by a guess */
	bool lack = false;
	int error;

	if (reason != NEZHA_REASON_RULE && rank == first_reason(all, comm->scale.ranks, reason))
		tell_reason(reason);
	if (reason != NEZHA_REASON_RULE) {
		nezha_comm_retire(comm, reason);
		return MPI_SUCCESS;
	}
	mine[0] = connect_rank(comm, engine, all, cards, rank);
	mine[1] = has_common(nezha_comm_ring(comm));
	mine[2] = nezha_comm_ring(comm) ? nezha_team_guesses(nezha_comm_ring(comm)) : UINT32_MAX;    /* who carries decides */
	error = nezha_native_allreduce(mine, agreed, 3, MPI_UINT32_T, MPI_BAND, handle);
	if (error != MPI_SUCCESS)
		agreed[0] = 0;
	else if (!agreed[0])
		error = agree_on_lack(handle, rank, atomic_load(&nezha_context.lack.what), &lack);
	if (comm->model && agreed[2])
		comm->model->guesses = agreed[2] + 1;
	if (nezha_comm_ring(comm) && !lack)
		tell_fewer(nezha_comm_ring(comm), rank, agreed[0]);
	comm->rails = agreed[0] & RAILS_MASK;
	if (!agreed[0])
		nezha_comm_retire(comm, agreed[1] ? NEZHA_REASON_OPEN_FAILED : NEZHA_REASON_NO_RAIL);
	else if (comm->hierarchy)
		nezha_hierarchy_activate(comm->hierarchy, agreed[0]);
	else
		nezha_team_activate(comm->team, agreed[0]);
	return error;
}

static int exchange(MPI_Comm handle, struct nezha_comm *comm, int rank, struct introduction *all,
                    struct nezha_card *cards)
{
	struct introduction self;
	struct nezha_engine *engine;
	int error;

	introduce(handle, comm, rank, &engine, &self);
	error = PMPI_Allgather(&self, sizeof(self), MPI_BYTE, all, sizeof(self), MPI_BYTE, handle);
	if (error != MPI_SUCCESS) {
		nezha_hierarchy_destroy(comm->hierarchy);
		comm->hierarchy = NULL;
		return error;
	}
	for (int i = 0; i < comm->scale.ranks; i++)
		cards[i] = all[i].card;
	return join(handle, comm, engine, all, cards, rank);
}

/* A rank without memory for what the others say would leave them waiting for its own introduction: so all hear of it before. */
static int agree_on_memory(MPI_Comm handle, int rank, bool mine, bool *lack)
{
	if (!mine)
		nezha_lack_clear(&nezha_context.lack);
	return agree_on_lack(handle, rank, !mine, lack);
}

int nezha_team_open(MPI_Comm handle, struct nezha_comm *comm)
{
	struct introduction *all = malloc((size_t)comm->scale.ranks * sizeof(*all));
	struct nezha_card *cards = malloc((size_t)comm->scale.ranks * sizeof(*cards));
	int rank, error = PMPI_Comm_rank(handle, &rank);
	bool lack = false;

	if (error == MPI_SUCCESS)
		error = agree_on_memory(handle, rank, all && cards, &lack);
	if (error == MPI_SUCCESS && lack)
		nezha_comm_retire(comm, NEZHA_REASON_OPEN_FAILED);
	else if (error == MPI_SUCCESS)
		error = exchange(handle, comm, rank, all, cards);
	free(cards);
	free(all);
	return error;
}
