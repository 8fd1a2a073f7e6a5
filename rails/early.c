/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/early.h"

#include <stdlib.h>

#include "rails/inlink.h"
#include "rails/link.h"
#include "tuning/log.h"
#include "tuning/status.h"

static struct nezha_eager *find_early(struct nezha_team *team, uint32_t op, uint32_t block)
{
	struct nezha_eager *eager;

	TAILQ_FOREACH(eager, &team->eager, entry)
		if (eager->op == op && eager->block == block)
			return eager;
	return NULL;
}

/* Copies of a stored block that are still arriving are dropped. */
static void drop_copies(struct nezha_team *team, const struct nezha_eager *eager)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		struct nezha_landing *landing = &team->left->paths[r].landing;

		if (landing->mode == NEZHA_LAND_EAGER && landing->base == eager->data)
			nezha_landing_drop(landing);
	}
}

static void free_early(struct nezha_team *team, struct nezha_eager *eager)
{
	drop_copies(team, eager);
	TAILQ_REMOVE(&team->eager, eager, entry);
	if (eager->counted)
		team->left->eager -= eager->length;
	free(eager);
}

/* A block of the call that this rank will enter next: store it, within what the link allows. */
int nezha_early_land(struct nezha_inpath *inpath, struct nezha_team *team)
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
		                               .length = record->length, .counted = true };
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

/* Folds what came early and is whole. */
static int fold_early(struct nezha_team *team, struct nezha_eager *eager)
{
	struct nezha_call *call = &team->call;

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
	if (!(call->state[eager->block] & (NEZHA_BLOCK_FOLDED | NEZHA_BLOCK_FINAL | NEZHA_BLOCK_LANDING)))
		nezha_call_fold_rest(call, eager->block, eager->data);
	free_early(team, eager);
	return NEZHA_OK;
}

int nezha_inlink_enter(struct nezha_team *team)
{
	struct nezha_eager *eager, *next;

	for (eager = TAILQ_FIRST(&team->eager); eager; eager = next) {
		next = TAILQ_NEXT(eager, entry);
		if (eager->op != team->entered)
			continue;
		if (eager->have == eager->length) {
			if (fold_early(team, eager) != NEZHA_OK)
				return NEZHA_ERR_PROTOCOL;
		} else if (eager->counted) {
			/* With the grant that goes out now the sender has all of the allowance again. */
			team->left->eager -= eager->length;
			eager->counted = false;
		}
	}
	return NEZHA_OK;
}

void nezha_early_landed(struct nezha_landing *landing)
{
	struct nezha_team *team = landing->team;
	struct nezha_eager *eager = find_early(team, landing->op, landing->block);

	if (!eager)
		return;
	eager->have = eager->length;
	drop_copies(team, eager);
	if (team->call.active && team->entered == eager->op)
		fold_early(team, eager);
}

void nezha_early_forget(struct nezha_team *team, bool all)
{
	struct nezha_eager *eager, *next;

	for (eager = TAILQ_FIRST(&team->eager); eager; eager = next) {
		next = TAILQ_NEXT(eager, entry);
		if (all || eager->op == team->entered)
			free_early(team, eager);
	}
}
