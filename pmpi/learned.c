/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/learned.h"

#include <stdlib.h>

#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/origin.h"
#include "tuning/learned.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* What decides in place of what could be learnt. */
static const char *why_not(const struct nezha_settings *settings)
{
	if (!settings->enable)
		return "NEZHA_ENABLE=0";
	return *settings->table ? "NEZHA_TABLE" : "NEZHA_REPRODUCIBLE=1";
}

int nezha_learned_begin(void)
{
	const struct nezha_job *job = &nezha_context.job;
	const char *path = job->settings.learned;
	struct nezha_fingerprint here;

	if (job->rank != 0 || !*path)
		return NEZHA_OK;
	if (!nezha_context.learning || !job->settings.enable) {
		nezha_warn("NEZHA_LEARNED=%s: nothing is written, since with %s nothing is learnt", path,
		           why_not(&job->settings));
		return NEZHA_OK;
	}
	nezha_origin_here(&here);
	if (nezha_learned_check(path, &here) != NEZHA_OK)
		return NEZHA_OK;
	nezha_context.learned = calloc(1, sizeof(*nezha_context.learned));
	return nezha_context.learned ? NEZHA_OK : NEZHA_ERR_NOMEM;
}

static void forget(struct nezha_learned *learned)
{
	nezha_learned_clear(learned);
	free(learned);
}

void nezha_learned_cancel(void)
{
	struct nezha_learned *learned;

	pthread_mutex_lock(&nezha_context.lock);
	learned = nezha_context.learned;
	nezha_context.learned = NULL;
	pthread_mutex_unlock(&nezha_context.lock);
	if (learned)
		forget(learned);
}

void nezha_learned_take(const struct nezha_comm *comm)
{
	if (nezha_context.learned && comm->model)
		nezha_learned_keep(nezha_context.learned, &comm->scale, comm->model);
}

void nezha_learned_end(void)
{
	const struct nezha_job *job = &nezha_context.job;
	const char *path = job->settings.learned;
	struct nezha_learned *learned;
	struct nezha_fingerprint here;
	struct nezha_comm *comm;

	pthread_mutex_lock(&nezha_context.lock);
	LIST_FOREACH(comm, &nezha_context.comms, entry)
		nezha_learned_take(comm);
	learned = nezha_context.learned;
	nezha_context.learned = NULL;
	pthread_mutex_unlock(&nezha_context.lock);
	if (!learned)
		return;
	nezha_origin_here(&here);
	if (nezha_learned_write(learned, job->table, &here, path) == NEZHA_OK && learned->count)
		nezha_info("what was learnt is in NEZHA_LEARNED=%s", path);
	forget(learned);
}
