/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define SILENCE (90 * NEZHA_MSEC)        /* without a word although asked every 20 ms: it is dead */
#define LOOK_STEP (10 * NEZHA_MSEC)      /* time in which we did not look counts this much at most */
#define AGAIN_MOST 32                    /* chunks sent again at a time */
#define LOST_TOKEN 1                     /* of no session, and not 0 */
#define NOTE_BYTES (64u << 10)           /* calls of so many bytes carry a note, and every NOTE_EVERY-th */
#define NOTE_BYTES_ALONE (1u << 20)
#define NOTE_EVERY 8

/* ---- the end of blocks ---- */

static void settle(struct nezha_ina *ina, uint32_t b, bool final)
{
	ina->left[b - ina->first] = 0;
	ina->open--;
	if (final)
		nezha_call_final(&ina->team->call, b);
	else
		nezha_call_return(&ina->team->call, b);
}

void nezha_ina_fail(struct nezha_ina *ina, const char *cause)
{
	if (ina->state == NEZHA_INA_JOINED) {
		ina->engine->stats[NEZHA_RAILS_MAX].failures++;
		nezha_info("the aggregator's session is lost: %s", cause);
	}
	if (ina->state != NEZHA_INA_IDLE)
		nezha_ina_session_end(ina);
	nezha_service_kick(ina->engine->service);
	if (!ina->open)
		return;
	ina->failed = true;
	for (uint32_t b = ina->first; b < ina->first + ina->count; b++)
		if (ina->left[b - ina->first])
			settle(ina, b, false);
}

static char *stage_of(const struct nezha_ina *ina, uint32_t b)
{
	return ina->stage + (size_t)(b % ina->stage_blocks) * ina->team->call.grid.block;
}

void nezha_ina_result(struct nezha_ina *ina, uint32_t seq, const char *data)
{
	struct nezha_call *call = &ina->team->call;
	struct nezha_ina_place place = nezha_ina_place(ina, seq);
	uint32_t b = place.block;
	char *to = ina->staged ? stage_of(ina, b) : nezha_call_place(call, b);

	memcpy(to + place.offset, data, place.length);
	if (--ina->left[b - ina->first])
		return;
	if (ina->staged)
		memcpy(nezha_call_place(call, b), to, nezha_call_length(call, b));
	settle(ina, b, true);
}

/* ---- a call ---- */

static bool make_room(struct nezha_ina *ina, uint32_t blocks)
{
	uint32_t *left;

	if (blocks <= ina->room)
		return true;
	left = realloc(ina->left, blocks * sizeof *left);
	if (!left)
		return false;
	ina->left = left;
	ina->room = blocks;
	return true;
}

/* With MPI_IN_PLACE the contribution to a block must stay until all of it is final: the results wait.  The window
 * reaches over so many blocks at most. */
static bool make_stage(struct nezha_ina *ina, const struct nezha_call *call)
{
	uint32_t blocks = (ina->welcome.window - 1u) / ina->per_block + 2;
	size_t bytes = (size_t)blocks * call->grid.block;
	char *stage;

	ina->staged = call->sendbuf == call->recvbuf;
	ina->stage_blocks = blocks;
	if (!ina->staged || bytes <= ina->stage_room)
		return true;
	stage = realloc(ina->stage, bytes);
	if (!stage)
		return false;
	ina->stage = stage;
	ina->stage_room = bytes;
	return true;
}

static uint32_t chunks_of(const struct nezha_ina *ina, uint32_t b)
{
	return (nezha_call_length(&ina->team->call, b) + ina->welcome.chunk - 1) / ina->welcome.chunk;
}

static void ask(struct nezha_ina *ina, uint64_t now)
{
	if (nezha_ina_window_stuck(&ina->window, now) && nezha_ina_send_again(ina, ina->window.first, true, now) < 0)
		nezha_ina_fail(ina, "its port is closed");
}

static void send_lost(struct nezha_ina *ina, uint64_t now)
{
	uint32_t lost[AGAIN_MOST], count = nezha_ina_window_lost(&ina->window, lost, AGAIN_MOST);

	for (uint32_t i = 0; i < count; i++)
		if (nezha_ina_send_again(ina, lost[i], false, now) < 0) {
			nezha_ina_fail(ina, "its port is closed");
			return;
		}
}

static void move(struct nezha_ina *ina)
{
	uint64_t now = nezha_now(), since = now - ina->looked;

	ina->silent += since < LOOK_STEP ? since : LOOK_STEP;
	ina->looked = now;
	if (nezha_ina_receive(ina, now) < 0)
		nezha_ina_fail(ina, "its port is closed");
	if (ina->open)
		send_lost(ina, now);
	if (ina->open && nezha_ina_send(ina, now) < 0)
		nezha_ina_fail(ina, "nothing can be sent to it");
	if (ina->open)
		ask(ina, now);
	if (ina->open && ina->silent > SILENCE)
		nezha_ina_fail(ina, "it is silent");
}

static int post(void *rail, struct nezha_call *call, uint32_t first, uint32_t count)
{
	struct nezha_ina *ina = rail;
	uint64_t now = nezha_now();
	uint32_t chunks = 0;

	ina->open = 0;
	ina->failed = false;
	if (ina->state != NEZHA_INA_JOINED || ina->welcome.token != ina->agreed) {
		ina->failed = true;
		return NEZHA_ERR_UNREACHABLE;
	}
	if (ina->used != ina->agreed) {
		nezha_ina_window_open(&ina->window, ina->welcome.window);
		ina->used = ina->agreed;
	}
	ina->first = first;
	ina->count = count;
	ina->per_block = (call->grid.block + ina->welcome.chunk - 1) / ina->welcome.chunk;
	ina->base = ina->window.next;
	if (!make_room(ina, count) || !make_stage(ina, call)) {
		nezha_ina_fail(ina, "no memory for a call");
		ina->failed = true;
		return NEZHA_ERR_NOMEM;
	}
	for (uint32_t b = 0; b < count; b++)
		chunks += ina->left[b] = chunks_of(ina, first + b);
	ina->open = count;
	nezha_ina_window_begin(&ina->window, chunks, now);
	ina->looked = now;
	ina->silent = 0;
	move(ina);
	return NEZHA_OK;
}

static void progress(void *rail, struct nezha_call *call)
{
	struct nezha_ina *ina = rail;

	(void)call;
	if (ina->open)
		move(ina);
}

/* A neighbour has got its blocks back: so the session is lost there, and will not finish anything. */
static void cancel(void *rail, struct nezha_call *call, uint32_t b)
{
	struct nezha_ina *ina = rail;

	(void)call;
	if (ina->open && b - ina->first < ina->count && ina->left[b - ina->first])
		nezha_ina_fail(ina, "a neighbour has lost it");
}

static void finish(void *rail, struct nezha_call *call)
{
	struct nezha_ina *ina = rail;

	/* A call that ends with an error leaves the session in the middle of its chunks. */
	if (ina->open) {
		ina->open = 0;
		ina->failed = true;
		nezha_ina_session_end(ina);
		nezha_service_kick(ina->engine->service);
	}
	if (ina->last.valid && ina->last.shared && !ina->failed)
		ina->barren = ina->pause = 0;
	for (int side = 0; side < 2; side++)
		ina->took[side] = ina->failed || !call->ended[side] ? 0 : call->ended[side] - call->began;
}

void nezha_ina_ready(struct nezha_ina_socket *socket)
{
	if (socket->end.fd >= 0 && socket->ina->open)
		move(socket->ina);
}

/* ---- agreement ---- */

static uint32_t share(void *rail, const struct nezha_grid *grid)
{
	struct nezha_ina *ina = rail;
	uint32_t shared;

	ina->failed = false;
	ina->last.valid = grid != NULL;
	if (!grid)
		return 0;
	shared = ina->agreed ? nezha_ina_share_choose(&ina->share, grid) : 0;
	ina->last = (struct nezha_ina_account){ true, *grid, shared };
	nezha_ina_share_count(&ina->share, grid, shared);
	return shared;
}

static uint32_t occupies(void *rail)
{
	const struct nezha_ina *ina = rail;

	return ina->rail >= 0 ? 1u << ina->rail : 0;
}

/* A note goes around the ring.  Where the links have no other rail than the aggregator's, it waits behind its packets:
 * then only large calls can wait that long. */
static bool notes(void *rail, const struct nezha_grid *grid, uint32_t op)
{
	const struct nezha_ina *ina = rail;

	return grid->bytes >= (ina->share.rails ? NOTE_BYTES : NOTE_BYTES_ALONE) || op % NOTE_EVERY == 0;
}

static void tell(void *rail, uint64_t values[NEZHA_RAIL_VALUES])
{
	struct nezha_ina *ina = rail;
	uint64_t token = ina->state == NEZHA_INA_JOINED ? ina->welcome.token : 0;

	ina->noted = ina->last;
	values[0] = token;
	values[1] = ~token;
	values[2] = ina->took[NEZHA_SIDE_RAIL];
	values[3] = ina->took[NEZHA_SIDE_LINKS];
}

static void learn(void *rail, const uint64_t values[NEZHA_RAIL_VALUES])
{
	struct nezha_ina *ina = rail;

	/* The least token is the greatest: all ranks hold the same. */
	ina->agreed = values[0] == ~values[1] ? values[0] : 0;
	nezha_debug("the last call's %u of %u blocks took the aggregator %llu us, the others the links %llu us; room %.0f of "
	            "%u chunks, round trip %llu us, at least %llu us", ina->noted.shared, ina->noted.grid.blocks,
	            (unsigned long long)(values[2] / NEZHA_USEC), (unsigned long long)(values[3] / NEZHA_USEC),
	            ina->window.room, ina->window.slots, (unsigned long long)(ina->window.smooth / NEZHA_USEC),
	            (unsigned long long)(ina->window.least / NEZHA_USEC));
	if (ina->noted.valid)
		nezha_ina_share_learn(&ina->share, &ina->noted.grid, ina->noted.shared, values[2], values[3]);
}

const struct nezha_collective_ops nezha_ina_rail = {
	.name = "ina", .post = post, .progress = progress, .cancel = cancel, .finish = finish,
	.share = share, .notes = notes, .occupies = occupies, .tell = tell, .learn = learn,
};

/* ---- making and ending ---- */

static int rail_of(const struct nezha_engine *engine)
{
	uint32_t address = engine->config.aggregator.address.s_addr;

	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		const struct nezha_nic *nic = &engine->rails[r].nic;
		uint32_t mask = nic->prefix ? htonl(UINT32_MAX << (32 - nic->prefix)) : 0;

		if (((nic->address.s_addr ^ address) & mask) == 0)
			return (int)r;
	}
	return -1;
}

/* The rails in common that are not the aggregator's, by subnet, and so the same number on all ranks. */
static int other_rails(const struct nezha_team *team)
{
	uint32_t address = team->engine->config.aggregator.address.s_addr;
	int count = 0;

	for (int c = 0; c < team->common; c++)
		count += nezha_subnet_of(address, team->subnet[c].prefix).address != team->subnet[c].address;
	return count;
}

int nezha_ina_attach(struct nezha_team *team)
{
	struct nezha_engine *engine = team->engine;
	struct nezha_ina *ina = LIST_FIRST(&engine->ina_spare);
	char *scratch;

	if (ina)
		LIST_REMOVE(ina, entry);
	else
		ina = calloc(1, sizeof *ina);
	scratch = malloc(NEZHA_INA_MESSAGE);
	if (!ina || !scratch) {
		if (ina)
			LIST_INSERT_HEAD(&engine->ina_spare, ina, entry);
		free(scratch);
		return NEZHA_ERR_NOMEM;
	}
	memset(ina, 0, sizeof *ina);
	ina->scratch = scratch;
	ina->engine = engine;
	ina->team = team;
	ina->rail = rail_of(engine);
	ina->control = ina->direct.end.fd = ina->group.end.fd = -1;
	ina->direct.end.kind = ina->group.end.kind = NEZHA_END_INA;
	nezha_ina_share_init(&ina->share, team->ranks, other_rails(team));
	LIST_INSERT_HEAD(&engine->inas, ina, entry);
	nezha_team_attach(team, &nezha_ina_rail, ina);
	return NEZHA_OK;
}

void nezha_ina_detach(struct nezha_team *team)
{
	struct nezha_ina *ina = team->collective_rail;

	nezha_ina_leave(ina);
	LIST_REMOVE(ina, entry);
	free(ina->left);
	free(ina->stage);
	free(ina->scratch);
	ina->left = NULL;
	ina->stage = ina->scratch = NULL;
	ina->team = NULL;
	ina->open = 0;
	LIST_INSERT_HEAD(&ina->engine->ina_spare, ina, entry);
	nezha_team_attach(team, NULL, NULL);
}

void nezha_ina_free_spare(struct nezha_engine *engine)
{
	struct nezha_ina *ina;

	while ((ina = LIST_FIRST(&engine->ina_spare))) {
		LIST_REMOVE(ina, entry);
		free(ina);
	}
}

void nezha_ina_abandon(struct nezha_engine *engine)
{
	struct nezha_ina *ina;

	LIST_FOREACH(ina, &engine->inas, entry) {
		if (ina->control >= 0)
			close(ina->control);
		nezha_ina_close_sockets(ina);
	}
}

void nezha_ina_stats(const struct nezha_engine *engine, struct nezha_rail_stats *out)
{
	const struct nezha_ina_address *where = &engine->config.aggregator;
	char address[INET_ADDRSTRLEN];

	*out = engine->stats[NEZHA_RAILS_MAX];
	strcpy(out->device, "ina");
	snprintf(out->subnet, sizeof out->subnet, "%s:%u", inet_ntop(AF_INET, &where->address, address, sizeof address),
	         where->port);
}

/* All ranks had a session when they were asked.  One that has lost it since takes part none the less. */
void nezha_ina_open(struct nezha_ina *ina)
{
	ina->agreed = ina->state == NEZHA_INA_JOINED ? ina->welcome.token : LOST_TOKEN;
}
