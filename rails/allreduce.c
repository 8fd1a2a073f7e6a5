/* SPDX-License-Identifier: BSD-3-Clause
 * One allreduce from entry to return: begin, drive the engine until all is done, end. */
#include <string.h>

#include "rails/breakdown.h"
#include "rails/clock.h"
#include "rails/collective.h"
#include "rails/deal.h"
#include "rails/engine.h"
#include "rails/gather.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define ASK_AFTER (20 * NEZHA_MSEC)       /* silence after which the right neighbour is asked what it knows */
#define TOUCH_AFTER NEZHA_SEC             /* ... after which it is sent something over the path itself */

static bool finished(const struct nezha_team *team)
{
	const struct nezha_call *call = &team->call;

	return call->finals == nezha_call_blocks(call) && call->done_sent && team->right_done == call->op;
}

static void tell_done(struct nezha_team *team)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_DONE, team->id, team->call.op);

	team->call.done_sent = true;
	team->finished = team->call.op;
	nezha_inlink_reply(team->left, &record);
}

/* Since when nothing has been heard that the right neighbour owes.  While its grant is missing, what comes from the left proves nothing: a
 * grant that went down with a rail, over which nothing goes yet that would show that it is dead, would be missed until the left
 * neighbour had nothing more to give.  After its grant of a gradual call's first blocks that of others
 * may be missed, too, but then neither blocks nor grants come. */
static uint64_t silent_since(const struct nezha_team *team)
{
	return TAILQ_EMPTY(&team->held) || nezha_link_has_granted(team) ? team->moved : team->call.began;
}

/* A record may have been lost with a path, and the neighbour may have left the call: its service thread knows.  What that cannot know is
 * that all we have sent was acknowledged by its kernel alone and went down with a connection whose end did not come through. */
static void ask_if_silent(struct nezha_team *team, uint64_t now)
{
	if (now - team->moved > TOUCH_AFTER && now - team->touched > TOUCH_AFTER) {
		team->touched = now;
		nezha_link_ask_again(team->right);
	}
	if (now - silent_since(team) < ASK_AFTER || now - team->queried < ASK_AFTER)
		return;
	team->queried = now;
	team->query = true;
	/* A grant of more blocks, which was lost with its path, is nothing that the service thread knows of. */
	if (!TAILQ_EMPTY(&team->held) && nezha_link_has_granted(team))
		nezha_link_ask_again(team->right);
	nezha_call_want_again(&team->call);
	nezha_service_kick(team->engine->service);
}

/* The common rails of the mask by our numbers; an empty mask is no restriction. */
static uint32_t our_rails(const struct nezha_team *team, uint32_t common)
{
	uint32_t ours = 0;

	for (int c = 0; c < team->common; c++)
		if (common >> c & 1)
			ours |= 1u << team->rails[c];
	return ours ? ours : UINT32_MAX;
}

/* What the call's note shall have of this rank; false: it carries none. */
static bool make_note(struct nezha_team *team, const struct nezha_grid *grid, const struct nezha_way *way,
                      uint64_t note[NEZHA_CALL_VALUES])
{
	bool rail;

	memset(note, 0xff, NEZHA_CALL_VALUES * sizeof *note);
	if (way->note)
		memcpy(note, way->note, NEZHA_NOTE_VALUES * sizeof *note);
	rail = !way->silent && nezha_collective_tell(team, grid, note + NEZHA_NOTE_VALUES);
	team->told = rail;
	return rail || way->note;
}

static void read_note(struct nezha_team *team, const struct nezha_way *way)
{
	const struct nezha_call *call = &team->call;

	if (way->note)
		memcpy(way->note, call->note, NEZHA_NOTE_VALUES * sizeof *call->note);
	if (team->told)
		nezha_collective_learn(team, call->note + NEZHA_NOTE_VALUES);
}

static int begin(struct nezha_team *team, const struct nezha_grid *grid, enum nezha_type type, enum nezha_op op,
                 const void *sendbuf, void *recvbuf, const struct nezha_way *way)
{
	struct nezha_call *call = &team->call;
	uint64_t note[NEZHA_CALL_VALUES];
	bool noted = make_note(team, grid, way, note);
	int rc = nezha_call_begin(call, grid, type, op, sendbuf, recvbuf, noted ? note : NULL);

	if (rc != NEZHA_OK)
		return rc;
	memset(team->last_bytes, 0, sizeof team->last_bytes);
	call->op = ++team->entered;
	call->active = true;
	call->began = team->moved = nezha_now();
	nezha_pace_begin(&team->pace, call->began);
	LIST_INSERT_HEAD(&team->engine->busy, team, busy);
	if (way->gradual)
		nezha_call_be_gradual(call, way->ready);
	nezha_inlink_grant(team);
	call->spare_rails = our_rails(team, way->rails);
	call->rails = nezha_collective_share(team, way, call->spare_rails);
	nezha_deal_expect(team, nezha_call_bytes(call));
	nezha_collective_post(team);
	nezha_gather_begin(team->engine);
	nezha_call_start(call);
	nezha_gather_end(team->engine);
	if (team->wanted_early)
		nezha_link_ask_again(team->right);
	team->wanted_early = false;
	return nezha_inlink_enter(team);
}

static void end(struct nezha_team *team)
{
	bool whole = finished(team);

	nezha_pace_end(&team->pace, nezha_now());
	team->call.active = false;
	team->finished = team->entered;
	nezha_link_forget(team->right, team, whole);
	nezha_inlink_forget(team, false);
	nezha_collective_finish(team);
	LIST_REMOVE(team, busy);
}

/* Each grant wakes the left neighbour up. */
static bool is_grant_due(const struct nezha_call *call)
{
	uint64_t told = (uint64_t)call->offered * call->grid.block, more = (uint64_t)(call->ready - call->offered) * call->grid.block;
	uint64_t step = told / 4;

	if (step < NEZHA_GRANT_LEAST)
		step = NEZHA_GRANT_LEAST;
	else if (step > NEZHA_GRANT_MOST)
		step = NEZHA_GRANT_MOST;
	return call->ready == call->grid.blocks || more >= step;
}

/* More of the contribution is there. */
static int go_on(struct nezha_team *team, uint64_t ready)
{
	struct nezha_call *call = &team->call;
	bool more;

	nezha_gather_begin(team->engine);
	more = nezha_call_make_ready(call, ready);
	nezha_gather_end(team->engine);
	if (!more)
		return NEZHA_OK;
	if (is_grant_due(call)) {
		call->offered = call->ready;
		nezha_inlink_grant(team);
	}
	return nezha_inlink_enter(team);
}

/* The caller's other work, as struct nezha_way has it. */
static int do_work(struct nezha_team *team, const struct nezha_way *way)
{
	uint64_t final, ready = 0;
	int rc;

	if (!way->work)
		return NEZHA_OK;
	final = nezha_call_final_bytes(&team->call);
	nezha_fairlock_give(&team->engine->lock);
	rc = way->work(way->context, final, &ready);
	nezha_fairlock_retake(&team->engine->lock);
	if (rc >= 0 && team->call.ready < team->call.grid.blocks && go_on(team, ready) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	return rc;
}

static int run(struct nezha_team *team, const struct nezha_way *way)
{
	struct nezha_engine *engine = team->engine;

	for (;;) {
		int work = do_work(team, way);
		uint64_t now;

		if (work < 0)
			return work;
		if (team->call.finals == nezha_call_blocks(&team->call) && !team->call.done_sent)
			tell_done(team);
		if (finished(team))
			return NEZHA_OK;
		if (team->broken)
			return NEZHA_ERR_PROTOCOL;
		now = nezha_now();
		if (nezha_breakdown_look(team, now))
			return NEZHA_ERR_UNREACHABLE;
		ask_if_silent(team, now);
		if (work == NEZHA_INPROGRESS)
			nezha_engine_poll(engine);
		else
			nezha_engine_wait(engine);
		/* What is final has something of all ranks: they are there. */
		nezha_engine_progress_mpi(engine, &team->pace, team->call.finals ? NEZHA_PACE_SELDOM : NEZHA_PACE_OFTEN);
	}
}

int nezha_allreduce(struct nezha_team *team, const void *sendbuf, void *recvbuf, uint64_t count,
                    enum nezha_type type, enum nezha_op op, const struct nezha_way *way)
{
	struct nezha_grid grid;
	int rc = nezha_grid_make(count * nezha_type_size(type), way->block, &grid);

	if (rc != NEZHA_OK)
		return rc;
	nezha_fairlock_take(&team->engine->lock);
	if (team->broken) {
		nezha_fairlock_give(&team->engine->lock);
		return NEZHA_ERR_PROTOCOL;
	}
	rc = begin(team, &grid, type, op, sendbuf, recvbuf, way);
	if (team->call.active) {
		if (rc == NEZHA_OK)
			rc = run(team, way);
		if (rc == NEZHA_OK)
			read_note(team, way);
		end(team);
	}
	/* Also without memory: the others would wait for this rank. */
	if (rc != NEZHA_OK)
		nezha_breakdown(team, (uint32_t)team->engine->config.process, NEZHA_NOBODY);
	nezha_fairlock_give(&team->engine->lock);
	return rc;
}
