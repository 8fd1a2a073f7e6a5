/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/host.h"
#include "rails/ina.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"
#include "tuning/trace.h"

#define HOLD_LIMIT (100 * NEZHA_MSEC)

struct nezha_team_list *nezha_engine_bucket(struct nezha_engine *engine, uint64_t id)
{
	/* Multiplying by 2^64 / golden ratio spreads ids that differ in few bits (Knuth, TAOCP 6.4). */
	return &engine->table[(id * 0x9e3779b97f4a7c15ull) >> 56];
}

struct nezha_team *nezha_engine_team(struct nezha_engine *engine, uint64_t id)
{
	struct nezha_team *team;

	LIST_FOREACH(team, nezha_engine_bucket(engine, id), same)
		if (team->id == id)
			return team;
	return NULL;
}

static void name_rails(const struct nezha_engine *engine)
{
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		nezha_trace_name(engine->config.trace, r, engine->stats[r].device);
	for (uint32_t i = 0; i < engine->config.aggregator_count; i++) {
		struct nezha_rail_stats stats;

		nezha_ina_stats(engine, i, &stats);
		nezha_trace_name(engine->config.trace, NEZHA_RAILS_MAX + i, stats.device);
	}
	if (engine->config.sharp.wanted)
		nezha_trace_name(engine->config.trace, NEZHA_RAILS_MAX + engine->config.aggregator_count, "sharp");
}

int nezha_engine_create(const struct nezha_engine_config *config, struct nezha_engine **out)
{
	struct nezha_engine *engine = calloc(1, sizeof *engine);
	struct epoll_event event = { .events = EPOLLIN };
	int rc = NEZHA_ERR_SYSTEM;

	if (!engine) {
		nezha_lack_note(config->lack, "the engine's memory", errno);
		return NEZHA_ERR_NOMEM;
	}
	engine->config = *config;
	memcpy(engine->key, config->key, sizeof engine->key);
	engine->config.key = engine->key;
	memcpy(engine->rails, config->rails, config->rail_count * sizeof *config->rails);
	engine->config.rails = engine->rails;
	engine->verbs_memory.limit = (uint64_t)config->verbs.memory << 20;
	engine->card.protocol = NEZHA_PROTOCOL;
	engine->card.process = config->process;
	engine->card.host = nezha_host_identity(engine->card.hostname, sizeof engine->card.hostname);
	LIST_INIT(&engine->teams);
	LIST_INIT(&engine->links);
	LIST_INIT(&engine->inlinks);
	LIST_INIT(&engine->inas);
	LIST_INIT(&engine->ina_spare);
	nezha_fairlock_init(&engine->lock);
	pthread_cond_init(&engine->changed, NULL);
	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (engine->epoll < 0) {
		nezha_lack_note(config->lack, "epoll_create1", errno);
		nezha_info("epoll_create1: %m");
		goto free_engine;
	}
	engine->wake = (struct nezha_endpoint){ NEZHA_END_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	event.data.ptr = &engine->wake;
	if (engine->wake.fd < 0 || epoll_ctl(engine->epoll, EPOLL_CTL_ADD, engine->wake.fd, &event)) {
		nezha_lack_note(config->lack, "eventfd", errno);
		nezha_info("eventfd: %m");
		goto close_fds;
	}
	rc = nezha_service_start(engine, &engine->service);
	if (rc != NEZHA_OK)
		goto close_fds;
	if (config->trace)
		name_rails(engine);
	*out = engine;
	return NEZHA_OK;

close_fds:
	if (engine->wake.fd >= 0)
		close(engine->wake.fd);
	close(engine->epoll);
free_engine:
	pthread_cond_destroy(&engine->changed);
	nezha_fairlock_destroy(&engine->lock);
	free(engine);
	return rc;
}

void nezha_engine_destroy(struct nezha_engine *engine)
{
	struct nezha_link *link;
	struct nezha_inlink *inlink;

	if (!engine)
		return;
	nezha_service_stop(engine->service);
	engine->service = NULL;
	while ((link = LIST_FIRST(&engine->links)))
		nezha_link_destroy(link);
	while ((inlink = LIST_FIRST(&engine->inlinks)))
		nezha_inlink_destroy(inlink);
	nezha_ina_free_spare(engine);
	nezha_lender_close(&engine->lender);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		nezha_verbs_close(engine->verbs[r]);
	if (engine->verbs_memory.most)
		nezha_debug("verbs rails had %" PRIu64 " bytes registered at most", (uint64_t)engine->verbs_memory.most);
	close(engine->wake.fd);
	close(engine->epoll);
	pthread_cond_destroy(&engine->changed);
	nezha_fairlock_destroy(&engine->lock);
	free(engine);
}

bool nezha_engine_hold(struct nezha_engine *engine)
{
	struct timespec until = nezha_wall_after(HOLD_LIMIT);

	if (!nezha_service_hold(engine->service, &until))
		return false;
	if (nezha_fairlock_take_until(&engine->lock, &until))
		return true;
	nezha_service_release(engine->service);
	return false;
}

void nezha_engine_release(struct nezha_engine *engine)
{
	nezha_fairlock_give(&engine->lock);
	nezha_service_release(engine->service);
}

void nezha_engine_abandon(struct nezha_engine *engine)
{
	struct nezha_link *link;
	struct nezha_inlink *inlink;

	/* The engine's memory is left alone. */
	nezha_service_abandon(engine->service);
	LIST_FOREACH(link, &engine->links, entry)
		for (int r = 0; r < NEZHA_RAILS_MAX; r++)
			if (link->paths[r].joined && link->paths[r].end.fd >= 0)
				close(link->paths[r].end.fd);
	LIST_FOREACH(inlink, &engine->inlinks, entry)
		for (int r = 0; r < NEZHA_RAILS_MAX; r++)
			if (inlink->paths[r].end.fd >= 0)
				close(inlink->paths[r].end.fd);
	nezha_ina_abandon(engine);
	nezha_lender_close(&engine->lender);
	close(engine->wake.fd);
	close(engine->epoll);
}

void nezha_engine_card(const struct nezha_engine *engine, struct nezha_card *out)
{
	nezha_fairlock_take((struct nezha_fairlock *)&engine->lock);
	*out = engine->card;
	out->ina_room = nezha_ina_has_room(engine);
	nezha_fairlock_give((struct nezha_fairlock *)&engine->lock);
}

size_t nezha_engine_rail_stats(const struct nezha_engine *engine, struct nezha_rail_stats *out, size_t max)
{
	size_t count = engine->card.rail_count < max ? engine->card.rail_count : max;

	nezha_fairlock_take((struct nezha_fairlock *)&engine->lock);
	memcpy(out, engine->stats, count * sizeof *out);
	for (uint32_t i = 0; i < engine->config.aggregator_count && count < max; i++)
		nezha_ina_stats(engine, i, &out[count++]);
	if (engine->config.sharp.wanted && count < max) {
		out[count] = engine->stats[NEZHA_RAILS_MAX + engine->config.aggregator_count];
		strcpy(out[count].device, "sharp");
		snprintf(out[count].subnet, sizeof out->subnet, "%.23s", engine->config.sharp.device);
		count++;
	}
	nezha_fairlock_give((struct nezha_fairlock *)&engine->lock);
	return count;
}

void nezha_engine_registered(const struct nezha_engine *engine, struct nezha_registered *out)
{
	const struct nezha_verbs_memory *memory = &engine->verbs_memory;

	*out = (struct nezha_registered){ .now = memory->now, .most = memory->most, .limit = memory->limit };
}
