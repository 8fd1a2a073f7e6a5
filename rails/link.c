/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/link.h"

#include <stdlib.h>
#include <string.h>

#include "rails/await.h"
#include "rails/breakdown.h"
#include "rails/clock.h"
#include "rails/crc32c.h"
#include "rails/deal.h"
#include "rails/gather.h"
#include "rails/share.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define NOMINAL_UNKNOWN 1000u           /* Mbit/s */
/* The opening probe takes PROBE_TIME, or PROBE_LONG while the estimate is not steady, but sends no less than PROBE_LEAST
 * and no more than PROBE_MOST bytes. */
#define PROBE_TIME (45 * NEZHA_MSEC)
#define PROBE_LONG (150 * NEZHA_MSEC)
#define PROBE_LEAST (128u << 10)
#define PROBE_MOST (8u << 20)
#define PROBE_AGAIN_SECONDS 6e-3        /* a later one, at the rate that is believed */
#define PROBE_PIECE (32u << 10)

/* ---- making and ending ---- */

static void path_init(struct nezha_path *path, struct nezha_link *link, int rail)
{
	const struct nezha_card_rail *mine = &link->engine->card.rails[rail];

	memset(path, 0, sizeof *path);
	path->end = (struct nezha_endpoint){ NEZHA_END_PATH, -1 };
	path->events = (struct nezha_endpoint){ NEZHA_END_PATH_EVENTS, -1 };
	path->link = link;
	path->rail = (uint8_t)rail;
	TAILQ_INIT(&path->sent);
	for (uint32_t i = 0; i < link->card.rail_count; i++) {
		const struct nezha_card_rail *theirs = &link->card.rails[i];

		if (nezha_card_same_rail(theirs, mine)) {
			uint32_t speed = mine->speed ? mine->speed : NOMINAL_UNKNOWN;

			if (theirs->speed && theirs->speed < speed)
				speed = theirs->speed;
			path->joined = true;
			path->peer_rail = (uint8_t)i;
			path->nominal = speed * 1e6 / 8;
			nezha_estimator_init(&path->estimator, path->nominal);
			return;
		}
	}
}

struct nezha_link *nezha_link_get(struct nezha_engine *engine, const struct nezha_card *card)
{
	struct nezha_link *link;

	LIST_FOREACH(link, &engine->links, entry)
		if (link->peer == card->process)
			return link;
	link = calloc(1, sizeof *link);
	if (!link)
		return NULL;
	if (engine->config.policy == NEZHA_POLICY_SHARE && !(link->share = calloc(1, sizeof *link->share))) {
		free(link);
		return NULL;
	}
	link->engine = engine;
	link->peer = card->process;
	link->card = *card;
	link->down_since = nezha_now();
	TAILQ_INIT(&link->queue);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		path_init(&link->paths[r], link, (int)r);
	LIST_INSERT_HEAD(&engine->links, link, entry);
	return link;
}

void nezha_path_close(struct nezha_path *path)
{
	if (path->end.fd < 0)
		return;
	nezha_engine_unwatch(path->link->engine, &path->end);
	nezha_engine_unwatch(path->link->engine, &path->events);
	path->ops->close_path(path);
	path->end.fd = path->events.fd = -1;
	path->transport = NULL;
	path->up = false;
}

void nezha_link_destroy(struct nezha_link *link)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++)
		if (link->paths[r].joined)
			nezha_path_close(&link->paths[r]);
	LIST_REMOVE(link, entry);
	free(link->share);
	free(link);
}

int nezha_link_paths_up(const struct nezha_link *link)
{
	int up = 0;

	for (int r = 0; r < NEZHA_RAILS_MAX; r++)
		up += link->paths[r].up;
	return up;
}

/* ---- sending ---- */

static void start_record(struct nezha_path *path, enum nezha_wire_kind kind, uint32_t length)
{
	path->out = (struct nezha_outgoing){
		.record = nezha_wire_make(kind, 0, 0),
		.record_left = sizeof path->out.record,
		.payload_left = length,
		.zeros = true,
	};
	path->out.record.length = length;
}

/* The record is complete. */
static void seal(struct nezha_path *path)
{
	nezha_wire_seal(&path->out.record, path->link->engine->config.crc);
}

static void start_block(struct nezha_path *path, struct nezha_tx *tx)
{
	struct nezha_call *call = &tx->team->call;

	path->out = (struct nezha_outgoing){
		.record = nezha_wire_make(tx->kind, tx->team->id, call->op),
		.record_left = sizeof path->out.record,
		.payload_left = tx->length,
		.payload = nezha_call_tx_payload(call, tx),
		/* A rank that has its final sends it to all who have got the block back from a collective rail. */
		.unsteady = call->state[tx->block] & NEZHA_BLOCK_RETURNED,
	};
	path->out.record.length = tx->length;
	path->out.record.block = tx->block;
	path->out.record.origin = tx->origin;
	path->out.record.piece = nezha_await_piece(path, tx->length, nezha_now());
	/* Its bytes stay as they are until the peer has folded them or has got the final, and so drops them. */
	if (path->link->engine->config.crc)
		path->out.record.payload_crc = nezha_crc32c(path->out.payload, tx->length);
	seal(path);
	if (__builtin_expect(path->link->engine->config.trace != NULL, 0))
		path->out.began = nezha_now();
	path->current = tx;
	tx->where = NEZHA_TX_SENDING;
	path->link->engine->stats[path->rail].bytes_sent += tx->length;
	tx->team->last_bytes[path->rail] += tx->length;
}

static uint64_t probe_time(const struct nezha_path *path)
{
	return nezha_estimator_is_new(&path->estimator) ? PROBE_LONG : PROBE_TIME;
}

/* An opening probe ends by time, a later one when all of it is sent; each at once where blocks have no other path than this:
 * many of them measure it as well, and one that is lost before a probe ends would never carry any. */
static bool probed_enough(const struct nezha_path *path)
{
	if (!TAILQ_EMPTY(&path->link->queue) && nezha_link_paths_up(path->link) == 1)
		return true;
	return path->probe_since && path->probe_left <= PROBE_MOST - PROBE_LEAST &&
	       nezha_now() - path->probe_since > probe_time(path);
}

/* Names a lost path of which the peer has not been told; whether there are more of them. */
static bool name_lost(struct nezha_link *link, struct nezha_wire *sync)
{
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		struct nezha_path *lost = &link->paths[r];

		if (!lost->untold)
			continue;
		if (sync->block)
			return true;
		sync->block = 1u + lost->peer_rail;
		sync->op = lost->id;
		lost->untold = false;
	}
	return false;
}

/* Chooses what goes next; false if nothing does. */
static bool start_next(struct nezha_path *path, bool *other)
{
	struct nezha_tx *tx;

	if (path->sync) {
		start_record(path, NEZHA_WIRE_SYNC, 0);
		path->sync = name_lost(path->link, &path->out.record);
		seal(path);
		return true;
	}
	if (path->probe_left) {
		path->probe_left -= PROBE_PIECE;
		if (probed_enough(path))
			path->probe_left = 0;
		start_record(path, NEZHA_WIRE_PROBE, PROBE_PIECE);
		path->out.record.block = !path->probe_left;
		seal(path);
		return true;
	}
	tx = nezha_deal_next(path, other);
	if (!tx)
		return false;
	start_block(path, tx);
	return true;
}

static void sent_current(struct nezha_path *path)
{
	struct nezha_tx *tx = path->current;

	if (!tx)
		return;
	path->current = NULL;
	tx->where = NEZHA_TX_SENT;
	tx->end = path->written;
	if (__builtin_expect(path->link->engine->config.trace != NULL, 0))
		nezha_event_sent(path, tx);
	TAILQ_INSERT_TAIL(&path->sent, tx, entry);
}

/* Sends on one path until it is full or has nothing to do; *other: another path should go on. */
static void send_all(struct nezha_path *path, bool *other)
{
	*other = false;
	while (path->up && path->ready) {
		int rc;

		if (nezha_path_is_free(path)) {
			if (!start_next(path, other))
				return;
		}
		rc = path->ops->send(path);
		if (rc < 0) {
			nezha_link_path_fail(path, "sending failed");
			return;
		}
		if (rc == NEZHA_INPROGRESS) {
			path->ready = false;
			return;
		}
		sent_current(path);
	}
}

static void pump_path(struct nezha_path *path, bool *other)
{
	send_all(path, other);
	if (path->up)
		nezha_gather_given(path);
}

void nezha_link_pump(struct nezha_link *link)
{
	bool again, other;

	/* A path that fails while it is pumped wants the others to go on. */
	link->pump_again = link->pumping;
	if (link->pumping)
		return;
	link->pumping = true;
	do {
		again = false;
		for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
			if (link->paths[r].up)
				nezha_path_look(&link->paths[r], nezha_now());
		for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
			pump_path(&link->paths[r], &other);
			again = again || other;
		}
		again = again || link->pump_again;
		link->pump_again = false;
	} while (again);
	link->pumping = false;
}

bool nezha_link_has_granted(const struct nezha_team *team)
{
	return nezha_seq_diff(team->granted, team->call.op) >= 0;
}

/* Whether the right neighbour, who has entered the call, has its own contribution to the block. */
static bool takes(const struct nezha_team *team, const struct nezha_tx *tx)
{
	return !team->call.gradual || tx->kind != NEZHA_WIRE_PARTIAL || nezha_call_is_note(&team->call, tx->block) ||
	       tx->block < team->granted_blocks;
}

static void hold(struct nezha_team *team, struct nezha_tx *tx)
{
	tx->where = NEZHA_TX_HELD;
	TAILQ_INSERT_TAIL(&team->held, tx, entry);
}

void nezha_link_send(struct nezha_link *link, struct nezha_tx *tx)
{
	struct nezha_team *team = tx->team;

	if (!nezha_link_has_granted(team)) {
		if (link->eager + tx->length > NEZHA_EAGER_BYTES || tx->kind != NEZHA_WIRE_PARTIAL) {
			hold(team, tx);
			return;
		}
		link->eager += tx->length;
		team->eager_sent += tx->length;
	} else if (!takes(team, tx)) {
		hold(team, tx);
		return;
	}
	nezha_deal_block(link, tx);
	nezha_link_pump(link);
}

/* ---- the neighbour's answers ---- */

static void release_held(struct nezha_team *team)
{
	struct nezha_tx *tx, *next;

	for (tx = TAILQ_FIRST(&team->held); tx; tx = next) {
		next = TAILQ_NEXT(tx, entry);
		if (!takes(team, tx))
			continue;
		TAILQ_REMOVE(&team->held, tx, entry);
		nezha_deal_block(team->right, tx);
	}
	nezha_link_pump(team->right);
}

void nezha_link_granted(struct nezha_team *team, uint32_t op, uint32_t blocks)
{
	int32_t ahead = nezha_seq_diff(op, team->granted);

	if (ahead < 0 || (ahead == 0 && blocks <= team->granted_blocks))
		return;
	team->granted_blocks = blocks;
	team->moved = nezha_now();
	if (ahead) {
		team->granted = op;
		team->right->eager -= team->eager_sent;
		team->eager_sent = 0;
	}
	/* What is held may be of the next call already, when the end of one is told again. */
	if (nezha_link_has_granted(team))
		release_held(team);
}

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

void nezha_link_forget(struct nezha_link *link, struct nezha_team *team, bool finished)
{
	uint32_t cut = 0;
	struct nezha_tx *tx, *next;

	TAILQ_INIT(&team->held);
	nezha_deal_forget(link, team);
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		struct nezha_path *path = &link->paths[r];

		for (tx = TAILQ_FIRST(&path->sent); tx; tx = next) {
			next = TAILQ_NEXT(tx, entry);
			if (tx->team != team)
				continue;
			TAILQ_REMOVE(&path->sent, tx, entry);
			/* Else it might still go out, and have changed meanwhile; its end may have been copied. */
			cut |= !finished && tx->end - tx->length < path->lent ? 1u << r : 0;
		}
		if (path->current && path->current->team == team) {
			/* Not out of memory that is the user's again.  A resend that is no longer needed is finished; what the peer
			 * would take for a block must not come whole. */
			path->current = NULL;
			path->out.zeros = finished;
			cut |= finished ? 0 : 1u << r;
		}
	}
	for (uint32_t r = 0; cut >> r; r++)
		if (cut >> r & 1)
			nezha_link_path_fail(&link->paths[r], "a call was given up while it had blocks of it");
}

/* ---- the opening probe ---- */

void nezha_link_probe(struct nezha_path *path)
{
	path->probe_left = PROBE_MOST;
	path->probe_since = nezha_now();
	nezha_link_pump(path->link);
}

void nezha_link_probe_again(struct nezha_path *path)
{
	double pieces = path->estimator.rate * PROBE_AGAIN_SECONDS / PROBE_PIECE;
	double most = PROBE_MOST / PROBE_PIECE;

	path->probe_left = (uint32_t)(pieces < 2 ? 2 : pieces > most ? most : pieces) * PROBE_PIECE;
	path->probe_since = 0;
	nezha_link_pump(path->link);
}

uint64_t nezha_link_probe_bytes(const struct nezha_path *path)
{
	uint64_t spent, time = probe_time(path);
	double most;

	if (!path->probe_left || !path->probe_since)
		return path->probe_left;
	spent = nezha_now() - path->probe_since;
	most = spent < time ? path->estimator.rate * (double)(time - spent) / NEZHA_SEC : 0;
	return most < path->probe_left ? (uint64_t)most : path->probe_left;
}

bool nezha_link_probing(const struct nezha_path *path)
{
	return path->up && (path->probe_left || path->out.record_left || path->out.payload_left ||
	                    path->written != path->last.acked);
}
