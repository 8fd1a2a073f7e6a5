/* SPDX-License-Identifier: BSD-3-Clause
 * Opening and closing of SHARP's rail. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/sharp.h"
#include "rails/sharp_aside.h"
#include "rails/sharp_exchange.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define OPEN_LIMIT (10 * NEZHA_SEC)      /* of the library, without a word to other ranks */
#define CLOSE_LIMIT (2 * NEZHA_SEC)
#define TRIAL_LIMIT (3 * NEZHA_SEC)
#define TRIAL_ELEMENTS 64
#define ALIGNMENT 4096

/* Whether that went well; else `why` has it. */
static bool well(struct nezha_sharp_aside *aside, const char *what, int rc)
{
	if (rc >= 0)
		return true;
	snprintf(aside->why, sizeof aside->why, "%s: %s", what, aside->sharp->api->text(rc));
	return false;
}

static void make_context(struct nezha_sharp_aside *aside)
{
	struct nezha_sharp *sharp = aside->sharp;
	const struct nezha_team *team = sharp->team;
	const struct nezha_sharp_api *api = sharp->api;
	const char *device = sharp->engine->config.sharp.device;
	struct nezha_sharp_init init = {
		.job = aside->job, .rank = team->rank, .ranks = team->ranks, .config = *api->defaults,
		.outside = nezha_sharp_outside, .threads = 1, .context = aside,
	};
	struct nezha_sharp_group group = { .rank = team->rank, .ranks = team->ranks, .context = aside };
	struct nezha_sharp_caps caps = { .version = 0 };

	init.config.devices = *device ? device : NULL;
	init.config.flags |= NEZHA_SHARP_EAGER_GROUPS;
	if (!well(aside, "sharp_coll_init", api->init(&init, &sharp->context)) ||
	    !well(aside, "sharp_coll_caps_query", api->caps(sharp->context, &caps)) ||
	    !well(aside, "sharp_coll_comm_init", api->group_init(sharp->context, &group, &sharp->group)) ||
	    !well(aside, "sharp_coll_reg_mr", api->register_memory(sharp->context, sharp->staging,
	                                                             2 * NEZHA_SHARP_SLOTS * (size_t)NEZHA_SHARP_BLOCK,
	                                                             &sharp->registration)))
		return;
	sharp->types = caps.types;
	sharp->operations = caps.operations;
}

static void end_context(struct nezha_sharp_aside *aside)
{
	struct nezha_sharp *sharp = aside->sharp;

	if (sharp->registration)
		sharp->api->release_memory(sharp->context, sharp->registration);
	if (sharp->group)
		sharp->api->group_end(sharp->group);
	if (sharp->context)
		sharp->api->end(sharp->context);
}

/* ---- opening ---- */

static struct nezha_sharp *make(struct nezha_team *team, const struct nezha_sharp_api *api)
{
	struct nezha_sharp *sharp = calloc(1, sizeof *sharp);
	void *staging = NULL;

	if (!sharp || posix_memalign(&staging, ALIGNMENT, 2 * NEZHA_SHARP_SLOTS * (size_t)NEZHA_SHARP_BLOCK)) {
		free(sharp);
		return NULL;
	}
	sharp->aside = nezha_sharp_aside_create(sharp);
	if (!sharp->aside) {
		free(staging);
		free(sharp);
		return NULL;
	}
	sharp->staging = staging;
	sharp->api = api;
	sharp->engine = team->engine;
	sharp->team = team;
	return sharp;
}

static void drop(struct nezha_sharp *sharp)
{
	nezha_sharp_aside_free(sharp->aside);
	free(sharp->staging);
	free(sharp->settled);
	free(sharp);
}

/* The first line of the job for the user; what comes later is for those who look. */
static void tell(const struct nezha_team *team, const char *why)
{
	bool first = team->rank == 0 && !team->engine->sharp_told;

	nezha_log(first ? NEZHA_LOG_WARN : NEZHA_LOG_INFO, "sharp is not used: %s; the other rails do its work", why);
	if (first)
		team->engine->sharp_told = true;
}

/* Whether all ranks have no objection; else one line says which has. */
static bool all_agree(struct nezha_team *team, const char *objection, bool by_others)
{
	char why[NEZHA_SHARP_WHY + 80] = "";
	int first = -1;
	enum nezha_sharp_say say = !objection ? NEZHA_SHARP_YES : by_others ? NEZHA_SHARP_NO_BY_OTHERS : NEZHA_SHARP_NO;

	snprintf(why, sizeof why, "on %.63s %s", team->engine->card.hostname, objection ? objection : "");
	if (nezha_sharp_vote(team, say, &first, why, sizeof why))
		return true;
	tell(team, first >= 0 ? why : "the ranks cannot agree about it");
	return false;
}

/* One small sum, so that what cannot work is found out now: NULL, or what speaks against it. */
static const char *try_out(struct nezha_sharp *sharp)
{
	int type = nezha_sharp_type(NEZHA_UINT32), sum = nezha_sharp_operation(NEZHA_SUM), rc;
	uint32_t *from = (uint32_t *)nezha_sharp_from(sharp, 0), *to = (uint32_t *)nezha_sharp_to(sharp, 0);
	uint32_t ranks = (uint32_t)sharp->team->ranks, rank = (uint32_t)sharp->team->rank;
	uint64_t since = nezha_now();
	struct nezha_pace pace = { 0 };

	if (!(sharp->types >> type & 1 && sharp->operations >> sum & 1))
		return "its library says that it cannot add 32-bit integers";
	for (uint32_t i = 0; i < TRIAL_ELEMENTS; i++)
		from[i] = (rank + 1) * i;
	rc = nezha_sharp_begin(sharp, 0, TRIAL_ELEMENTS, type, sum, TRIAL_ELEMENTS * sizeof *from);
	if (rc < 0)
		return sharp->api->text(rc);
	nezha_pace_begin(&pace, since);
	while (!nezha_sharp_ended(sharp, 0)) {
		if (nezha_now() - since > TRIAL_LIMIT) {
			sharp->engine->sharp_dead = true;
			return "its first request does not come to its end";
		}
		usleep(50);
		nezha_fairlock_take(&sharp->engine->lock);
		nezha_engine_progress_mpi(sharp->engine, &pace, NEZHA_PACE_OFTEN);
		nezha_fairlock_give(&sharp->engine->lock);
	}
	for (uint32_t i = 0; i < TRIAL_ELEMENTS; i++)
		if (to[i] != i * (ranks * (ranks + 1) / 2))
			return "its first sum is wrong";
	return NULL;
}

/* Collective steps, in which each rank says how far it came before all go on. */
static bool open_all(struct nezha_sharp *sharp)
{
	struct nezha_team *team = sharp->team;
	struct nezha_sharp_aside *aside = sharp->aside;
	const char *objection = NULL;
	uint64_t types, operations;
	int rc;

	randombytes_buf(&aside->job, sizeof aside->job);
	aside->job = team->rank ? 0 : aside->job;
	if (nezha_sharp_fold(team, NEZHA_BOR, &aside->job) != NEZHA_OK)
		return false;
	rc = nezha_sharp_aside_do(aside, make_context, OPEN_LIMIT);
	if (rc == NEZHA_INPROGRESS) {
		team->engine->sharp_dead = true;
		objection = "its library does not come to an end of sharp_coll_init";
	} else if (rc != NEZHA_OK) {
		objection = "there is no thread for it";
	} else if (*aside->why) {
		objection = aside->why;
	}
	if (!all_agree(team, objection, aside->alone))
		return false;
	types = sharp->types;
	operations = sharp->operations;
	if (nezha_sharp_fold(team, NEZHA_BAND, &types) != NEZHA_OK ||
	    nezha_sharp_fold(team, NEZHA_BAND, &operations) != NEZHA_OK)
		return false;
	sharp->types = types;
	sharp->operations = operations;
	return all_agree(team, try_out(sharp), false);
}

/* Collective, too: a member that a rank lacks would divide the calls.  One that has lost it by now takes part none the less. */
static bool attach(struct nezha_sharp *sharp)
{
	struct nezha_team *team = sharp->team;
	bool attached, agreed;

	nezha_fairlock_take(&team->engine->lock);
	attached = nezha_team_attach(team, &(struct nezha_collective){ .ops = &nezha_sharp_rail, .rail = sharp }) == NEZHA_OK;
	nezha_fairlock_give(&team->engine->lock);
	agreed = all_agree(team, attached ? NULL : "there is no memory", false);
	nezha_fairlock_take(&team->engine->lock);
	if (agreed)
		team->collective[team->collectives - 1].agreed = NEZHA_SHARP_TOKEN;
	else if (attached)
		nezha_team_detach(team);
	nezha_fairlock_give(&team->engine->lock);
	return agreed;
}

void nezha_sharp_open(struct nezha_team *team)
{
	const struct nezha_engine *engine = team->engine;
	const struct nezha_sharp_api *api;
	struct nezha_sharp *sharp = NULL;
	const char *why = NULL;
	char text[32];

	if (!engine->config.sharp.wanted)
		return;
	/* The rings of a node's other ranks, and communicators without its first one. */
	if (!nezha_sharp_vote(team, engine->config.sharp.leader ? NEZHA_SHARP_YES : NEZHA_SHARP_NO, NULL, text, sizeof text)) {
		nezha_info("sharp is not used by a ring whose ranks are not all the first ones of their nodes");
		return;
	}
	api = nezha_sharp_load(&why);
	if (api && engine->sharp_dead)
		why = "it was given up";
	else if (api && !(sharp = make(team, api)))
		why = "there is no memory";
	if (all_agree(team, sharp ? NULL : why, false) && open_all(sharp) && attach(sharp))
		nezha_info("sharp has all %d ranks: types %llx, operations %llx", team->ranks,
		           (unsigned long long)sharp->types, (unsigned long long)sharp->operations);
	else if (sharp)
		nezha_sharp_close(sharp);
}

/* ---- closing ---- */

struct nezha_sharp *nezha_sharp_detach(struct nezha_team *team)
{
	struct nezha_sharp *sharp;

	if (!team->collectives || team->collective[team->collectives - 1].ops != &nezha_sharp_rail)
		return NULL;
	sharp = team->collective[team->collectives - 1].rail;
	nezha_team_detach(team);
	return sharp;
}

/* What the library may still write to stays. */
void nezha_sharp_close(struct nezha_sharp *sharp)
{
	int rc = NEZHA_OK;

	nezha_sharp_aside_close(sharp->aside);
	if (sharp->engine->sharp_dead)
		return;
	if (sharp->context)
		rc = nezha_sharp_aside_do(sharp->aside, end_context, CLOSE_LIMIT);
	if (rc == NEZHA_OK)
		drop(sharp);
	else
		sharp->engine->sharp_dead = true;
}
