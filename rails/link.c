/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/link.h"

#include <stdlib.h>
#include <string.h>

#include "rails/await.h"
#include "rails/clock.h"
#include "rails/crc32c.h"
#include "rails/deal.h"
#include "rails/gather.h"
#include "rails/probing.h"
#include "rails/share.h"
#include "tuning/status.h"

#define NOMINAL_UNKNOWN 1000u           /* Mbit/s */
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
		start_record(path, NEZHA_WIRE_PROBE, nezha_probing_take(path));
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
		uint64_t now = nezha_now();

		again = false;
		for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
			if (link->paths[r].up)
				nezha_path_look(&link->paths[r], now);
		for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
			pump_path(&link->paths[r], &other);
			again = again || other;
		}
		again = again || link->pump_again;
		link->pump_again = false;
	} while (again);
	link->pumping = false;
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
