/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/service_verbs.h"

#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/link.h"

void nezha_service_verbs_turn(struct nezha_engine *engine, uint64_t now, uint64_t *next)
{
	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		uint64_t again;

		if (!engine->verbs[r])
			continue;
		nezha_verbs_bury(engine->verbs[r], engine);
		again = nezha_verbs_revive(engine->verbs[r], now);
		if (again < *next)
			*next = again;
	}
}

int nezha_service_verbs_watch(const struct nezha_engine *engine, uint32_t r)
{
	return engine->verbs[r] ? nezha_verbs_watch(engine->verbs[r]) : -1;
}

static void fail_paths(struct nezha_engine *engine, uint32_t r)
{
	struct nezha_inlink *inlink;
	struct nezha_link *link;

	LIST_FOREACH(link, &engine->links, entry)
		nezha_link_path_fail(&link->paths[r], "the port or its device has failed");
	LIST_FOREACH(inlink, &engine->inlinks, entry)
		nezha_inlink_path_fail(&inlink->paths[r], "the port or its device has failed");
}

void nezha_service_verbs_event(struct nezha_engine *engine, uint32_t r)
{
	enum nezha_verbs_event event = nezha_verbs_event(engine->verbs[r]);
	struct nezha_link *link;

	if (event == NEZHA_VERBS_NOTHING)
		return;
	pthread_mutex_lock(&engine->lock);
	if (event == NEZHA_VERBS_LOST)
		fail_paths(engine, r);
	LIST_FOREACH(link, &engine->links, entry)
		link->paths[r].retry_at = link->paths[r].pause = 0;
	pthread_mutex_unlock(&engine->lock);
	nezha_engine_wake(engine);
}
