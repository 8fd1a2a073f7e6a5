/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/collective.h"

#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/event.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define LOST_TOKEN 1                     /* of no session, and not 0 */
#define NOTE_BYTES (64u << 10)           /* calls of so many bytes carry a note, and every NOTE_EVERY-th */
#define NOTE_BYTES_ALONE (1u << 20)
#define NOTE_EVERY 8

/* ---- the team's rails ---- */

/* The shares begin anew with each rail that comes. */
static int make_split(struct nezha_team *team)
{
	uint32_t occupied[NEZHA_COLLECTIVES_MAX];

	if (!team->split)
		team->split = malloc(sizeof *team->split);
	if (!team->split)
		return NEZHA_ERR_NOMEM;
	for (int i = 0; i < team->collectives; i++)
		occupied[i] = team->collective[i].common;
	nezha_split_init(team->split, team->ranks, (1u << team->common) - 1, occupied, team->collectives);
	return NEZHA_OK;
}

int nezha_team_attach(struct nezha_team *team, const struct nezha_collective *member)
{
	int rc;

	if (team->collectives == NEZHA_COLLECTIVES_MAX)
		return NEZHA_ERR_UNSUPPORTED;
	team->collective[team->collectives++] = *member;
	rc = make_split(team);
	if (rc != NEZHA_OK)
		nezha_team_detach(team);
	return rc;
}

void nezha_team_detach(struct nezha_team *team)
{
	if (--team->collectives)
		return;
	free(team->split);
	team->split = NULL;
}

uint32_t nezha_collective_present(const struct nezha_team *team)
{
	uint32_t present = 0;

	for (int i = 0; i < team->collectives; i++) {
		const struct nezha_collective *member = &team->collective[i];

		if (member->ops->token && member->ops->token(member->rail))
			present |= 1u << i;
	}
	return present;
}

/* All ranks had it when they were asked.  One that has lost it since takes part none the less. */
void nezha_collective_open(struct nezha_team *team, uint32_t present)
{
	for (int i = 0; i < team->collectives; i++) {
		struct nezha_collective *member = &team->collective[i];
		uint64_t token;

		if (!(present >> i & 1) || !member->ops->token)
			continue;
		token = member->ops->token(member->rail);
		member->agreed = token ? token : LOST_TOKEN;
	}
}

/* ---- the note ---- */

/* A note goes around the ring.  Where the links have no rail that the collective ones do not use, it waits behind their
 * packets: then only large calls can wait that long. */
static bool carries_note(const struct nezha_team *team, const struct nezha_grid *grid)
{
	uint32_t least = nezha_split_free_rails(team->split) ? NOTE_BYTES : NOTE_BYTES_ALONE;

	return grid->bytes >= least || (team->entered + 1) % NOTE_EVERY == 0;
}

bool nezha_collective_tell(struct nezha_team *team, const struct nezha_grid *grid, uint64_t values[NEZHA_RAIL_VALUES])
{
	if (!team->collectives || !team->collective[0].ops->token || !carries_note(team, grid))
		return false;
	team->noted = team->last;
	values[0] = team->took[NEZHA_SIDE_LINKS];
	for (int i = 0; i < team->collectives; i++) {
		const struct nezha_collective *member = &team->collective[i];
		uint64_t token = member->ops->token(member->rail), *of = values + 1 + 3 * i;

		of[0] = token;
		of[1] = ~token;
		of[2] = team->took[NEZHA_SIDE_RAIL + i];
	}
	return true;
}

/* The least token is the greatest: all ranks hold the same.  A rail that has come back may have been left out before for long: its
 * time is to be measured again.  Whether it has is told by notes alone: what ranks held at the opening, one may have lost by then. */
static void agree(struct nezha_team *team, int i, const uint64_t of[2])
{
	struct nezha_collective *member = &team->collective[i];
	uint64_t before = member->agreed;

	member->agreed = of[0] == ~of[1] ? of[0] : 0;
	if (member->agreed && member->noted && member->agreed != before)
		nezha_split_renew(team->split, i);
	member->noted = true;
}

void nezha_collective_learn(struct nezha_team *team, const uint64_t values[NEZHA_RAIL_VALUES])
{
	uint64_t took[NEZHA_COLLECTIVES_MAX] = { 0 };

	for (int i = 0; i < team->collectives; i++) {
		const uint64_t *of = values + 1 + 3 * i;

		agree(team, i, of);
		took[i] = of[2];
		if (team->noted.valid)
			nezha_debug("the last call's %u of %u blocks took %s%d %llu us, the others the links %llu us",
			            team->noted.parts.blocks[i], team->noted.grid.blocks, team->collective[i].ops->name, i,
			            (unsigned long long)(took[i] / NEZHA_USEC), (unsigned long long)(values[0] / NEZHA_USEC));
	}
	if (team->noted.valid)
		nezha_split_learn(team->split, &team->noted.grid, &team->noted.parts, took, values[0]);
}

/* ---- a call ---- */

static void choose_parts(struct nezha_team *team, const struct nezha_way *way, struct nezha_parts *parts)
{
	const struct nezha_grid *grid = &team->call.grid;
	uint32_t present = 0;

	memset(parts, 0, sizeof *parts);
	if (!team->collective[0].ops->token) {
		parts->blocks[0] = way->shared < grid->blocks ? way->shared : grid->blocks;
		return;
	}
	team->last.valid = !way->rails;
	if (way->rails)
		return;
	for (int i = 0; i < team->collectives; i++) {
		const struct nezha_collective *member = &team->collective[i];

		if (member->agreed && (!member->ops->takes || member->ops->takes(member->rail, &team->call)))
			present |= 1u << i;
	}
	nezha_split_choose(team->split, grid, present, parts);
	nezha_split_count(team->split, grid, parts);
	team->last = (struct nezha_collective_account){ true, *grid, *parts };
}

uint32_t nezha_collective_share(struct nezha_team *team, const struct nezha_way *way, uint32_t allowed)
{
	uint32_t all = (1u << team->engine->card.rail_count) - 1, used = 0, others, first = 0;
	struct nezha_parts parts;

	if (!team->collectives)
		return allowed;
	choose_parts(team, way, &parts);
	for (int i = 0; i < team->collectives; i++) {
		struct nezha_collective *member = &team->collective[i];

		member->first = first;
		member->count = parts.blocks[i];
		first += member->count;
		if (member->count)
			used |= member->ours;
		nezha_call_share(&team->call, i, member->first, member->count);
	}
	others = allowed & all & ~used;
	return others ? others : allowed;
}

void nezha_collective_post(struct nezha_team *team)
{
	struct nezha_call *call = &team->call;

	team->refused = false;
	for (int i = 0; i < team->collectives; i++) {
		struct nezha_collective *member = &team->collective[i];
		bool held = !member->ops->token || member->ops->token(member->rail) == member->agreed;

		if (!member->count || (held && member->ops->post(member->rail, call, member->first, member->count) == NEZHA_OK))
			continue;
		for (uint32_t b = member->first; b < member->first + member->count; b++)
			nezha_call_return(call, b);
		member->count = 0;
		team->refused = true;
	}
}

void nezha_collective_progress(struct nezha_team *team)
{
	for (int i = 0; i < team->collectives; i++)
		if (team->collective[i].count)
			team->collective[i].ops->progress(team->collective[i].rail, &team->call);
}

void nezha_collective_cancel(struct nezha_team *team, uint32_t block)
{
	int i = nezha_call_side(&team->call, block) - NEZHA_SIDE_RAIL;

	if (i >= 0)
		team->collective[i].ops->cancel(team->collective[i].rail, &team->call, block);
}

/* Of a call in which anything was handed back the times tell nothing. */
void nezha_collective_finish(struct nezha_team *team)
{
	const struct nezha_call *call = &team->call;
	bool well = !team->refused;

	for (int i = 0; i < team->collectives; i++) {
		struct nezha_collective *member = &team->collective[i];

		if (member->count)
			nezha_event_reduced(team, i);
		if (member->count)
			well = member->ops->finish(member->rail, &team->call) && well;
		member->count = 0;
	}
	for (int side = 0; side < NEZHA_SIDES; side++)
		team->took[side] = well && call->ended[side] ? call->ended[side] - call->began : 0;
}
