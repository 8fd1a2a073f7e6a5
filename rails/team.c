/* SPDX-License-Identifier: BSD-3-Clause
 * Opening and closing of teams: who are the neighbours, what joins us. */
#include "rails/team.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "rails/breakdown.h"
#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/ina.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/probing.h"
#include "rails/service.h"
#include "rails/sharp.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define LINK_OK (1u << 31)               /* in rails_ok: the link works, by whatever rail */
#define COLLECTIVE_OK 16                 /* ... from this bit on: the collective rails are there */
#define INA_WAIT (2 * NEZHA_SEC)
#define OTHER_RAILS_WAIT NEZHA_SEC       /* with one rail connected, the others get this long */
#define PROBE_WAIT (500 * NEZHA_MSEC)

/* ---- rails in common ---- */

bool nezha_card_same_rail(const struct nezha_card_rail *a, const struct nezha_card_rail *b)
{
	return a->kind == b->kind && a->key_subnet == b->key_subnet && a->key_prefix == b->key_prefix &&
	       a->key_entry == b->key_entry && a->key_ordinal == b->key_ordinal;
}

/* The process's number of the rail, -1: it has no such rail. */
static int find_rail(const struct nezha_card *card, const struct nezha_card_rail *rail)
{
	for (uint32_t i = 0; i < card->rail_count; i++)
		if (nezha_card_same_rail(&card->rails[i], rail))
			return (int)i;
	return -1;
}

/* Rails in common are numbered in the order of rank 0's card, and so alike on all ranks. */
static void count_rails(struct nezha_team *team, const struct nezha_card *cards)
{
	for (uint32_t i = 0; i < cards[0].rail_count; i++) {
		bool all = true;

		for (int k = 1; k < team->ranks && all; k++)
			all = find_rail(&cards[k], &cards[0].rails[i]) >= 0;
		if (!all)
			continue;
		team->subnet[team->common] = nezha_subnet_of(cards[0].rails[i].address, cards[0].rails[i].prefix);
		team->rails[team->common++] = find_rail(&cards[team->rank], &cards[0].rails[i]);
	}
	for (int k = 0; k < team->ranks; k++)
		if ((int)cards[k].rail_count > team->most)
			team->most = (int)cards[k].rail_count;
}

uint32_t nezha_team_guesses(const struct nezha_team *team)
{
	return team->split ? NEZHA_SPLIT_GUESSES : 0;
}

int nezha_team_rails_common(const struct nezha_team *team, int *most)
{
	*most = team->most;
	return team->common;
}

struct nezha_subnet nezha_team_rail(const struct nezha_team *team, int c)
{
	return team->subnet[c];
}

uint32_t nezha_team_rails_named(const struct nezha_team *team, const struct nezha_rail_set *set)
{
	uint32_t named = 0;

	for (int c = 0; c < team->common; c++)
		if (team->engine->rails[team->rails[c]].kind == NEZHA_RAIL_TCP && nezha_rail_set_has(set, &team->subnet[c]))
			named |= 1u << c;
	return named;
}

bool nezha_team_is_whole(const struct nezha_team *team)
{
	struct nezha_engine *engine = team->engine;
	bool whole = true;

	nezha_fairlock_take(&engine->lock);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		whole = whole && (team->right->paths[r].up || !team->right->paths[r].lost);
	nezha_fairlock_give(&engine->lock);
	return whole;
}

/* ---- opening ---- */

static int check_cards(const struct nezha_card *cards, int nranks)
{
	for (int k = 0; k < nranks; k++) {
		if (cards[k].protocol == NEZHA_PROTOCOL && cards[k].rail_count <= NEZHA_RAILS_MAX)
			continue;
		nezha_error("the Nezha on host %.63s speaks protocol %u, this one %u: install the same version",
		            cards[k].hostname, cards[k].protocol, NEZHA_PROTOCOL);
		return NEZHA_ERR_PROTOCOL;
	}
	return NEZHA_OK;
}

/* All ranks have the same cards, so they agree: none waits for a session that another one cannot have. */
static int attach_inas(struct nezha_team *team, const struct nezha_card *cards)
{
	bool room = true;
	int rc = NEZHA_OK;

	if (team->engine->config.aggregator_count && team->ranks > NEZHA_INA_RANKS_MAX) {
		if (team->rank == 0)
			nezha_info("aggregators serve %d nodes at most: a communicator on %d goes without", NEZHA_INA_RANKS_MAX,
			           team->ranks);
		return NEZHA_OK;
	}
	for (int k = 0; k < team->ranks; k++)
		room = room && cards[k].ina_room;
	nezha_fairlock_take(&team->engine->lock);
	if (room)
		rc = nezha_ina_attach(team);
	else if (team->engine->config.aggregator_count)
		nezha_ina_tell_full(team);
	nezha_fairlock_give(&team->engine->lock);
	return rc;
}

/* Waits for the first attempts to reach the aggregators. */
static void wait_for_inas(struct nezha_team *team, uint64_t until)
{
	uint64_t limit = nezha_now() + INA_WAIT;
	struct nezha_pace pace = { 0 };

	nezha_pace_begin(&pace, nezha_now());
	while (!nezha_ina_attempted(team) && nezha_now() < (until < limit ? until : limit)) {
		nezha_engine_wait(team->engine);
		nezha_engine_progress_mpi(team->engine, &pace, NEZHA_PACE_OFTEN);
	}
}

static int create(struct nezha_engine *engine, const struct nezha_card *cards, int nranks, int rank, uint64_t id,
                  struct nezha_team **out)
{
	struct nezha_team *team;

	if (check_cards(cards, nranks) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	team = calloc(1, sizeof *team);
	if (!team)
		return NEZHA_ERR_NOMEM;
	team->engine = engine;
	team->id = id;
	team->ranks = nranks;
	team->rank = rank;
	team->call.team = team;
	TAILQ_INIT(&team->held);
	TAILQ_INIT(&team->eager);
	count_rails(team, cards);
	nezha_fairlock_take(&engine->lock);
	team->right = nezha_link_get(engine, &cards[(rank + 1) % nranks]);
	team->left = nezha_inlink_get(engine, cards[(rank + nranks - 1) % nranks].process);
	if (team->left)
		nezha_inlink_know(team->left, &cards[(rank + nranks - 1) % nranks]);
	if (team->right && team->left) {
		LIST_INSERT_HEAD(&engine->teams, team, entry);
		LIST_INSERT_HEAD(nezha_engine_bucket(engine, id), team, same);
	}
	nezha_fairlock_give(&engine->lock);
	if (!team->right || !team->left) {
		free(team);
		return NEZHA_ERR_NOMEM;
	}
	if (attach_inas(team, cards) != NEZHA_OK) {
		nezha_team_destroy(team);
		return NEZHA_ERR_NOMEM;
	}
	nezha_service_kick(engine->service);
	*out = team;
	return NEZHA_OK;
}

int nezha_team_create(struct nezha_engine *engine, const struct nezha_card *cards, int nranks, int rank,
                      uint64_t id, struct nezha_team **out)
{
	int status = create(engine, cards, nranks, rank, id, out);

	if (status == NEZHA_ERR_NOMEM)
		nezha_lack_note(engine->config.lack, "a team's memory", ENOMEM);
	return status;
}

static int joined_paths(const struct nezha_link *link)
{
	int joined = 0;

	for (int r = 0; r < NEZHA_RAILS_MAX; r++)
		joined += link->paths[r].joined;
	return joined;
}

/* Waits for the paths to the right neighbour and returns how many are up. */
static int wait_for_paths(struct nezha_team *team, uint64_t until)
{
	struct nezha_link *link = team->right;
	int want = joined_paths(link), up;
	struct nezha_pace pace = { 0 };
	uint64_t first = 0;

	nezha_pace_begin(&pace, nezha_now());
	while ((up = nezha_link_paths_up(link)) < want && nezha_now() < until) {
		if (up && !first)
			first = nezha_now();
		if (up && (link->opened || nezha_now() - first > OTHER_RAILS_WAIT))
			break;
		nezha_engine_wait(team->engine);
		nezha_engine_progress_mpi(team->engine, &pace, NEZHA_PACE_OFTEN);
	}
	return up;
}

static bool is_probing(const struct nezha_team *team)
{
	bool on = false;

	for (uint32_t r = 0; r < team->engine->card.rail_count; r++)
		on = on || nezha_probing_is_on(&team->right->paths[r]);
	return on;
}

/* Whether the left neighbour's opening probe is still to come, or to end.  It has none before its paths are up; who left before that
 * would take nothing of it in, and keep the neighbour waiting. */
static bool is_probed_from(const struct nezha_team *team)
{
	bool more = !team->left->opened && !nezha_inlink_paths_up(team->left);

	for (uint32_t r = 0; r < team->engine->card.rail_count; r++)
		more = more || (team->left->paths[r].up && !team->left->paths[r].probed);
	return more;
}

/* Measures the rails, all at once and all ranks together, as a call will use them.  The left neighbour may wait for other rails first. */
static void probe(struct nezha_team *team)
{
	struct nezha_engine *engine = team->engine;
	struct nezha_link *link = team->right;
	bool ours = !link->opened;
	struct nezha_pace pace = { 0 };
	uint64_t start = nezha_now(), spent = 0;

	nezha_pace_begin(&pace, start);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		if (link->paths[r].up && ours)
			nezha_probing_begin(&link->paths[r]);
	while ((ours && spent < PROBE_WAIT && is_probing(team)) || (spent < OTHER_RAILS_WAIT + PROBE_WAIT && is_probed_from(team))) {
		nezha_engine_wait(engine);
		nezha_engine_progress_mpi(engine, &pace, NEZHA_PACE_OFTEN);
		spent = nezha_now() - start;
	}
}

/* With what a firewall's rules would name. */
static void tell_unreached(const struct nezha_link *link, int rail)
{
	const struct nezha_path *path = &link->paths[rail];
	const struct nezha_card_rail *theirs = &link->card.rails[path->peer_rail];
	char address[INET_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET, &(struct in_addr){ theirs->address }, address, sizeof address);
	nezha_info("rail %s does not reach process %d on %s (TCP, %s port %u): %s", nezha_rail_name(&link->engine->rails[rail]),
	           link->peer, link->card.hostname, address, theirs->port, path->error ? strerror(path->error) : "no answer");
}

int nezha_team_connect(struct nezha_team *team, double timeout_s, uint32_t *rails_ok)
{
	struct nezha_engine *engine = team->engine;
	uint64_t until = nezha_now() + (uint64_t)(timeout_s * NEZHA_SEC);
	struct nezha_link *link = team->right;
	uint32_t mask = 0;

	nezha_fairlock_take(&engine->lock);
	if (wait_for_paths(team, until))
		mask = LINK_OK;
	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		if (!link->paths[r].up && link->paths[r].joined && !link->opened && !link->paths[r].why_told)
			tell_unreached(link, (int)r);
	}
	if (mask)
		probe(team);
	/* Only now: a path may be lost by the probe. */
	if (!nezha_link_paths_up(link))
		mask = 0;
	for (int c = 0; c < team->common; c++)
		if (link->paths[team->rails[c]].up)
			mask |= 1u << c;
	if (mask) {
		wait_for_inas(team, until);
		mask |= nezha_collective_present(team) << COLLECTIVE_OK;
	}
	link->opened = team->left->opened = true;
	nezha_fairlock_give(&engine->lock);
	*rails_ok = mask;
	return NEZHA_OK;
}

void nezha_team_activate(struct nezha_team *team, uint32_t rails)
{
	nezha_debug("team %llx: rails %x", (unsigned long long)team->id, rails);
	nezha_fairlock_take(&team->engine->lock);
	nezha_collective_open(team, rails >> COLLECTIVE_OK & ((1u << NEZHA_COLLECTIVES_MAX) - 1));
	nezha_fairlock_give(&team->engine->lock);
	nezha_sharp_open(team);
}

/* ---- closing ---- */

void nezha_team_destroy(struct nezha_team *team)
{
	struct nezha_sharp *sharp;

	if (!team)
		return;
	nezha_fairlock_take(&team->engine->lock);
	sharp = nezha_sharp_detach(team);
	nezha_ina_detach(team);
	nezha_inlink_forget(team, true);
	nezha_breakdown_keep(team);
	LIST_REMOVE(team, entry);
	LIST_REMOVE(team, same);
	nezha_fairlock_give(&team->engine->lock);
	if (sharp)
		nezha_sharp_close(sharp);
	nezha_call_free(&team->call);
	free(team);
}

uint64_t nezha_team_last_bytes(const struct nezha_team *team, size_t rail)
{
	if (rail >= team->engine->card.rail_count)
		rail += NEZHA_RAILS_MAX - team->engine->card.rail_count;
	return rail < NEZHA_STATS_MAX ? team->last_bytes[rail] : 0;
}
