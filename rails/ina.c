/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define SILENCE (90 * NEZHA_MSEC)        /* without a word although asked every 10 ms: it is dead */
#define AGAIN_MOST 32                    /* chunks sent again at a time */

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
		nezha_ina_counters(ina)->failures++;
		nezha_info("the session with aggregator %u is lost: %s", ina->index + 1, cause);
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

/* Whether the block is one for the links, for its values; notes it. */
static bool escapes(struct nezha_ina *ina, uint32_t b)
{
	bool yes = ina->fixed.on && nezha_ina_fixed_escapes(ina, b);

	ina->fixed.escaped = ina->fixed.escaped || yes;
	return yes;
}

void nezha_ina_result(struct nezha_ina *ina, uint32_t seq, const char *data)
{
	struct nezha_call *call = &ina->team->call;
	struct nezha_ina_place place = nezha_ina_place(ina, seq);
	uint32_t b = place.block;
	char *to;

	if (place.exponents) {
		nezha_ina_fixed_learn(ina, &place, data);
		return;
	}
	if (!ina->left[b - ina->first])
		return;                          /* an escaped one that a neighbour has wanted */
	to = ina->staged ? stage_of(ina, b) : nezha_call_place(call, b);
	if (ina->fixed.on)
		nezha_ina_fixed_convert(ina, &place, data, to + place.offset);
	else
		memcpy(to + place.offset, data, place.length);
	if (--ina->left[b - ina->first])
		return;
	if (escapes(ina, b)) {
		settle(ina, b, false);
		return;
	}
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

/* `ask`: each of them shall be answered. */
static void send_again(struct nezha_ina *ina, const uint32_t *seqs, uint32_t count, bool ask, uint64_t now)
{
	int rc = NEZHA_OK;

	for (uint32_t i = 0; i < count && rc == NEZHA_OK; i++)
		rc = nezha_ina_send_again(ina, seqs[i], ask || nezha_ina_window_was_again(&ina->window, seqs[i]), now);
	if (rc < 0)
		nezha_ina_fail(ina, "its port is closed");
}

/* What does not fit now is found lost again, or asked for in its turn. */
static void repeat(struct nezha_ina *ina, uint64_t now)
{
	uint32_t seqs[AGAIN_MOST];

	send_again(ina, seqs, nezha_ina_window_lost(&ina->window, seqs, AGAIN_MOST, now), false, now);
	if (ina->open && !ina->direct.full)
		send_again(ina, seqs, nezha_ina_window_asks(&ina->window, seqs, AGAIN_MOST, now), true, now);
}

static void move(struct nezha_ina *ina)
{
	uint64_t now = nezha_now();

	ina->silent += nezha_looked(ina->looked, now);
	ina->looked = now;
	if (nezha_ina_receive(ina, now) < 0)
		nezha_ina_fail(ina, "its port is closed");
	if (ina->open && !ina->direct.full)
		repeat(ina, now);
	if (ina->open && nezha_ina_send(ina, now) < 0)
		nezha_ina_fail(ina, "nothing can be sent to it");
	if (ina->open)
		nezha_ina_hush(ina, nezha_ina_window_steady(&ina->window, ina->hushed != NULL));
	if (ina->open && ina->silent > SILENCE)
		nezha_ina_fail(ina, "it is silent");
}

static int post(void *rail, struct nezha_call *call, uint32_t first, uint32_t count)
{
	struct nezha_ina *ina = rail;
	uint64_t now = nezha_now();
	uint32_t chunks;

	ina->open = 0;
	ina->failed = false;
	if (ina->state != NEZHA_INA_JOINED)
		return NEZHA_ERR_UNREACHABLE;
	if (ina->used != ina->welcome.token) {
		nezha_ina_window_open(&ina->window, ina->welcome.window);
		ina->used = ina->welcome.token;
	}
	ina->first = first;
	ina->count = count;
	ina->per_block = (call->grid.block + ina->welcome.chunk - 1) / ina->welcome.chunk;
	ina->base = ina->window.next;
	if (!make_room(ina, count) || !make_stage(ina, call) || nezha_ina_fixed_begin(ina) != NEZHA_OK) {
		nezha_ina_fail(ina, "no memory for a call");
		return NEZHA_ERR_NOMEM;
	}
	chunks = ina->fixed.chunks;
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

/* A neighbour has got its blocks back: so the session is lost there, and will not finish anything.  But for an escaped block: the
 * neighbour has the answers to all of its chunks, and so has nothing to come from here. */
static void cancel(void *rail, struct nezha_call *call, uint32_t b)
{
	struct nezha_ina *ina = rail;

	(void)call;
	if (!ina->open || b - ina->first >= ina->count || !ina->left[b - ina->first])
		return;
	if (escapes(ina, b))
		settle(ina, b, false);
	else
		nezha_ina_fail(ina, "a neighbour has lost it");
}

static bool finish(void *rail, struct nezha_call *call)
{
	struct nezha_ina *ina = rail;

	(void)call;
	/* A call that ends with an error leaves the session in the middle of its chunks. */
	if (ina->open) {
		ina->open = 0;
		ina->failed = true;
		nezha_ina_session_end(ina);
		nezha_service_kick(ina->engine->service);
	}
	if (!ina->failed) {
		ina->barren = ina->pause = 0;
		nezha_debug("aggregator %u: room %.0f of %u chunks, round trip %llu us, at least %llu us", ina->index + 1,
		            ina->window.room, ina->window.slots, (unsigned long long)(ina->window.smooth / NEZHA_USEC),
		            (unsigned long long)(ina->window.least / NEZHA_USEC));
	}
	return !ina->failed && nezha_ina_fixed_tells(&ina->fixed);
}

/* Also between calls: what is not noticed now has no other event. */
void nezha_ina_ready(struct nezha_ina_socket *socket, uint32_t events)
{
	if (socket->end.fd < 0)
		return;
	if (events & EPOLLOUT && socket->full)
		nezha_ina_unblock(socket);
	if (events & ~(uint32_t)EPOLLOUT)
		socket->unread = true;
	if (socket->ina->open)
		move(socket->ina);
}

static uint64_t token(void *rail)
{
	const struct nezha_ina *ina = rail;

	return ina->state == NEZHA_INA_JOINED ? ina->welcome.token : 0;
}

const struct nezha_collective_ops nezha_ina_rail = {
	.name = "ina", .token = token, .post = post, .progress = progress, .cancel = cancel, .finish = finish,
};

/* ---- making and ending ---- */

const struct nezha_ina_address *nezha_ina_where(const struct nezha_ina *ina)
{
	return &ina->engine->config.aggregators[ina->index];
}

static int rail_of(const struct nezha_ina *ina)
{
	const struct nezha_engine *engine = ina->engine;
	uint32_t address = nezha_ina_where(ina)->address.s_addr;

	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		const struct nezha_nic *nic = &engine->rails[r].nic;
		uint32_t mask = nic->prefix ? htonl(UINT32_MAX << (32 - nic->prefix)) : 0;

		if (((nic->address.s_addr ^ address) & mask) == 0)
			return (int)r;
	}
	return -1;
}

/* The rails in common that are the aggregator's, by subnet, and so the same ones on all ranks. */
static uint32_t common_rails(const struct nezha_ina *ina)
{
	const struct nezha_team *team = ina->team;
	uint32_t address = nezha_ina_where(ina)->address.s_addr, rails = 0;

	for (int c = 0; c < team->common; c++)
		if (nezha_subnet_of(address, team->subnet[c].prefix).address == team->subnet[c].address)
			rails |= 1u << c;
	return rails;
}

static void let_go(struct nezha_ina *ina)
{
	free(ina->left);
	free(ina->stage);
	free(ina->scratch);
	nezha_ina_fixed_free(&ina->fixed);
	ina->left = NULL;
	ina->stage = ina->scratch = NULL;
	ina->team = NULL;
	ina->open = 0;
	LIST_INSERT_HEAD(&ina->engine->ina_spare, ina, entry);
}

static struct nezha_ina *make(struct nezha_team *team, uint32_t index)
{
	struct nezha_engine *engine = team->engine;
	struct nezha_ina *ina = LIST_FIRST(&engine->ina_spare);

	if (ina)
		LIST_REMOVE(ina, entry);
	else
		ina = malloc(sizeof *ina);
	if (!ina)
		return NULL;
	memset(ina, 0, sizeof *ina);
	ina->engine = engine;
	ina->team = team;
	ina->index = index;
	ina->rail = rail_of(ina);
	ina->control = ina->direct.end.fd = ina->group.end.fd = -1;
	ina->direct.end.kind = ina->group.end.kind = NEZHA_END_INA;
	ina->scratch = malloc(NEZHA_INA_MESSAGE);
	if (ina->scratch)
		return ina;
	let_go(ina);
	return NULL;
}

bool nezha_ina_has_room(const struct nezha_engine *engine)
{
	const struct nezha_ina *ina;
	uint32_t count = engine->config.aggregator_count;

	LIST_FOREACH(ina, &engine->inas, entry)
		count++;
	return count <= NEZHA_INA_SESSIONS_MOST;
}

void nezha_ina_tell_full(struct nezha_team *team)
{
	if (team->rank == 0 && !team->engine->aggregator_full)
		nezha_warn("a process has %d sessions with aggregators at most: later communicators go without",
		           NEZHA_INA_SESSIONS_MOST);
	team->engine->aggregator_full = true;
}

int nezha_ina_attach(struct nezha_team *team)
{
	for (uint32_t i = 0; i < team->engine->config.aggregator_count; i++) {
		struct nezha_ina *ina = make(team, i);

		if (!ina)
			return NEZHA_ERR_NOMEM;
		if (nezha_team_attach(team, &(struct nezha_collective){
					.ops = &nezha_ina_rail, .rail = ina, .common = common_rails(ina),
					.ours = ina->rail < 0 ? 0 : 1u << ina->rail }) != NEZHA_OK) {
			let_go(ina);
			return NEZHA_ERR_NOMEM;
		}
		LIST_INSERT_HEAD(&team->engine->inas, ina, entry);
	}
	return NEZHA_OK;
}

bool nezha_ina_attempted(const struct nezha_team *team)
{
	for (int i = 0; i < team->collectives; i++)
		if (team->collective[i].ops == &nezha_ina_rail &&
		    !((const struct nezha_ina *)team->collective[i].rail)->attempts)
			return false;
	return true;
}

void nezha_ina_detach(struct nezha_team *team)
{
	while (team->collectives && team->collective[team->collectives - 1].ops == &nezha_ina_rail) {
		struct nezha_ina *ina = team->collective[team->collectives - 1].rail;

		nezha_ina_leave(ina);
		LIST_REMOVE(ina, entry);
		let_go(ina);
		nezha_team_detach(team);
	}
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

/* ---- counters ---- */

struct nezha_rail_stats *nezha_ina_counters(const struct nezha_ina *ina)
{
	return &ina->engine->stats[NEZHA_RAILS_MAX + ina->index];
}

void nezha_ina_count_sent(struct nezha_ina *ina, uint64_t bytes)
{
	nezha_ina_counters(ina)->bytes_sent += bytes;
	ina->team->last_bytes[NEZHA_RAILS_MAX + ina->index] += bytes;
}

void nezha_ina_stats(const struct nezha_engine *engine, uint32_t index, struct nezha_rail_stats *out)
{
	const struct nezha_ina_address *where = &engine->config.aggregators[index];
	char address[INET_ADDRSTRLEN];

	*out = engine->stats[NEZHA_RAILS_MAX + index];
	if (engine->config.aggregator_count > 1)
		snprintf(out->device, sizeof out->device, "ina%u", index + 1);
	else
		strcpy(out->device, "ina");
	snprintf(out->subnet, sizeof out->subnet, "%s:%u", inet_ntop(AF_INET, &where->address, address, sizeof address),
	         where->port);
}
