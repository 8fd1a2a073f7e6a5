/* SPDX-License-Identifier: BSD-3-Clause
 * How a link notices that a path is lost, what becomes of its blocks, and how a path comes (back) into use. */
#include <string.h>

#include "rails/clock.h"
#include "rails/deal.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/probing.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/pause.h"
#include "tuning/status.h"

#define LOOK_EVERY (150 * NEZHA_USEC)   /* a look at a path's acknowledgements is a system call */
#define CARRIER_AFTER (4 * NEZHA_MSEC)  /* no acknowledgement for so long: is there a carrier? */
#define STALL_AFTER (50 * NEZHA_MSEC)   /* no acknowledgement for so long: the path is dead, if another lives */
#define STALL_SEEN (10 * NEZHA_MSEC)    /* ... nothing is expected of it */
#define STALL_ALONE (2 * NEZHA_SEC)     /* ... or, if none does, and nothing else was heard: TCP would wait for minutes (tcp_retries2) */
#define DARK_PAUSE (5 * NEZHA_SEC)      /* between attempts over an interface that says it has no carrier */
/* A path over which so many blocks came wrong within this time is lost, if another one is up; without another one, if one
 * block has come wrong WRONG_MOST times.  It is not connected again for a time that doubles with each such loss. */
#define WRONG_SOME 3
#define WRONG_TIME (10 * NEZHA_SEC)
#define WRONG_MOST 16
#define SHUN_LEAST NEZHA_SEC
#define SHUN_MOST (60 * NEZHA_SEC)
#define SHUN_FORGET (600 * NEZHA_SEC)   /* after such a time without, the next one is a first one */

static void look_now(struct nezha_path *path, uint64_t now)
{
	struct nezha_path_sample sample;

	if (path->ops->sample(path, &sample) != NEZHA_OK) {
		nezha_link_path_fail(path, "the connection cannot be asked");
		return;
	}
	/* The loss of another path, since `now` was read, may have made us look already. */
	sample.time = now = now > path->last.time ? now : path->last.time;
	if (sample.acked != path->last.acked)
		path->down_before = 0;
	if (sample.acked != path->last.acked || !sample.in_flight)
		path->stalled = 0;
	else if (path->last.in_flight)
		path->stalled += nezha_looked(path->last.time, now);
	nezha_estimator_sample(&path->estimator, &sample);
	nezha_ack_delay_look(&path->ack_delay, &sample);
	path->last = sample;
}

void nezha_path_look(struct nezha_path *path, uint64_t now)
{
	if (now - path->last.time > LOOK_EVERY && path->written != path->last.acked)
		look_now(path, now);
}

/* Bytes per second of the link's other paths, those that keep what they have promised. */
static double others(const struct nezha_path *path)
{
	const struct nezha_link *link = path->link;
	double rates = 0;

	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		const struct nezha_path *other = &link->paths[r];

		if (other != path && other->up && !other->overdue.since && other->stalled < STALL_SEEN)
			rates += other->estimator.rate;
	}
	return rates;
}

/* Its blocks would sooner be there over other paths. */
static void give_up_if_slow(struct nezha_path *path)
{
	double rate;

	if ((TAILQ_EMPTY(&path->sent) && !path->current) || !nezha_overdue_look(&path->overdue, &path->last, others(path), &rate))
		return;
	/* What it is worth will be found out by a probe, once it is connected again. */
	nezha_estimator_init(&path->estimator, rate > 1 ? rate : 1);
	nezha_link_path_fail(path, "it has become far slower");
}

/* On a slow path one lost packet can hold up what counts as acknowledged for seconds, while answers come in all the time. */
static bool is_dead(const struct nezha_path *path)
{
	if (nezha_link_paths_up(path->link) > 1)
		return path->stalled >= STALL_AFTER;
	return path->stalled >= STALL_ALONE && path->last.quiet >= STALL_ALONE;
}

/* The path does not move although it should. */
static void doubt(struct nezha_path *path, uint64_t now)
{
	struct nezha_link *link = path->link;

	if (path->stalled >= CARRIER_AFTER && now - path->doubted > CARRIER_AFTER && link->card.host != link->engine->card.host) {
		path->doubted = now;
		link->engine->doubted |= 1u << path->rail;
		nezha_service_kick(link->engine->service);
	}
	if (is_dead(path))
		nezha_link_path_fail(path, "nothing is acknowledged");
	else
		give_up_if_slow(path);
}

void nezha_link_tick(struct nezha_link *link, uint64_t now)
{
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		struct nezha_path *path = &link->paths[r];

		if (!path->up)
			continue;
		if (path->written != path->last.acked)
			look_now(path, now);
		if (path->up)
			doubt(path, now);
	}
	if (link->queued)
		nezha_link_pump(link);
}

static struct nezha_requeued requeue(struct nezha_link *link, struct nezha_path *path)
{
	struct nezha_requeued again = { 0, 0 };
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
		if (!nezha_call_tx_useful(&tx->team->call, tx))
			continue;
		again.blocks++;
		again.bytes += tx->length;
		nezha_deal_block(link, tx);
	}
	return again;
}

/* Whether the path is to be given up, with the block that has just come wrong. */
static bool is_lying(struct nezha_path *path, const struct nezha_tx *tx, uint64_t now)
{
	struct nezha_suspicion *suspicion = &path->suspicion;

	if (now - suspicion->since > WRONG_TIME) {
		suspicion->since = now;
		suspicion->wrong = 0;
	}
	suspicion->wrong++;
	return tx->wrong >= WRONG_MOST || (suspicion->wrong >= WRONG_SOME && nezha_link_paths_up(path->link) > 1);
}

/* Alone it is left for longer than a link may be without any path, so that the call ends. */
static void shun(struct nezha_path *path, uint64_t now)
{
	struct nezha_suspicion *suspicion = &path->suspicion;

	suspicion->alone = nezha_link_paths_up(path->link) == 1;
	if (now > suspicion->until && now - suspicion->until > SHUN_FORGET)
		suspicion->pause = 0;
	suspicion->pause = suspicion->alone ? SHUN_MOST : nezha_pause_longer(suspicion->pause, SHUN_LEAST, SHUN_MOST);
	suspicion->until = now + suspicion->pause;
	suspicion->wrong = 0;
	nezha_link_path_fail(path, "blocks came wrong over it");
}

uint64_t nezha_path_due(const struct nezha_path *path)
{
	const struct nezha_link *link = path->link;
	bool others = nezha_link_paths_up(link) > 0, dark = link->engine->dark >> path->rail & 1;
	uint64_t due = path->retry_at;

	/* Without a carrier it would be in vain; but an interface may not know of one that it has. */
	if (dark && link->card.host != link->engine->card.host && path->left_at + DARK_PAUSE > due)
		due = path->left_at + DARK_PAUSE;

	/* Where there is no other, even a flapping rail is better than none; one that changes what it carries is, too, unless it has been
	 * given up for that when there was no other. */
	if (others)
		due = nezha_damping_due(&path->damping, due);
	if (path->suspicion.until > due && (others || path->suspicion.alone))
		due = path->suspicion.until;
	return due;
}

void nezha_link_came_wrong(struct nezha_path *path, const struct nezha_wire *record)
{
	uint64_t now = nezha_now();
	struct nezha_tx *tx;

	TAILQ_FOREACH(tx, &path->sent, entry)
		if (tx->team->id == record->team && tx->team->call.op == record->op && tx->block == record->block &&
		    tx->kind == record->origin)
			break;
	if (!tx)
		return;         /* of a call that is over */
	path->link->engine->stats[path->rail].bytes_resent += tx->length;
	tx->wrong += tx->wrong < UINT8_MAX;
	TAILQ_REMOVE(&path->sent, tx, entry);
	tx->where = NEZHA_TX_IDLE;
	if (nezha_call_tx_useful(&tx->team->call, tx))
		nezha_deal_block(path->link, tx);
	if (is_lying(path, tx, now))
		shun(path, now);
	else
		nezha_link_pump(path->link);
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

/* Reads the acknowledgements that lie in the connection: what they name need not go again, and where one connection after the other is
 * soon lost, each brings the call on.  An error is not looked at, since the path is given up anyway. */
static void hear_last(struct nezha_path *path)
{
	if (path->hearing == NEZHA_HEAR_ALL) {
		path->hearing = NEZHA_HEAR_ACKS;
		(void)path->ops->listen(path);
	}
	path->hearing = NEZHA_HEAR_NOTHING;
}

void nezha_link_path_fail(struct nezha_path *path, const char *cause)
{
	struct nezha_link *link = path->link;
	struct nezha_engine *engine = link->engine;
	uint64_t now = nezha_now();
	struct nezha_requeued again;

	if (!path->up)
		return;
	hear_last(path);
	nezha_path_close(path);
	path->untold = true;
	path->left_at = now;
	if (nezha_damping_lost(&path->damping, now, now / NEZHA_USEC * (uint64_t)(path->rail + 1)))
		path->retry_at = path->pause = 0;
	engine->stats[path->rail].failures++;
	path->lost++;
	memset(&path->out, 0, sizeof path->out);
	path->probe_left = 0;
	path->back_have = 0;
	/* One that could be connected but has carried nothing has not ended the time without any. */
	if (!nezha_link_paths_up(link)) {
		link->down_since = now - path->down_before;
		link->silent = path->stalled < path->last.quiet ? path->stalled : path->last.quiet;
	}
	again = requeue(link, path);
	nezha_event_lost(path, cause, &again);
	nezha_link_ask_again(link);
	nezha_service_kick(engine->service);
	nezha_link_pump(link);
}

void nezha_rail_lost(struct nezha_engine *engine, uint32_t rail, bool far, const char *cause)
{
	struct nezha_inlink *inlink;
	struct nezha_link *link;

	/* Those that come in first: the news of them goes out over other rails before these have the lost blocks to send. */
	LIST_FOREACH(inlink, &engine->inlinks, entry)
		if (!far || inlink->host != engine->card.host)
			nezha_inlink_path_fail(&inlink->paths[rail], cause);
	LIST_FOREACH(link, &engine->links, entry)
		if (!far || link->card.host != engine->card.host)
			nezha_link_path_fail(&link->paths[rail], cause);
}

void nezha_path_retry(struct nezha_path *path)
{
	path->retry_at = path->pause = 0;
	path->renew = path->connecting;
}

void nezha_rail_retry(struct nezha_engine *engine, uint32_t rail)
{
	struct nezha_link *link;

	LIST_FOREACH(link, &engine->links, entry)
		nezha_path_retry(&link->paths[rail]);
}

bool nezha_rail_whole(const struct nezha_engine *engine, uint32_t rail)
{
	const struct nezha_inlink *inlink;
	const struct nezha_link *link;

	LIST_FOREACH(inlink, &engine->inlinks, entry)
		if (inlink->paths[rail].lost)
			return false;
	LIST_FOREACH(link, &engine->links, entry)
		if (link->paths[rail].joined && !link->paths[rail].up)
			return false;
	return true;
}

void nezha_link_attach(struct nezha_link *link, int rail, const struct nezha_connection *connection)
{
	struct nezha_path *path = &link->paths[rail];
	struct nezha_path_sample sample;

	if (path->up)
		nezha_link_path_fail(path, "replaced by a new connection");
	path->ops = connection->ops;
	path->id = connection->id;
	path->untold = false;   /* the peer has it from the new connection */
	path->transport = connection->transport;
	path->end.fd = connection->fd;
	path->events.fd = connection->events;
	if (nezha_engine_watch(link->engine, &path->end) != NEZHA_OK ||
	    nezha_engine_watch(link->engine, &path->events) != NEZHA_OK) {
		nezha_path_close(path);
		return;
	}
	path->up = path->ready = true;
	path->hearing = NEZHA_HEAR_ALL;
	path->written = path->lent = path->stalled = path->base_acked = 0;
	path->rises = 0;
	path->probe.unmeasured = path->probe.doubted = 0;       /* what went without it says nothing of it */
	path->overdue = (struct nezha_overdue){ 0 };
	path->ack_delay = (struct nezha_ack_delay){ 0 };
	memset(&path->last, 0, sizeof path->last);
	if (path->ops->sample(path, &sample) == NEZHA_OK)
		path->base_acked = sample.acked;
	path->last.time = nezha_now();
	nezha_damping_up(&path->damping, path->last.time);
	path->why_told = false;
	nezha_estimator_restart(&path->estimator);
	path->down_before = link->down_since && path->ops->apart ? path->last.time - link->down_since : 0;
	link->down_since = 0;
	if (path->lost && path->ops->returned)
		path->ops->returned(path);
	link->engine->stats[rail].returns += path->lost > 0;
	nezha_event_up(path);
	/* Shares start anew, else the newcomer would be given everything until it had caught up. */
	nezha_deal_anew(link);
	path->sync = link->opened;
	/* A rail that was out of reach when the link was opened: its nominal speed may be far off. */
	if (link->opened && path->estimator.weight == 0)
		nezha_probing_begin(path);
	nezha_link_pump(link);
}
