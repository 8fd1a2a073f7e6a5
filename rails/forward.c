/* SPDX-License-Identifier: BSD-3-Clause
 * What comes in on a path: where a record's payload lands, and what becomes of it when it is there. */
#include "rails/inlink.h"

#include <stdlib.h>

#include "rails/clock.h"
#include "rails/collective.h"
#include "rails/crc32c.h"
#include "rails/early.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* Into the receiving end's store, which grows to the block; it is no longer than a grid allows. */
static int land_in_store(struct nezha_inpath *inpath)
{
	uint32_t length = inpath->record.length;
	char *store = inpath->store;

	if (length > inpath->store_room) {
		store = realloc(store, length);
		if (!store)
			return NEZHA_ERR_NOMEM;
		inpath->store = store;
		inpath->store_room = length;
	}
	inpath->landing.mode = NEZHA_LAND_STORE;
	inpath->landing.base = store;
	return NEZHA_OK;
}

/* False: the team is broken from now on. */
static bool is_of_call(const struct nezha_inpath *inpath, struct nezha_team *team)
{
	const struct nezha_wire *record = &inpath->record;
	const struct nezha_call *call = &team->call;

	if (record->block < nezha_call_blocks(call) && record->length == nezha_call_length(call, record->block))
		return true;
	nezha_error("process %d sent block %u of %u bytes in a call of %u blocks of %u bytes: "
	            "do all ranks give the same count and type?", inpath->inlink->peer, record->block,
	            record->length, call->grid.blocks, call->grid.block);
	team->broken = true;
	return false;
}

static int land_now(struct nezha_inpath *inpath, struct nezha_team *team)
{
	const struct nezha_wire *record = &inpath->record;
	struct nezha_call *call = &team->call;
	uint8_t *state;
	int rc = NEZHA_OK;

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
		if (team->engine->config.crc)
			rc = land_in_store(inpath);
		else
			inpath->landing.mode = NEZHA_LAND_FOLD;
	}
	if (rc == NEZHA_OK)
		inpath->landing.team = team;
	return rc;
}

int nezha_inlink_record(struct nezha_inpath *inpath)
{
	const struct nezha_wire *record = &inpath->record;
	struct nezha_landing *landing = &inpath->landing;
	struct nezha_team *team;
	int32_t ahead;

	if (nezha_wire_check(record, NEZHA_CHANNEL_FORWARD, inpath->inlink->engine->config.crc) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	if (record->kind != NEZHA_WIRE_PROBE)
		inpath->probed = true;      /* no (more) probe comes on this connection */
	inpath->inlink->latest = inpath->rail;
	if (record->kind == NEZHA_WIRE_SYNC) {
		nezha_inlink_synced(inpath->inlink, record);
		return NEZHA_OK;
	}
	*landing = (struct nezha_landing){
		.mode = NEZHA_LAND_DROP, .op = record->op, .block = record->block, .origin = record->origin,
		.kind = record->kind, .length = record->length, .crc = record->payload_crc, .scratch = inpath->scratch,
	};
	if (record->kind == NEZHA_WIRE_PROBE)
		return NEZHA_OK;
	team = nezha_engine_team(inpath->inlink->engine, record->team);
	if (!team || team->broken)
		return NEZHA_OK;     /* a late duplicate for a team that has ended */
	if (team->left != inpath->inlink)
		return NEZHA_ERR_PROTOCOL;
	if (__builtin_expect(team->engine->config.trace != NULL, 0))
		landing->began = nezha_now();
	ahead = nezha_seq_diff(record->op, team->entered);
	if (ahead > 1)
		return NEZHA_ERR_PROTOCOL;
	if (ahead == 1)
		return nezha_early_land(inpath, team);
	if (ahead < 0 || !team->call.active)
		return NEZHA_OK;     /* a duplicate: the call is over here */
	team->moved = nezha_now();
	if (!is_of_call(inpath, team))
		return NEZHA_OK;
	if (record->kind == NEZHA_WIRE_PARTIAL && !nezha_call_is_ready(&team->call, record->block))
		return nezha_early_land(inpath, team);
	return land_now(inpath, team);
}

/* Asks for the block again, over the connection that it came over and before anything acknowledges it: if the request is
 * lost, the connection is, and then the block is sent again with all that was not acknowledged. */
static void ask_for_block(struct nezha_inpath *inpath)
{
	const struct nezha_landing *landing = &inpath->landing;
	struct nezha_wire again = nezha_wire_make(NEZHA_WIRE_AGAIN, landing->team->id, landing->op);

	again.block = landing->block;
	again.origin = landing->kind;
	if (inpath->reply_count == NEZHA_REPLIES || nezha_inpath_reply(inpath, again) != NEZHA_OK)
		nezha_inlink_path_fail(inpath, "a wrong block cannot be asked for again");
}

/* Whether the payload that has landed is what was sent: as it now lies there, since copies over two paths may have been
 * written to the same place. */
static bool is_right(struct nezha_inpath *inpath)
{
	const struct nezha_landing *landing = &inpath->landing;
	struct nezha_engine *engine = inpath->inlink->engine;

	if (!engine->config.crc || nezha_crc32c(landing->base, landing->length) == landing->crc)
		return true;
	engine->stats[inpath->rail].wrong++;
	if (inpath->told < inpath->sure)
		inpath->sure = inpath->told;
	nezha_event_wrong(inpath);
	ask_for_block(inpath);
	return false;
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
	if (team && !is_right(inpath))
		nezha_landing_drop(landing);
	if (__builtin_expect(inpath->inlink->engine->config.trace != NULL, 0) && landing->began)
		nezha_event_received(inpath);
	switch (landing->mode) {
	case NEZHA_LAND_FINAL:
		nezha_call_landed(&team->call, landing->block, landing->origin);
		break;
	case NEZHA_LAND_FOLD:
		nezha_call_folded(&team->call, landing->block);
		break;
	case NEZHA_LAND_STORE:
		nezha_call_fold_rest(&team->call, landing->block, landing->base);
		break;
	case NEZHA_LAND_EAGER:
		nezha_early_landed(landing);
		break;
	case NEZHA_LAND_DROP:
		break;
	}
	nezha_landing_drop(landing);
}

void nezha_inlink_forget(struct nezha_team *team, bool all)
{
	nezha_early_forget(team, all);
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		struct nezha_landing *landing = &team->left->paths[r].landing;

		if (landing->team == team && landing->mode != NEZHA_LAND_EAGER)
			nezha_landing_drop(landing);
	}
}
