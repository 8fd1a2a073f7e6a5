/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/inlink.h"

#include <stdlib.h>
#include <string.h>

#include "rails/breakdown.h"
#include "rails/clock.h"
#include "rails/gather.h"
#include "tuning/status.h"

/* A lost connection has to send again, although it had arrived, what came in since the last acknowledgement. */
#define ACK_EVERY (256u << 10) /* bytes, */
#define ACK_PAUSE (4 * NEZHA_MSEC) /* but not more often on a fast path: each one wakes the sender up; the first bytes of a
                                    * connection sooner, each time that they are twice as many: else a path that is lost
                                    * again and again before the first acknowledgement would bring nothing, for ever */
#define RECEIVE_TURNS 16     /* so that one path does not keep the others waiting */

/* ---- making and ending ---- */

struct nezha_inlink *nezha_inlink_get(struct nezha_engine *engine, int peer)
{
	struct nezha_inlink *inlink;

	LIST_FOREACH(inlink, &engine->inlinks, entry)
		if (inlink->peer == peer)
			return inlink;
	inlink = calloc(1, sizeof *inlink);
	if (!inlink)
		return NULL;
	inlink->engine = engine;
	inlink->peer = peer;
	inlink->down_since = nezha_now();
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		inlink->paths[r].end = (struct nezha_endpoint){ NEZHA_END_INPATH, -1 };
		inlink->paths[r].events = (struct nezha_endpoint){ NEZHA_END_INPATH_EVENTS, -1 };
		inlink->paths[r].inlink = inlink;
		inlink->paths[r].rail = (uint8_t)r;
	}
	LIST_INSERT_HEAD(&engine->inlinks, inlink, entry);
	return inlink;
}

static void close_inpath(struct nezha_inpath *inpath)
{
	if (inpath->end.fd < 0)
		return;
	nezha_engine_unwatch(inpath->inlink->engine, &inpath->end);
	nezha_engine_unwatch(inpath->inlink->engine, &inpath->events);
	inpath->ops->close_inpath(inpath);
	inpath->end.fd = inpath->events.fd = -1;
	inpath->transport = NULL;
	inpath->up = inpath->more = inpath->in_payload = false;
	inpath->record_have = inpath->reply_count = inpath->reply_sent = 0;
	inpath->taken = inpath->told = 0;
	nezha_landing_drop(&inpath->landing);
}

void nezha_inlink_know(struct nezha_inlink *inlink, const struct nezha_card *card)
{
	inlink->host = card->host;
	memcpy(inlink->hostname, card->hostname, sizeof inlink->hostname);
	inlink->hostname[sizeof inlink->hostname - 1] = '\0';
	for (uint32_t i = 0; i < card->rail_count; i++) {
		inlink->engine->known += inlink->addresses[i] != card->rails[i].address;
		inlink->addresses[i] = card->rails[i].address;
	}
}

void nezha_inlink_came_from(struct nezha_inlink *inlink, int rail, uint32_t address)
{
	inlink->engine->known += inlink->from[rail] != address;
	inlink->from[rail] = address;
}

void nezha_inlink_destroy(struct nezha_inlink *inlink)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		close_inpath(&inlink->paths[r]);
		free(inlink->paths[r].scratch);
		free(inlink->paths[r].store);
	}
	LIST_REMOVE(inlink, entry);
	free(inlink);
}

int nezha_inlink_paths_up(const struct nezha_inlink *inlink)
{
	int up = 0;

	for (int r = 0; r < NEZHA_RAILS_MAX; r++)
		up += inlink->paths[r].up;
	return up;
}

/* ---- backward ---- */

int nezha_inpath_reply(struct nezha_inpath *inpath, struct nezha_wire record)
{
	nezha_wire_seal(&record, inpath->inlink->engine->config.crc);
	return inpath->ops->reply(inpath, &record);
}

void nezha_inlink_reply(struct nezha_inlink *inlink, const struct nezha_wire *record)
{
	for (int i = 0; i < NEZHA_RAILS_MAX; i++) {
		struct nezha_inpath *inpath = &inlink->paths[(inlink->latest + i) % NEZHA_RAILS_MAX];

		if (!inpath->up)
			continue;
		if (nezha_inpath_reply(inpath, *record) == NEZHA_OK)
			return;
		nezha_inlink_path_fail(inpath, "a backward record cannot be sent");
	}
}

/* The peer cannot see that we have given a connection up if that does not carry anything any more.  What is said over one that is lost
 * as well goes with it, so all that are lost and not replaced are named. */
static void tell_lost(struct nezha_inlink *inlink)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		const struct nezha_inpath *inpath = &inlink->paths[r];
		struct nezha_wire record;

		if (inpath->up || !inpath->lost)
			continue;
		record = nezha_wire_make(NEZHA_WIRE_LOST, inpath->lost_taken, inpath->id);
		record.block = inpath->rail;
		nezha_inlink_reply(inlink, &record);
	}
}

void nezha_inlink_grant(struct nezha_team *team)
{
	const struct nezha_call *call = &team->call;
	struct nezha_wire record = nezha_wire_make(call->done_sent ? NEZHA_WIRE_DONE : NEZHA_WIRE_GRANT, team->id, call->op);

	record.block = call->offered;
	nezha_inlink_reply(team->left, &record);
}

/* Says again what the left neighbour may have missed. Of a call that is over here it hears when it asks. */
static void say_again(struct nezha_inlink *inlink)
{
	struct nezha_team *team;

	tell_lost(inlink);
	/* The left neighbour may wait outside of calls. */
	LIST_FOREACH(team, &inlink->engine->teams, entry)
		if (team->left == inlink)
			nezha_breakdown_say(team);
	LIST_FOREACH(team, &inlink->engine->busy, busy) {
		if (team->left != inlink)
			continue;
		nezha_inlink_grant(team);
		nezha_call_want_again(&team->call);
	}
}

static int tell_taken(struct nezha_inpath *inpath)
{
	inpath->told = inpath->taken;
	return nezha_inpath_reply(inpath, nezha_wire_make(NEZHA_WIRE_ACK, inpath->taken, 0));
}

void nezha_inlink_path_fail(struct nezha_inpath *inpath, const char *cause)
{
	struct nezha_inlink *inlink = inpath->inlink;
	uint64_t taken = inpath->taken < inpath->sure ? inpath->taken : inpath->sure;

	if (!inpath->up)
		return;
	/* Without another path the peer hears only here what was taken in, if the connection still carries anything.  Nothing is said if a
	 * block came wrong over it. */
	if (inpath->told < taken && taken == inpath->taken)
		(void)tell_taken(inpath);
	close_inpath(inpath);
	inpath->lost = true;
	inpath->lost_taken = taken;
	nezha_event_in_lost(inpath, cause);
	if (!nezha_inlink_paths_up(inlink))
		inlink->down_since = nezha_now();
	say_again(inlink);
}

/* The peer says so of a path over which it sends to us; it may have been replaced since. */
static void peer_has_lost(struct nezha_inlink *inlink, const struct nezha_wire *sync)
{
	struct nezha_inpath *inpath;

	if (!sync->block || sync->block > NEZHA_RAILS_MAX)
		return;
	inpath = &inlink->paths[sync->block - 1];
	if (inpath->up && inpath->id == sync->op)
		nezha_inlink_path_fail(inpath, "the peer has lost it");
}

void nezha_inlink_synced(struct nezha_inlink *inlink, const struct nezha_wire *sync)
{
	peer_has_lost(inlink, sync);
	say_again(inlink);
}

void nezha_inlink_attach(struct nezha_inlink *inlink, int rail, const struct nezha_connection *connection)
{
	struct nezha_inpath *inpath = &inlink->paths[rail];

	close_inpath(inpath);
	inpath->ops = connection->ops;
	inpath->id = connection->id;
	inpath->transport = connection->transport;
	inpath->end.fd = connection->fd;
	inpath->events.fd = connection->events;
	if ((!inpath->scratch && !(inpath->scratch = malloc(NEZHA_SCRATCH))) ||
	    nezha_engine_watch(inlink->engine, &inpath->end) != NEZHA_OK ||
	    nezha_engine_watch(inlink->engine, &inpath->events) != NEZHA_OK) {
		nezha_lack_note(inlink->engine->config.lack, "a connection cannot be served", errno);
		close_inpath(inpath);
		if (!inlink->down_since && !nezha_inlink_paths_up(inlink))
			inlink->down_since = nezha_now();
		return;
	}
	inpath->up = inpath->more = true;
	nezha_await_begin(&inpath->await);
	inpath->ends = false;
	inpath->why_told = inpath->lost = false;
	inpath->sure = UINT64_MAX;
	nezha_event_in_up(inpath);
	inlink->down_since = 0;
	say_again(inlink);
}

/* ---- receiving (forward.c: what comes) ---- */

static void acknowledge(struct nezha_inpath *inpath)
{
	bool young = inpath->told < ACK_EVERY;
	uint64_t now;

	if (!inpath->up || inpath->taken == inpath->told || inpath->taken - inpath->told < (young ? inpath->told : ACK_EVERY))
		return;
	now = nezha_now();
	if (!young && now - inpath->told_at < ACK_PAUSE)
		return;
	inpath->told_at = now;
	if (tell_taken(inpath) != NEZHA_OK)
		nezha_inlink_path_fail(inpath, "a backward record cannot be sent");
}

static void receive_some(struct nezha_inpath *inpath)
{
	for (int turn = 0; inpath->up && turn < RECEIVE_TURNS; turn++) {
		int rc = inpath->ops->receive(inpath);

		inpath->more = inpath->up && rc == NEZHA_INPROGRESS;
		if (rc < 0)
			nezha_inlink_path_fail(inpath, rc == NEZHA_ERR_PROTOCOL ? "it makes no sense"
			                       : "the connection was closed");
		acknowledge(inpath);
		if (!inpath->more)
			return;
	}
}

void nezha_inlink_receive(struct nezha_inpath *inpath)
{
	struct nezha_engine *engine = inpath->inlink->engine;

	nezha_gather_begin(engine);
	receive_some(inpath);
	nezha_gather_end(engine);
}
