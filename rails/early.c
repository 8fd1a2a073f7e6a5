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

/* Bytes that are stored of the call that the team is in: what was sent before the neighbour had its grant, so they are within the link's
 * allowance, too, though no longer counted there. */
static uint32_t stored_of_call(const struct nezha_team *team)
{
	const struct nezha_eager *eager;
	uint32_t bytes = 0;

	TAILQ_FOREACH(eager, &team->eager, entry)
		bytes += eager->op == team->entered ? eager->length : 0;
	return bytes;
}

/* A block that is not ready here: store it, within what the link allows. */
int nezha_early_land(struct nezha_inpath *inpath, struct nezha_team *team)
{
	const struct nezha_wire *record = &inpath->record;
	struct nezha_eager *eager = find_early(team, record->op, record->block);
	bool entered = record->op == team->entered;

	if (record->kind != NEZHA_WIRE_PARTIAL)
		return NEZHA_ERR_PROTOCOL;
	if (eager && eager->length != record->length)
		return NEZHA_ERR_PROTOCOL;
	if (!eager) {
		if ((entered ? stored_of_call(team) : inpath->inlink->eager) + record->length > NEZHA_EAGER_BYTES)
			return NEZHA_ERR_PROTOCOL;
		eager = malloc(sizeof *eager + record->length);
		if (!eager)
			return NEZHA_ERR_NOMEM;
		*eager = (struct nezha_eager){ .op = record->op, .block = record->block,
		                               .length = record->length, .counted = !entered };
		TAILQ_INSERT_TAIL(&team->eager, eager, entry);
		if (eager->counted)
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

/* A block that is none of the call's is due at once, to be refused. */
static bool is_due(const struct nezha_team *team, const struct nezha_eager *eager)
{
	return eager->have == eager->length &&
	       (eager->block >= team->call.grid.blocks || nezha_call_is_ready(&team->call, eager->block));
}

int nezha_inlink_enter(struct nezha_team *team)
{
	struct nezha_eager *eager, *next;

	for (eager = TAILQ_FIRST(&team->eager); eager; eager = next) {
		next = TAILQ_NEXT(eager, entry);
		if (eager->op != team->entered)
			continue;
		/* With the grant that has gone out the sender has all of the allowance again. */
		if (eager->counted)
			team->left->eager -= eager->length;
		eager->counted = false;
		if (is_due(team, eager) && fold_early(team, eager) != NEZHA_OK)
			return NEZHA_ERR_PROTOCOL;
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
	if (team->call.active && team->entered == eager->op && is_due(team, eager))
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
