/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/breakdown.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* Without any rail to a neighbour.  A closed port says that the process is gone; but only one of several could be a firewall's word. */
#define LOST_AFTER (10 * NEZHA_SEC)
#define PARTLY_REFUSED_AFTER (2 * NEZHA_SEC)
#define REFUSED_AFTER (500 * NEZHA_MSEC)
#define ANOTHER_WAIT NEZHA_SEC    /* not attended to for so long: who attends now has begun anew */
#define CAUSES 512               /* bytes */

/* ---- the message ---- */

static size_t grown(size_t at, int printed)
{
	at += printed > 0 ? (size_t)printed : 0;
	return at < CAUSES ? at : CAUSES - 1;
}

/* What has befallen each rail to the right: how it was lost, and what came of the last attempt to have it back. */
static void name_causes(const struct nezha_link *link, char causes[CAUSES])
{
	size_t at = 0;

	causes[0] = '\0';
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		const struct nezha_path *path = &link->paths[r];

		if (!path->joined)
			continue;
		at = grown(at, snprintf(causes + at, CAUSES - at, "%s%s: %s%s%s", at ? "; " : "",
		                        nezha_rail_name(&link->engine->rails[r]),
		                        path->lost ? path->outage.cause : "never connected", path->error ? ", then " : "",
		                        path->error ? strerror(path->error) : ""));
	}
}

static void name_rails(const struct nezha_engine *engine, char names[CAUSES])
{
	size_t at = 0;

	names[0] = '\0';
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		at = grown(at, snprintf(names + at, CAUSES - at, "%s%s", at ? ", " : "", nezha_rail_name(&engine->rails[r])));
}

/* ---- finding out ---- */

/* From when the last path was lost; what it was silent for before counts with the longest one only: the others are about what comes of
 * connecting anew. */
static uint64_t patience(const struct nezha_link *link)
{
	int joined = 0, refused = 0;

	for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
		joined += link->paths[r].joined;
		refused += link->paths[r].joined && link->paths[r].error == ECONNREFUSED;
	}
	return refused == joined ? REFUSED_AFTER : refused ? PARTLY_REFUSED_AFTER :
	       link->silent < LOST_AFTER ? LOST_AFTER - link->silent : 0;
}

/* Time in which no rank was in a call, or attended, does not count: nobody may have looked at the other ends. */
static uint64_t since(const struct nezha_team *team, uint64_t down)
{
	uint64_t looked = team->call.began > team->attended ? team->call.began : team->attended;

	return down > looked ? down : looked;
}

bool nezha_breakdown_look(struct nezha_team *team, uint64_t now)
{
	const struct nezha_link *right = team->right;
	const struct nezha_inlink *left = team->left;
	char text[CAUSES];

	if (right->down_since && now - since(team, right->down_since) > patience(right)) {
		name_causes(right, text);
		nezha_error("process %d on %s is lost, no rail leads there any more: %s", right->peer, right->card.hostname,
		            text);
		nezha_breakdown(team, (uint32_t)team->engine->config.process, (uint32_t)right->peer);
	} else if (left->down_since && now - since(team, left->down_since) > LOST_AFTER) {
		name_rails(team->engine, text);
		nezha_error("process %d on %s is lost, no rail leads from there any more: nothing comes over %s", left->peer,
		            left->hostname, text);
		nezha_breakdown(team, (uint32_t)team->engine->config.process, (uint32_t)left->peer);
	}
	return team->broken;
}

/* ---- telling ---- */

void nezha_breakdown_say(struct nezha_team *team)
{
	struct nezha_wire record;

	if (!team->fall.known)
		return;
	record = nezha_wire_make(NEZHA_WIRE_BROKEN, team->id, team->fall.found_by);
	record.block = team->fall.lost;
	nezha_inlink_reply(team->left, &record);
}

void nezha_breakdown(struct nezha_team *team, uint32_t found_by, uint32_t lost)
{
	team->broken = true;
	if (team->fall.known)
		return;
	team->fall = (struct nezha_fall){ .known = true, .id = team->id, .found_by = found_by, .lost = lost };
	nezha_breakdown_say(team);
}

void nezha_breakdown_heard(struct nezha_team *team, uint32_t found_by, uint32_t lost)
{
	if (team->fall.known)
		return;
	if (lost == NEZHA_NOBODY)
		nezha_info("process %u has given up a call: no rank can finish it", found_by);
	else
		nezha_info("process %u has lost process %u: no rank can finish the call", found_by, lost);
	nezha_breakdown(team, found_by, lost);
}

void nezha_team_give_up(struct nezha_team *team)
{
	nezha_fairlock_take(&team->engine->lock);
	nezha_breakdown(team, (uint32_t)team->engine->config.process, NEZHA_NOBODY);
	nezha_fairlock_give(&team->engine->lock);
}

int nezha_team_attend(struct nezha_team *team)
{
	uint64_t now;
	bool broken;

	nezha_fairlock_take(&team->engine->lock);
	now = nezha_now();
	if (now - team->attended_last > ANOTHER_WAIT)
		team->attended = now;
	team->attended_last = now;
	nezha_engine_poll(team->engine);
	broken = team->broken || nezha_breakdown_look(team, nezha_now());
	nezha_fairlock_give(&team->engine->lock);
	return broken ? NEZHA_ERR_UNREACHABLE : NEZHA_OK;
}

/* ---- answering ---- */

static const struct nezha_fall *find(struct nezha_engine *engine, uint64_t id)
{
	const struct nezha_team *team = nezha_engine_team(engine, id);

	if (team)
		return team->fall.known ? &team->fall : NULL;
	for (uint32_t i = 0; i < NEZHA_FALLS_KEPT; i++)
		if (engine->falls[i].known && engine->falls[i].id == id)
			return &engine->falls[i];
	return NULL;
}

bool nezha_breakdown_tell(struct nezha_engine *engine, struct nezha_wire *state)
{
	const struct nezha_fall *fall = find(engine, state->team);

	if (!fall)
		return false;
	state->origin = NEZHA_WIRE_FELL;
	state->op = fall->found_by;
	state->block = fall->lost;
	return true;
}

void nezha_breakdown_keep(struct nezha_team *team)
{
	if (team->fall.known)
		team->engine->falls[team->engine->fall_count++ % NEZHA_FALLS_KEPT] = team->fall;
}
