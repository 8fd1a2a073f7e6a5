/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/tuner.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/learned.h"
#include "pmpi/origin.h"
#include "rails/team.h"
#include "tuning/model_known.h"
#include "tuning/status.h"
#include "tuning/table.h"

/* The rule over an empty table; NULL: the built-in one. */
static int make_table(const char *rule, struct nezha_table **out, char **message)
{
	static const char empty[] = "{\"version\": 1, \"collectives\": {\"allreduce\": []}}";
	struct nezha_table *table;
	int status;

	if (!rule)
		return nezha_table_builtin(out);
	status = nezha_table_parse(empty, sizeof(empty) - 1, "empty table", &table, message);

	if (status != NEZHA_OK)
		return status;
	status = nezha_table_override(table, rule, message);
	if (status == NEZHA_OK)
		*out = table;
	else
		nezha_table_free(table);
	return status;
}

static int set_rule(const char *rule, char *error, size_t len)
{
	struct nezha_job *job = &nezha_context.job;
	struct nezha_table *table;
	char *message = NULL;

	if (make_table(rule, &table, &message) != NEZHA_OK) {
		snprintf(error, len, "%s", message ? message : "no memory");
		free(message);
		return -1;
	}
	nezha_learned_cancel();
	nezha_table_free(job->table);
	job->table = table;
	nezha_context.table_floor = nezha_job_floor(job);
	nezha_context_aim();
	return 0;
}

/* Those that work: a rule that names another one is one for all rails. */
static void name_rails(const struct nezha_team *team, uint32_t work, struct nezha_rail_set *out)
{
	int most, common = nezha_team_rails_common(team, &most);

	for (int c = 0; c < common; c++) {
		struct nezha_subnet subnet = nezha_team_rail(team, c);

		const struct nezha_rail_set one = { .count = 1, .subnet = { subnet } };

		/* Two interfaces in one subnet cannot be told apart by a rule: they are one. */
		if (nezha_team_rails_named(team, &one) & work && !nezha_rail_set_has(out, &subnet))
			out->subnet[out->count++] = subnet;
	}
}

/* NULL: it is none, or there was no memory. */
static struct nezha_comm *find(nezha_word handle)
{
	struct nezha_comm *comm = NULL;

	if (nezha_context.on && nezha_comm_find((MPI_Comm)handle, &comm) != MPI_SUCCESS) {
		nezha_failure_tell((MPI_Comm)handle);
		return NULL;
	}
	return comm;
}

static int tell_learnt(nezha_word handle, uint64_t bytes, struct nezha_tuner_learnt *out)
{
	struct nezha_comm *comm = find(handle);
	struct nezha_decision decision = { .alg = NEZHA_ALG_NATIVE };
	struct nezha_plan plan;

	memset(out, 0, sizeof(*out));
	if (!comm)
		return -1;
	nezha_plan_make(nezha_context.job.table, &comm->scale, bytes, &plan);
	out->complete = !comm->model || plan.alg == NEZHA_ALG_NATIVE ||
	                (nezha_model_decided(comm->model, bytes, &decision) && !decision.trying);
	out->apart = comm->model && nezha_model_is_apart(comm->model);
	if (out->apart && out->complete && decision.alg == NEZHA_ALG_MIX)
		snprintf(out->mix, sizeof(out->mix), "alg=mix,block=%" PRIu32 ",share=0.%03u,call=%s", plan.block, decision.share,
		         decision.blocking ? "blocking" : "nonblocking");
	return 0;
}

static int describe(nezha_word handle, struct nezha_tuner_job *out)
{
	struct nezha_comm *comm = find(handle);

	memset(out, 0, sizeof(*out));
	if (!comm)
		return -1;
	out->scale = comm->scale;
	out->open = nezha_comm_is_open(comm) && nezha_comm_ring(comm);
	if (out->open)
		name_rails(nezha_comm_ring(comm), comm->rails, &out->rails);
	else
		snprintf(out->why, sizeof(out->why), "%s", nezha_reason_text(comm->reason));
	nezha_origin_here(&out->here);
	return 0;
}

const struct nezha_tuner nezha_tuner = { .rule = set_rule, .learnt = tell_learnt, .describe = describe };
