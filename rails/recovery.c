/* SPDX-License-Identifier: BSD-3-Clause
 * How a link notices that a path is lost, what becomes of its blocks, and how a path comes (back) into use. */
#include <string.h>

#include "rails/clock.h"
#include "rails/deal.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define LOOK_EVERY (150 * NEZHA_USEC)   /* a look at a path's acknowledgements is a system call */
#define STALL_AFTER (50 * NEZHA_MSEC)   /* no acknowledgement for so long: the path is dead, if another lives */
#define STALL_STEP (10 * NEZHA_MSEC)    /* time in which we did not look counts this much at most */

static void look_now(struct nezha_path *path, uint64_t now)
{
	struct nezha_path_sample sample;
	uint64_t since = now - path->last.time;

	if (path->ops->sample(path, &sample) != NEZHA_OK) {
		nezha_link_path_fail(path, "the connection cannot be asked");
		return;
	}
	sample.time = now;
	if (sample.acked != path->last.acked)
		path->down_before = 0;
	if (sample.acked != path->last.acked || !sample.in_flight)
		path->stalled = 0;
	else
		path->stalled += since < STALL_STEP ? since : STALL_STEP;
	nezha_estimator_sample(&path->estimator, &sample);
	path->last = sample;
}

void nezha_path_look(struct nezha_path *path, uint64_t now)
{
	if (now - path->last.time > LOOK_EVERY && path->written != path->last.acked)
		look_now(path, now);
}

void nezha_link_tick(struct nezha_link *link, uint64_t now)
{
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		struct nezha_path *path = &link->paths[r];

		if (!path->up)
			continue;
		if (path->written != path->last.acked)
			look_now(path, now);
		if (path->up && path->stalled >= STALL_AFTER && nezha_link_paths_up(link) > 1)
			nezha_link_path_fail(path, "nothing is acknowledged");
	}
	if (link->queued)
		nezha_link_pump(link);
}

static void requeue(struct nezha_link *link, struct nezha_path *path)
{
	struct nezha_rail_stats *stats = &link->engine->stats[path->rail];
	struct nezha_tx_list lost = TAILQ_HEAD_INITIALIZER(lost);
	struct nezha_tx *tx;

	if (path->current) {
		path->current->where = NEZHA_TX_IDLE;
		TAILQ_INSERT_TAIL(&lost, path->current, entry);
		path->current = NULL;
	}
	TAILQ_CONCAT(&lost, &path->sent, entry);
	TAILQ_FOREACH(tx, &lost, entry)
		stats->bytes_resent += tx->length;
	while ((tx = TAILQ_FIRST(&lost))) {
		TAILQ_REMOVE(&lost, tx, entry);
		tx->where = NEZHA_TX_IDLE;
		if (nezha_call_tx_useful(&tx->team->call, tx))
			nezha_deal_block(link, tx);
	}
}

void nezha_link_ask_again(struct nezha_link *link)
{
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
		if (link->paths[r].up) {
			link->paths[r].sync = true;
			nezha_link_pump(link);
			return;
		}
}

void nezha_link_path_fail(struct nezha_path *path, const char *cause)
{
	struct nezha_link *link = path->link;
	struct nezha_engine *engine = link->engine;

	if (!path->up)
		return;
	nezha_path_close(path);
	engine->stats[path->rail].failures++;
	path->lost++;
	memset(&path->out, 0, sizeof path->out);
	path->probe_left = 0;
	path->back_have = 0;
	/* One that could be connected but has carried nothing has not ended the time without any. */
	if (!nezha_link_paths_up(link))
		link->down_since = nezha_now() - path->down_before;
	nezha_info("rail %s to process %d on %s is lost: %s", nezha_rail_name(&engine->rails[path->rail]), link->peer,
	           link->card.hostname, cause);
	requeue(link, path);
	nezha_link_ask_again(link);
	nezha_service_kick(engine->service);
	nezha_link_pump(link);
}

void nezha_link_attach(struct nezha_link *link, int rail, const struct nezha_connection *connection)
{
	struct nezha_path *path = &link->paths[rail];
	struct nezha_path_sample sample;

	if (path->up)
		nezha_link_path_fail(path, "replaced by a new connection");
	path->ops = connection->ops;
	path->transport = connection->transport;
	path->end.fd = connection->fd;
	path->events.fd = connection->events;
	if (nezha_engine_watch(link->engine, &path->end) != NEZHA_OK ||
	    nezha_engine_watch(link->engine, &path->events) != NEZHA_OK) {
		nezha_path_close(path);
		return;
	}
	path->up = path->ready = true;
	path->written = path->stalled = path->base_acked = 0;
	memset(&path->last, 0, sizeof path->last);
	if (path->ops->sample(path, &sample) == NEZHA_OK)
		path->base_acked = sample.acked;
	path->last.time = nezha_now();
	nezha_estimator_restart(&path->estimator);
	path->down_before = link->down_since && path->ops->apart ? path->last.time - link->down_since : 0;
	link->down_since = 0;
	if (path->lost) {
		link->engine->stats[rail].returns++;
		nezha_info("rail %s to process %d on %s is back", nezha_rail_name(&link->engine->rails[rail]), link->peer,
		           link->card.hostname);
	}
	/* Shares start anew, else the newcomer would be given everything until it had caught up. */
	nezha_deal_anew(link);
	path->sync = link->opened;
	/* A rail that was out of reach when the link was opened: its nominal speed may be far off. */
	if (link->opened && path->estimator.weight == 0)
		nezha_link_probe(path);
	nezha_link_pump(link);
}
