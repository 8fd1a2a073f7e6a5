/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/inlink.h"

#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/link.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* A lost connection has to send again, although it had arrived, what came in since the last acknowledgement. */
#define ACK_EVERY (128u << 10) /* bytes, */
#define ACK_PAUSE (4 * NEZHA_MSEC) /* but not more often on a fast path: each one wakes the sender up */
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

void nezha_inlink_destroy(struct nezha_inlink *inlink)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		close_inpath(&inlink->paths[r]);
		free(inlink->paths[r].scratch);
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

void nezha_inlink_reply(struct nezha_inlink *inlink, const struct nezha_wire *record)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		struct nezha_inpath *inpath = &inlink->paths[r];

		if (!inpath->up)
			continue;
		if (inpath->ops->reply(inpath, record) == NEZHA_OK)
			return;
		nezha_inlink_path_fail(inpath, "a backward record cannot be sent");
	}
}

/* Says again what the left neighbour may have missed. Of a call that is over here it hears when it asks. */
static void say_again(struct nezha_inlink *inlink)
{
	struct nezha_team *team;

	LIST_FOREACH(team, &inlink->engine->busy, busy) {
		struct nezha_wire record;

		if (team->left != inlink)
			continue;
		record = nezha_wire_make(team->call.done_sent ? NEZHA_WIRE_DONE : NEZHA_WIRE_GRANT, team->id,
		                         team->entered);
		nezha_inlink_reply(inlink, &record);
		nezha_call_want_again(&team->call);
	}
}

void nezha_inlink_path_fail(struct nezha_inpath *inpath, const char *cause)
{
	struct nezha_inlink *inlink = inpath->inlink;

	if (!inpath->up)
		return;
	close_inpath(inpath);
	nezha_info("rail %s from process %d is lost: %s", nezha_rail_name(&inlink->engine->rails[inpath->rail]),
	           inlink->peer, cause);
	if (!nezha_inlink_paths_up(inlink))
		inlink->down_since = nezha_now();
	say_again(inlink);
}

void nezha_inlink_attach(struct nezha_inlink *inlink, int rail, const struct nezha_connection *connection)
{
	struct nezha_inpath *inpath = &inlink->paths[rail];

	close_inpath(inpath);
	inpath->ops = connection->ops;
	inpath->transport = connection->transport;
	inpath->end.fd = connection->fd;
	inpath->events.fd = connection->events;
	if ((!inpath->scratch && !(inpath->scratch = malloc(NEZHA_SCRATCH))) ||
	    nezha_engine_watch(inlink->engine, &inpath->end) != NEZHA_OK ||
	    nezha_engine_watch(inlink->engine, &inpath->events) != NEZHA_OK) {
		close_inpath(inpath);
		return;
	}
	inpath->up = inpath->more = true;
	inlink->down_since = 0;
	say_again(inlink);
}

/* ---- forward ---- */

static void acknowledge(struct nezha_inpath *inpath)
{
	struct nezha_wire ack = nezha_wire_make(NEZHA_WIRE_ACK, inpath->taken, 0);
	uint64_t now;

	if (!inpath->up || inpath->taken - inpath->told < ACK_EVERY)
		return;
	now = nezha_now();
	if (now - inpath->told_at < ACK_PAUSE)
		return;
	inpath->told = inpath->taken;
	inpath->told_at = now;
	if (inpath->ops->reply(inpath, &ack) != NEZHA_OK)
		nezha_inlink_path_fail(inpath, "a backward record cannot be sent");
}

void nezha_inlink_receive(struct nezha_inpath *inpath)
{
	for (int turn = 0; inpath->up && turn < RECEIVE_TURNS; turn++) {
		int rc = inpath->ops->receive(inpath);

		inpath->more = rc == NEZHA_INPROGRESS;
		if (rc < 0)
			nezha_inlink_path_fail(inpath, rc == NEZHA_ERR_PROTOCOL ? "it makes no sense"
			                       : "the connection was closed");
		acknowledge(inpath);
		if (!inpath->more)
			return;
	}
}

static struct nezha_eager *find_early(struct nezha_team *team, uint32_t op, uint32_t block)
{
	struct nezha_eager *eager;

	TAILQ_FOREACH(eager, &team->eager, entry)
		if (eager->op == op && eager->block == block)
			return eager;
	return NULL;
}

/* Forgets a stored block; a second copy of it that is still arriving is dropped. */
static void free_early(struct nezha_team *team, struct nezha_eager *eager)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		struct nezha_landing *landing = &team->left->paths[r].landing;

		if (landing->mode == NEZHA_LAND_EAGER && landing->base == eager->data)
			nezha_landing_drop(landing);
	}
	TAILQ_REMOVE(&team->eager, eager, entry);
	team->left->eager -= eager->length;
	free(eager);
}

/* A block of the call that this rank will enter next: store it, within what the link allows. */
static int land_early(struct nezha_inpath *inpath, struct nezha_team *team)
{
	const struct nezha_wire *record = &inpath->record;
	struct nezha_eager *eager = find_early(team, record->op, record->block);

	if (record->kind != NEZHA_WIRE_PARTIAL)
		return NEZHA_ERR_PROTOCOL;
	if (eager && eager->length != record->length)
		return NEZHA_ERR_PROTOCOL;
	if (!eager) {
		if (inpath->inlink->eager + record->length > NEZHA_EAGER_BYTES)
			return NEZHA_ERR_PROTOCOL;
		eager = malloc(sizeof *eager + record->length);
		if (!eager)
			return NEZHA_ERR_NOMEM;
		*eager = (struct nezha_eager){ .op = record->op, .block = record->block,
		                               .length = record->length };
		TAILQ_INSERT_TAIL(&team->eager, eager, entry);
		inpath->inlink->eager += record->length;
	}
	if (eager->have == eager->length)
		return NEZHA_OK;
	inpath->landing.mode = NEZHA_LAND_EAGER;
	inpath->landing.team = team;
	inpath->landing.base = eager->data;
	return NEZHA_OK;
}

static int land_now(struct nezha_inpath *inpath, struct nezha_team *team)
{
	const struct nezha_wire *record = &inpath->record;
	struct nezha_call *call = &team->call;
	uint8_t *state;

	if (record->block >= nezha_call_blocks(call) || record->length != nezha_call_length(call, record->block)) {
		nezha_error("process %d sent block %u of %u bytes in a call of %u blocks of %u bytes: "
		            "do all ranks give the same count and type?", inpath->inlink->peer, record->block,
		            record->length, call->grid.blocks, call->grid.block);
		team->broken = true;
		return NEZHA_OK;
	}
	state = &call->state[record->block];
	if (record->kind == NEZHA_WIRE_PARTIAL && *state & NEZHA_BLOCK_ON_RAIL)
		nezha_collective_cancel(team, record->block);
	/* The rail may hand back others, too, which are asked for on this connection: that may have shown it to be dead. */
	if (!inpath->up)
		return NEZHA_ERR_CLOSED;
	if (*state & NEZHA_BLOCK_FINAL)
		return NEZHA_OK;
	if (record->kind == NEZHA_WIRE_FINAL) {
		if (*state & NEZHA_BLOCK_ON_RAIL)
			nezha_collective_cancel(team, record->block);
		if (!inpath->up)
			return NEZHA_ERR_CLOSED;
		if (*state & NEZHA_BLOCK_FINAL)
			return NEZHA_OK;
		*state |= NEZHA_BLOCK_LANDING;
		inpath->landing.mode = NEZHA_LAND_FINAL;
		inpath->landing.base = nezha_call_place(call, record->block);
	} else {
		if (*state & (NEZHA_BLOCK_FOLDED | NEZHA_BLOCK_LANDING))
			return NEZHA_OK;
		inpath->landing.mode = NEZHA_LAND_FOLD;
	}
	inpath->landing.team = team;
	return NEZHA_OK;
}

int nezha_inlink_record(struct nezha_inpath *inpath)
{
	const struct nezha_wire *record = &inpath->record;
	struct nezha_landing *landing = &inpath->landing;
	struct nezha_team *team;
	int32_t ahead;

	if (nezha_wire_check(record, NEZHA_CHANNEL_FORWARD) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	if (record->kind != NEZHA_WIRE_PROBE)
		inpath->probed = true;      /* no (more) probe comes on this connection */
	if (record->kind == NEZHA_WIRE_SYNC) {
		say_again(inpath->inlink);
		return NEZHA_OK;
	}
	*landing = (struct nezha_landing){
		.mode = NEZHA_LAND_DROP, .op = record->op, .block = record->block, .origin = record->origin,
		.kind = record->kind, .length = record->length, .scratch = inpath->scratch,
	};
	if (record->kind == NEZHA_WIRE_PROBE)
		return NEZHA_OK;
	team = nezha_engine_team(inpath->inlink->engine, record->team);
	if (!team || team->broken)
		return NEZHA_OK;     /* a late duplicate for a team that has ended */
	if (team->left != inpath->inlink)
		return NEZHA_ERR_PROTOCOL;
	ahead = nezha_seq_diff(record->op, team->entered);
	if (ahead > 1)
		return NEZHA_ERR_PROTOCOL;
	if (ahead == 1)
		return land_early(inpath, team);
	if (ahead < 0 || !team->call.active)
		return NEZHA_OK;     /* a duplicate: the call is over here */
	team->moved = nezha_now();
	return land_now(inpath, team);
}

/* Folds what came early and is whole. */
static int fold_early(struct nezha_team *team, struct nezha_eager *eager)
{
	struct nezha_call *call = &team->call;
	uint32_t *folded;

	if (eager->block >= nezha_call_blocks(call) || eager->length != nezha_call_length(call, eager->block)) {
		nezha_error("process %d sent block %u of %u bytes in a call of %u blocks of %u bytes: "
		            "do all ranks give the same count and type?", team->left->peer, eager->block,
		            eager->length, call->grid.blocks, call->grid.block);
		team->broken = true;
		free_early(team, eager);
		return NEZHA_ERR_PROTOCOL;
	}
	if (call->state[eager->block] & NEZHA_BLOCK_ON_RAIL)
		nezha_collective_cancel(team, eager->block);
	folded = &call->folded[eager->block];
	if (!(call->state[eager->block] & (NEZHA_BLOCK_FOLDED | NEZHA_BLOCK_FINAL | NEZHA_BLOCK_LANDING))) {
		nezha_call_fold(call, eager->block, *folded, eager->data + *folded, eager->length - *folded);
		*folded = eager->length;
		nezha_call_folded(call, eager->block);
	}
	free_early(team, eager);
	return NEZHA_OK;
}

int nezha_inlink_enter(struct nezha_team *team)
{
	struct nezha_eager *eager, *next;

	for (eager = TAILQ_FIRST(&team->eager); eager; eager = next) {
		next = TAILQ_NEXT(eager, entry);
		if (eager->op == team->entered && eager->have == eager->length && fold_early(team, eager) != NEZHA_OK)
			return NEZHA_ERR_PROTOCOL;
	}
	return NEZHA_OK;
}

static void early_payload(struct nezha_landing *landing)
{
	struct nezha_team *team = landing->team;
	struct nezha_eager *eager = find_early(team, landing->op, landing->block);

	if (!eager)
		return;
	eager->have = eager->length;
	if (team->call.active && team->entered == eager->op)
		fold_early(team, eager);
}

void nezha_inlink_payload(struct nezha_inpath *inpath)
{
	struct nezha_landing *landing = &inpath->landing;
	struct nezha_team *team;

	if (landing->kind == NEZHA_WIRE_PROBE && landing->block)
		inpath->probed = true;
	nezha_landing_check(landing);
	team = landing->team;
	if (team)
		team->moved = nezha_now();
	switch (landing->mode) {
	case NEZHA_LAND_FINAL:
		nezha_call_landed(&team->call, landing->block, landing->origin);
		break;
	case NEZHA_LAND_FOLD:
		nezha_call_folded(&team->call, landing->block);
		break;
	case NEZHA_LAND_EAGER:
		early_payload(landing);
		break;
	case NEZHA_LAND_DROP:
		break;
	}
	nezha_landing_drop(landing);
}

void nezha_inlink_forget(struct nezha_team *team, bool all)
{
	struct nezha_eager *eager, *next;

	for (eager = TAILQ_FIRST(&team->eager); eager; eager = next) {
		next = TAILQ_NEXT(eager, entry);
		if (all || eager->op == team->entered)
			free_early(team, eager);
	}
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		struct nezha_landing *landing = &team->left->paths[r].landing;

		if (landing->team == team && landing->mode != NEZHA_LAND_EAGER)
			nezha_landing_drop(landing);
	}
}
