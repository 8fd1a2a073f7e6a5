/* SPDX-License-Identifier: BSD-3-Clause
 * What the neighbour says on the way back of a path: what it has taken in, granted, lost or wants again. */
#include "rails/link.h"

#include "rails/breakdown.h"
#include "rails/clock.h"
#include "tuning/status.h"

/* The peer has taken in `bytes` of this connection. What the transport has acknowledged is not enough: it may lie
 * unread in a buffer that dies with the connection. */
static int acknowledged(struct nezha_path *path, uint64_t bytes)
{
	struct nezha_tx *tx;

	if (bytes > path->written)
		return NEZHA_ERR_PROTOCOL;
	while ((tx = TAILQ_FIRST(&path->sent)) && tx->end <= bytes) {
		TAILQ_REMOVE(&path->sent, tx, entry);
		tx->where = NEZHA_TX_IDLE;
	}
	return NEZHA_OK;
}

/* The peer may know sooner than we do: it sees its own carrier, we would have to wait in vain for an acknowledgement. */
static int peer_has_lost(struct nezha_link *link, const struct nezha_wire *record)
{
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		struct nezha_path *path = &link->paths[r];
		int rc;

		if (!path->up || path->peer_rail != record->block || path->id != record->op)
			continue;
		rc = acknowledged(path, record->team);
		if (rc == NEZHA_OK)
			nezha_link_path_fail(path, "the peer has lost it");
		return rc;
	}
	return NEZHA_OK;        /* it has been replaced */
}

int nezha_link_backward(struct nezha_path *path, const struct nezha_wire *record)
{
	struct nezha_link *link = path->link;
	struct nezha_team *team;

	if (nezha_wire_check(record, NEZHA_CHANNEL_BACKWARD, link->engine->config.crc) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	if (record->kind == NEZHA_WIRE_ACK)
		return acknowledged(path, record->team);
	if (path->hearing == NEZHA_HEAR_ACKS)   /* the ACK after an AGAIN covers the block that came wrong, too */
		return record->kind == NEZHA_WIRE_AGAIN ? NEZHA_ERR_CLOSED : NEZHA_OK;
	if (record->kind == NEZHA_WIRE_LOST)
		return peer_has_lost(link, record);
	if (record->kind == NEZHA_WIRE_AGAIN) {
		nezha_link_came_wrong(path, record);
		return NEZHA_OK;
	}
	team = nezha_engine_team(link->engine, record->team);
	if (!team || team->right != link)
		return NEZHA_OK;        /* of a team that has ended */
	if (record->kind == NEZHA_WIRE_BROKEN) {
		nezha_breakdown_heard(team, record->op, record->block);
		return NEZHA_OK;
	}
	/* The neighbour cannot be ahead of us: it needs our blocks to end a call. */
	if (nezha_seq_diff(record->op, team->entered) > 1)
		return NEZHA_ERR_PROTOCOL;
	switch (record->kind) {
	case NEZHA_WIRE_WANT:
		if (team->call.active && record->op == team->call.op)
			nezha_call_wanted(&team->call, record->block);
		else if (nezha_seq_diff(record->op, team->entered) == 1)
			team->wanted_early = true;
		return NEZHA_OK;
	case NEZHA_WIRE_DONE:
		if (nezha_seq_diff(record->op, team->right_done) > 0) {
			team->right_done = record->op;
			team->moved = nezha_now();
		}
		break;
	}
	nezha_link_granted(team, record->op, record->kind == NEZHA_WIRE_DONE ? UINT32_MAX : record->block);
	return NEZHA_OK;
}
