/* SPDX-License-Identifier: BSD-3-Clause
 * When a block may be sent: its receiver must be able to take it. */
#include "rails/link.h"

#include "rails/clock.h"
#include "rails/deal.h"

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
