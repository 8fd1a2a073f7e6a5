/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/call.h"

#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/rail.h"
#include "rails/wire.h"
#include "tuning/status.h"

static int owner(const struct nezha_call *call, uint32_t b)
{
	return (int)(b % (uint32_t)call->team->ranks);
}

/* How far right of `from` this rank is. */
static int distance(const struct nezha_call *call, int from)
{
	int n = call->team->ranks;
	return ((call->team->rank - from) % n + n) % n;
}

/* Whether b's partial begins its way here. */
static bool starts_here(const struct nezha_call *call, uint32_t b)
{
	return distance(call, owner(call, b)) == 1;
}

static bool right_is(const struct nezha_call *call, uint32_t rank)
{
	return (uint32_t)((call->team->rank + 1) % call->team->ranks) == rank;
}

static int make_room(struct nezha_call *call, uint32_t blocks)
{
	uint8_t *state = malloc(blocks);
	uint32_t *folded = malloc(blocks * sizeof *folded);
	struct nezha_tx *tx = malloc(2 * (size_t)blocks * sizeof *tx);

	if (!state || !folded || !tx) {
		free(state);
		free(folded);
		free(tx);
		return NEZHA_ERR_NOMEM;
	}
	nezha_call_free(call);
	call->state = state;
	call->folded = folded;
	call->tx = tx;
	call->room = blocks;
	return NEZHA_OK;
}

void nezha_call_free(struct nezha_call *call)
{
	free(call->state);
	free(call->folded);
	free(call->tx);
	call->state = NULL;
	call->folded = NULL;
	call->tx = NULL;
	call->room = 0;
}

int nezha_call_begin(struct nezha_call *call, const struct nezha_grid *grid, enum nezha_type type, enum nezha_op op,
                     const void *sendbuf, void *recvbuf, const uint64_t *note)
{
	uint32_t blocks = grid->blocks + !!note;

	if (blocks > call->room && make_room(call, blocks) != NEZHA_OK)
		return NEZHA_ERR_NOMEM;
	call->grid = *grid;
	call->type = type;
	call->reduction = op;
	call->kernel = nezha_reduce_kernel(type, op);
	call->element = (uint32_t)nezha_type_size(type);
	call->sendbuf = sendbuf;
	call->recvbuf = recvbuf;
	call->noted = note != NULL;
	if (note)
		memcpy(call->note_own, note, sizeof call->note_own);
	memset(call->waiting, 0, sizeof call->waiting);
	memset(call->ended, 0, sizeof call->ended);
	call->waiting[NEZHA_SIDE_LINKS] = grid->blocks;
	call->finals = call->leading = 0;
	call->done_sent = call->gradual = false;
	call->ready = call->offered = grid->blocks;
	memset(call->state, 0, blocks);
	memset(call->folded, 0, blocks * sizeof *call->folded);
	for (uint32_t i = 0; i < 2 * blocks; i++)
		call->tx[i] = (struct nezha_tx){
			.team = call->team,
			.block = i / 2,
			.length = nezha_call_length(call, i / 2),
			.kind = i % 2 ? NEZHA_WIRE_FINAL : NEZHA_WIRE_PARTIAL,
		};
	return NEZHA_OK;
}

uint64_t nezha_call_final_bytes(struct nezha_call *call)
{
	while (call->leading < call->grid.blocks && call->state[call->leading] & NEZHA_BLOCK_FINAL)
		call->leading++;
	return call->leading == call->grid.blocks ? call->grid.bytes : nezha_grid_offset(&call->grid, call->leading);
}

void nezha_call_share(struct nezha_call *call, int i, uint32_t first, uint32_t count)
{
	for (uint32_t b = first; b < first + count; b++)
		call->state[b] |= NEZHA_BLOCK_ON_RAIL;
	call->waiting[NEZHA_SIDE_RAIL + i] += count;
	call->waiting[NEZHA_SIDE_LINKS] -= count;
}

int nezha_call_side(const struct nezha_call *call, uint32_t b)
{
	const struct nezha_team *team = call->team;

	if (!(call->state[b] & NEZHA_BLOCK_ON_RAIL))
		return NEZHA_SIDE_LINKS;
	for (int i = 0; i < team->collectives; i++)
		if (b - team->collective[i].first < team->collective[i].count)
			return NEZHA_SIDE_RAIL + i;
	return NEZHA_SIDE_LINKS;
}

uint32_t nezha_call_length(const struct nezha_call *call, uint32_t b)
{
	return nezha_call_is_note(call, b) ? sizeof call->note_own : nezha_grid_length(&call->grid, b);
}

uint32_t nezha_call_element(const struct nezha_call *call, uint32_t b)
{
	return nezha_call_is_note(call, b) ? sizeof call->note_own[0] : call->element;
}

char *nezha_call_place(const struct nezha_call *call, uint32_t b)
{
	return nezha_call_is_note(call, b) ? (char *)call->note : call->recvbuf + nezha_grid_offset(&call->grid, b);
}

/* Where this rank's contribution to it lies. */
static const char *contribution(const struct nezha_call *call, uint32_t b)
{
	return nezha_call_is_note(call, b) ? (const char *)call->note_own
	       : call->sendbuf + nezha_grid_offset(&call->grid, b);
}

static void send_block(struct nezha_call *call, uint32_t b, enum nezha_wire_kind kind, uint32_t origin)
{
	struct nezha_tx *tx = &call->tx[2 * b + (kind == NEZHA_WIRE_FINAL)];

	if (tx->where != NEZHA_TX_IDLE)
		return;
	tx->origin = origin;
	nezha_link_send(call->team->right, tx);
}

/* Those from `first` on that are ready. */
static void start_blocks(struct nezha_call *call, uint32_t first)
{
	for (uint32_t b = first; b < call->ready; b++)
		if (starts_here(call, b) && !(call->state[b] & NEZHA_BLOCK_ON_RAIL))
			send_block(call, b, NEZHA_WIRE_PARTIAL, 0);
}

void nezha_call_start(struct nezha_call *call)
{
	/* The note goes first: it must not be what the end of a call waits for. */
	if (call->noted && starts_here(call, call->grid.blocks))
		send_block(call, call->grid.blocks, NEZHA_WIRE_PARTIAL, 0);
	start_blocks(call, 0);
}

static uint32_t whole_blocks(const struct nezha_call *call, uint64_t bytes)
{
	return bytes >= call->grid.bytes ? call->grid.blocks : (uint32_t)(bytes / call->grid.block);
}

void nezha_call_be_gradual(struct nezha_call *call, uint64_t bytes)
{
	call->gradual = true;
	call->ready = call->offered = whole_blocks(call, bytes);
}

bool nezha_call_make_ready(struct nezha_call *call, uint64_t bytes)
{
	uint32_t before = call->ready, now = whole_blocks(call, bytes);

	if (now <= before)
		return false;
	call->ready = now;
	start_blocks(call, before);
	return true;
}

uint64_t nezha_call_bytes(const struct nezha_call *call)
{
	uint64_t bytes = 0;

	for (uint32_t b = 0; b < nezha_call_blocks(call); b++) {
		if (call->state[b] & NEZHA_BLOCK_ON_RAIL)
			continue;
		if (owner(call, b) != call->team->rank)
			bytes += nezha_call_length(call, b);
		if (!right_is(call, (uint32_t)owner(call, b)))
			bytes += nezha_call_length(call, b);
	}
	return bytes;
}

void nezha_call_fold(struct nezha_call *call, uint32_t b, uint32_t from, const void *partial, uint32_t n)
{
	nezha_reduce_fn *kernel = nezha_call_is_note(call, b) ? nezha_reduce_kernel(NEZHA_UINT64, NEZHA_MIN) : call->kernel;

	kernel(nezha_call_place(call, b) + from, partial, contribution(call, b) + from, n / nezha_call_element(call, b));
}

static void became_final(struct nezha_call *call, uint32_t b)
{
	int side = nezha_call_side(call, b);

	call->state[b] |= NEZHA_BLOCK_FINAL;
	call->state[b] &= (uint8_t)~NEZHA_BLOCK_ON_RAIL;
	call->finals++;
	if (!nezha_call_is_note(call, b) && !--call->waiting[side])
		call->ended[side] = nezha_now();
}

void nezha_call_folded(struct nezha_call *call, uint32_t b)
{
	call->state[b] |= NEZHA_BLOCK_FOLDED;
	if (owner(call, b) != call->team->rank) {
		send_block(call, b, NEZHA_WIRE_PARTIAL, 0);
		return;
	}
	became_final(call, b);
	send_block(call, b, NEZHA_WIRE_FINAL, (uint32_t)call->team->rank);
}

void nezha_call_fold_rest(struct nezha_call *call, uint32_t b, const char *partial)
{
	uint32_t *folded = &call->folded[b], length = nezha_call_length(call, b);

	nezha_call_fold(call, b, *folded, partial + *folded, length - *folded);
	*folded = length;
	nezha_call_folded(call, b);
}

void nezha_call_landed(struct nezha_call *call, uint32_t b, uint32_t origin)
{
	bool wanted = call->state[b] & NEZHA_BLOCK_WANTED;

	call->state[b] &= (uint8_t)~NEZHA_BLOCK_LANDING;
	became_final(call, b);
	if (origin == NEZHA_NO_ORIGIN ? wanted : !right_is(call, origin))
		send_block(call, b, NEZHA_WIRE_FINAL, origin);
}

void nezha_call_final(struct nezha_call *call, uint32_t b)
{
	if (!(call->state[b] & NEZHA_BLOCK_ON_RAIL))
		return;
	became_final(call, b);
	if (call->state[b] & NEZHA_BLOCK_WANTED)
		send_block(call, b, NEZHA_WIRE_FINAL, NEZHA_NO_ORIGIN);
}

static void want(struct nezha_call *call, uint32_t b)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_WANT, call->team->id, call->op);

	record.block = b;
	nezha_inlink_reply(call->team->left, &record);
}

/* Where a rank still has the final, those to its right get it from there, one asking the other; where none has,
 * the partial goes around as if the block had been the links' from the start.  A rank that has the final does not pass
 * the partial on, so never both happen. */
void nezha_call_return(struct nezha_call *call, uint32_t b)
{
	if (!(call->state[b] & NEZHA_BLOCK_ON_RAIL))
		return;
	call->waiting[nezha_call_side(call, b)]--;
	call->state[b] &= (uint8_t)~NEZHA_BLOCK_ON_RAIL;
	call->state[b] |= NEZHA_BLOCK_RETURNED;
	call->rails = call->spare_rails;     /* what was left to the collective rail lies idle now */
	call->waiting[NEZHA_SIDE_LINKS]++;
	want(call, b);
	if (starts_here(call, b))
		send_block(call, b, NEZHA_WIRE_PARTIAL, 0);
}

void nezha_call_wanted(struct nezha_call *call, uint32_t b)
{
	if (b >= call->grid.blocks)
		return;
	call->state[b] |= NEZHA_BLOCK_WANTED;
	if (call->state[b] & NEZHA_BLOCK_ON_RAIL)
		nezha_collective_cancel(call->team, b);
	else if (call->state[b] & NEZHA_BLOCK_FINAL)
		send_block(call, b, NEZHA_WIRE_FINAL, NEZHA_NO_ORIGIN);
}

void nezha_call_want_again(struct nezha_call *call)
{
	for (uint32_t b = 0; b < call->grid.blocks; b++)
		if ((call->state[b] & (NEZHA_BLOCK_RETURNED | NEZHA_BLOCK_FINAL)) == NEZHA_BLOCK_RETURNED)
			want(call, b);
}

bool nezha_call_tx_useful(const struct nezha_call *call, const struct nezha_tx *tx)
{
	/* The final of a block has come around: its partial was consumed long ago. */
	return call->active &&
	       !(tx->kind == NEZHA_WIRE_PARTIAL &&
	         call->state[tx->block] & (NEZHA_BLOCK_FINAL | NEZHA_BLOCK_LANDING));
}

const char *nezha_call_tx_payload(const struct nezha_call *call, const struct nezha_tx *tx)
{
	bool own = tx->kind == NEZHA_WIRE_PARTIAL && starts_here(call, tx->block);

	return own ? contribution(call, tx->block) : nezha_call_place(call, tx->block);
}

int nezha_call_hops_left(const struct nezha_call *call, const struct nezha_tx *tx)
{
	int n = call->team->ranks, from = distance(call, owner(call, tx->block));

	if (tx->kind == NEZHA_WIRE_PARTIAL)   /* from = 1 at the start, N-1 before the owner */
		return 2 * (n - 1) - from;
	return n - 2 - from;
}
