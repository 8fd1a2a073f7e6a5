/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/service_verbs.h"

#include "rails/engine.h"
#include "rails/link.h"

void nezha_service_verbs_turn(struct nezha_engine *engine, uint64_t now, uint64_t *next)
{
	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		uint64_t again;
		bool back;

		if (!engine->verbs[r])
			continue;
		nezha_verbs_bury(engine->verbs[r], engine);
		again = nezha_verbs_revive(engine->verbs[r], now, &back);
		if (again < *next)
			*next = again;
		if (!back)
			continue;
		nezha_fairlock_take(&engine->lock);
		nezha_rail_retry(engine, r);
		nezha_fairlock_give(&engine->lock);
	}
}

bool nezha_service_verbs_usable(const struct nezha_engine *engine, uint32_t r)
{
	return !engine->verbs[r] || nezha_verbs_usable(engine->verbs[r]);
}

int nezha_service_verbs_watch(const struct nezha_engine *engine, uint32_t r)
{
	return engine->verbs[r] ? nezha_verbs_watch(engine->verbs[r]) : -1;
}

void nezha_service_verbs_event(struct nezha_engine *engine, uint32_t r)
{
	enum nezha_verbs_event event = nezha_verbs_event(engine->verbs[r]);

	if (event == NEZHA_VERBS_NOTHING)
		return;
	nezha_fairlock_take(&engine->lock);
	if (event == NEZHA_VERBS_LOST)
		nezha_rail_lost(engine, r, false, "the port or its device has failed");
	nezha_rail_retry(engine, r);
	nezha_fairlock_give(&engine->lock);
	nezha_engine_wake(engine);
}
