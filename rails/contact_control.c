/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/contact_control.h"

#include "rails/breakdown.h"
#include "rails/clock.h"
#include "rails/contact.h"
#include "rails/regain.h"
#include "tuning/status.h"

bool nezha_contact_is_control(const struct nezha_contact *contact)
{
	return contact->state == NEZHA_CONTACT_ASKING || contact->state == NEZHA_CONTACT_ANSWERING;
}

/* ---- teams ---- */

int nezha_contact_ask(struct nezha_contact *contact, uint64_t team, uint32_t op)
{
	struct nezha_wire query = nezha_wire_make(NEZHA_WIRE_QUERY, team, op);

	nezha_wire_seal(&query, contact->engine->config.crc);
	return nezha_contact_send(contact, &query, sizeof query);
}

static int answer(struct nezha_contact *contact)
{
	struct nezha_engine *engine = contact->engine;
	struct nezha_wire state;
	struct nezha_team *team;

	state = nezha_wire_make(NEZHA_WIRE_STATE, contact->in.record.team, contact->in.record.op);
	nezha_fairlock_take(&engine->lock);
	team = nezha_engine_team(engine, state.team);
	if (!nezha_breakdown_tell(engine, &state)) {
		state.op = team ? team->entered : state.op;
		state.block = team ? team->finished : 0;
		state.origin = team ? NEZHA_WIRE_LIVES : NEZHA_WIRE_GONE;
	}
	nezha_fairlock_give(&engine->lock);
	nezha_wire_seal(&state, engine->config.crc);
	return nezha_contact_send(contact, &state, sizeof state);
}

static int answered(struct nezha_contact *contact)
{
	struct nezha_engine *engine = contact->engine;
	const struct nezha_wire *state = &contact->in.record;
	struct nezha_team *team;

	nezha_fairlock_take(&engine->lock);
	team = nezha_engine_team(engine, state->team);
	if (team && team->right == contact->link && state->origin == NEZHA_WIRE_FELL) {
		nezha_breakdown_heard(team, state->op, state->block);
	} else if (team && team->right == contact->link) {
		/* A team that the neighbour has ended is one of which it has finished every call. */
		uint32_t entered = state->op;
		uint32_t finished = state->origin ? state->op : state->block;

		if (nezha_seq_diff(finished, team->entered) <= 0 && nezha_seq_diff(finished, team->right_done) > 0) {
			team->right_done = finished;
			team->moved = nezha_now();
		}
		if (nezha_seq_diff(entered, team->entered) <= 1)
			nezha_link_granted(team, entered, 0);
	}
	nezha_fairlock_give(&engine->lock);
	nezha_engine_wake(engine);
	return NEZHA_OK;
}

/* ---- rails that are back ---- */

int nezha_contact_tell_back(struct nezha_contact *contact, uint32_t rail)
{
	const struct nezha_link *link = contact->link;
	struct nezha_wire back = nezha_wire_make(NEZHA_WIRE_BACK, 0, 0);

	if (link && !link->paths[rail].joined)
		return NEZHA_OK;
	back.block = link ? link->paths[rail].peer_rail : rail;
	nezha_wire_seal(&back, contact->engine->config.crc);
	return nezha_contact_send(contact, &back, sizeof back);
}

/* Our number of the rail that the right one of the two calls `theirs`; NEZHA_RAILS_MAX: we do not share one. */
static uint32_t rail_of(const struct nezha_contact *contact, uint32_t theirs)
{
	uint32_t count = contact->engine->card.rail_count;

	if (!contact->link)
		return theirs < count ? theirs : NEZHA_RAILS_MAX;
	for (uint32_t r = 0; r < count; r++)
		if (contact->link->paths[r].joined && contact->link->paths[r].peer_rail == theirs)
			return r;
	return NEZHA_RAILS_MAX;
}

static int is_back(struct nezha_contact *contact)
{
	uint32_t rail = rail_of(contact, contact->in.record.block);

	if (contact->in.record.block >= NEZHA_RAILS_MAX)
		return NEZHA_ERR_PROTOCOL;
	/* The right one does not know which of its rails we share. */
	if (rail != NEZHA_RAILS_MAX)
		nezha_regain_heard(contact->engine, contact->link, rail);
	return NEZHA_OK;
}

int nezha_contact_heard(struct nezha_contact *contact)
{
	bool asking = contact->state == NEZHA_CONTACT_ASKING;

	if (nezha_wire_check(&contact->in.record, asking ? NEZHA_CHANNEL_STATE : NEZHA_CHANNEL_QUERY,
	                     contact->engine->config.crc) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	if (contact->in.record.kind == NEZHA_WIRE_BACK)
		return is_back(contact);
	return asking ? answered(contact) : answer(contact);
}
