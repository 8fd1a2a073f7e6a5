/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/nodecall.h"

#include <stdalign.h>
#include <string.h>

#include "rails/past.h"
#include "tuning/log.h"

#define CACHES (32u << 20)      /* bytes: vectors of a node's ranks that take so much together do not stay in its caches (a processor's last one
                                * has 16 to 32 MiB for those that share it; virtual machines tell of far more) */
#define PART (8u << 10)         /* bytes that are folded of all contributions at once: whole elements */

/* ---- numbers ---- */

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_acquire);
}

static void set(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_release);
}

/* The number of the call's cell g over all calls, and its slot. */
static uint64_t number(const struct nezha_nodecall *call, uint32_t g)
{
	return call->node->in_base + g;
}

static uint64_t slot_of(uint64_t number)
{
	return number % NEZHA_NODE_IN;
}

/* The cell of the own piece that is folded next. */
static uint32_t next_own(const struct nezha_nodecall *call)
{
	return call->folded * (uint32_t)call->pieces->count + (uint32_t)call->node->local;
}

static struct nezha_range own_cell(const struct nezha_nodecall *call, uint32_t j)
{
	return nezha_pieces_cell(call->pieces, call->node->local, j);
}

/* ---- beginning ---- */

void nezha_nodecall_begin(struct nezha_nodecall *call, struct nezha_node *node, const struct nezha_pieces *pieces,
                          nezha_reduce_fn *kernel, uint32_t element, const void *sendbuf, void *recvbuf,
                          const uint64_t *note)
{
	*call = (struct nezha_nodecall){
		.node = node,
		.pieces = pieces,
		.kernel = kernel,
		.element = element,
		.sendbuf = sendbuf,
		.recvbuf = recvbuf,
		.noted = note,
		.past = pieces->bytes >= CACHES / (uint64_t)node->ranks,
		.carrier = node->local < pieces->count,
		.total = (uint32_t)pieces->count * pieces->cells,
		.ahead = UINT64_MAX,
	};
	call->missing = call->total - (call->carrier ? pieces->cells : 0);
	memset(node->collected, 0, (size_t)node->carriers * sizeof *node->collected);
	node->rank[node->local].bytes = pieces->bytes;
	node->rank[node->local].element = element;
	if (note)
		memcpy(node->rank[node->local].note, note, sizeof node->rank->note);
}

/* From a vector into shared memory, or back.  Of long ones nothing is found in the caches by whoever needs it next, but what lies there
 * would be driven out, and what another processor has read from the same place last would be fetched from it only to be overwritten. */
static void copy(const struct nezha_nodecall *call, void *to, const void *from, uint64_t bytes)
{
	if (call->past)
		nezha_past_copy(to, from, bytes);
	else
		memcpy(to, from, bytes);
}

/* ---- contributing ---- */

static bool is_slot_free(const struct nezha_nodecall *call, uint64_t number)
{
	return number < NEZHA_NODE_IN || get(&call->node->folded[slot_of(number)].value) == number - NEZHA_NODE_IN + 1;
}

/* The own piece is folded from where it lies. */
static bool contribute(struct nezha_nodecall *call)
{
	struct nezha_node *node = call->node;
	uint32_t g = call->contributed;
	int carrier = (int)(g % (uint32_t)call->pieces->count);
	uint64_t n = number(call, g);

	if (g == call->total || !is_slot_free(call, n))
		return false;
	if (carrier != node->local) {
		struct nezha_range cell = nezha_pieces_cell(call->pieces, carrier, g / (uint32_t)call->pieces->count);

		copy(call, nezha_node_in(node, slot_of(n), node->local), call->sendbuf + cell.begin, cell.length);
	}
	call->contributed++;
	set(&node->rank[node->local].in, n + 1);
	if (carrier != node->local)
		nezha_node_wake(node, carrier, NEZHA_NODE_WANT_INPUT);
	return true;
}

/* ---- folding ---- */

static bool has_all_input(struct nezha_nodecall *call, uint64_t n)
{
	while (call->seen < call->node->ranks && get(&call->node->rank[call->seen].in) > n)
		call->seen++;
	return call->seen == call->node->ranks;
}

/* Rank r's contribution to a cell of the own piece. */
static const char *input(const struct nezha_nodecall *call, uint64_t n, int r, struct nezha_range cell)
{
	return r == call->node->local ? call->sendbuf + cell.begin : nezha_node_in(call->node, slot_of(n), r);
}

/* In the order of the ranks, a part at a time, whose sums in between stay in the nearest cache: nothing is written into shared
 * memory.  Nor into the receive buffer, but by the last fold: with MPI_IN_PLACE it holds the own contribution. */
static void fold_cell(const struct nezha_nodecall *call, uint64_t n, struct nezha_range cell)
{
	alignas(64) char sums[PART];
	int ranks = call->node->ranks;
	uint64_t length;

	for (uint64_t at = 0; at < cell.length; at += length) {
		const char *sum = input(call, n, 0, cell) + at;

		length = cell.length - at < PART ? cell.length - at : PART;
		for (int r = 1; r < ranks; r++) {
			char *to = r == ranks - 1 ? call->recvbuf + cell.begin + at : sums;

			call->kernel(to, sum, input(call, n, r, cell) + at, length / call->element);
			sum = to;
		}
	}
}

/* Carrier 0 looks, when all have contributed to the call's first cell, which every call has. */
static bool is_same_call(const struct nezha_nodecall *call)
{
	const struct nezha_node_rank *own = &call->node->rank[0];

	for (int r = 1; r < call->node->ranks; r++) {
		const struct nezha_node_rank *rank = &call->node->rank[r];

		if (rank->bytes == own->bytes && rank->element == own->element)
			continue;
		nezha_error("ranks of a node reduce %llu bytes in elements of %u, and %llu in elements of %u: "
		            "do all ranks give the same count and type?", (unsigned long long)own->bytes, own->element,
		            (unsigned long long)rank->bytes, rank->element);
		return false;
	}
	return true;
}

static bool fold(struct nezha_nodecall *call)
{
	uint32_t g = next_own(call);
	uint64_t n = number(call, g);

	if (!call->carrier || call->folded == call->pieces->cells ||
	    (uint64_t)call->folded * call->pieces->cell >= call->ahead || call->contributed <= g || !has_all_input(call, n) ||
	    atomic_load(call->node->failed))
		return false;
	if (!g && !is_same_call(call)) {
		nezha_node_fail(call->node);
		return false;
	}
	fold_cell(call, n, own_cell(call, call->folded));
	call->folded++;
	call->seen = 0;
	set(&call->node->folded[slot_of(n)].value, n + 1);
	nezha_node_wake_all(call->node, NEZHA_NODE_WANT_SLOT);
	return true;
}

/* ---- results ---- */

/* Empty cells are folded and put like others, in their turn. */
static bool has_result(const struct nezha_nodecall *call)
{
	struct nezha_range piece, cell;

	if (!call->carrier || call->put == call->folded)
		return false;
	piece = nezha_pieces_piece(call->pieces, call->node->local);
	cell = own_cell(call, call->put);
	return call->final >= cell.begin - piece.begin + cell.length;
}

/* Whether all have collected what lay in the slot. */
static bool has_room(const struct nezha_node *node, uint64_t q)
{
	for (int r = 0; r < node->ranks; r++)
		if (r != node->local && get(nezha_node_taken(node, r, node->local)) + NEZHA_NODE_OUT <= q)
			return false;
	return true;
}

static bool put(struct nezha_nodecall *call)
{
	struct nezha_node *node = call->node;
	struct nezha_range cell;
	uint64_t q;

	if (!has_result(call))
		return false;
	q = node->out_base[node->local] + call->put;
	if (!has_room(node, q))
		return false;
	cell = own_cell(call, call->put);
	copy(call, nezha_node_out(node, node->local, q % NEZHA_NODE_OUT), call->recvbuf + cell.begin, cell.length);
	call->put++;
	set(&node->out[node->local].value, q + 1);
	nezha_node_wake_all(node, NEZHA_NODE_WANT_RESULT);
	return true;
}

static bool collect_from(struct nezha_nodecall *call, int c)
{
	struct nezha_node *node = call->node;
	uint32_t j = node->collected[c];
	uint64_t q = node->out_base[c] + j;
	struct nezha_range cell;

	if (j == call->pieces->cells || get(&node->out[c].value) <= q)
		return false;
	cell = nezha_pieces_cell(call->pieces, c, j);
	copy(call, call->recvbuf + cell.begin, nezha_node_out(node, c, q % NEZHA_NODE_OUT), cell.length);
	node->collected[c]++;
	call->missing--;
	set(nezha_node_taken(node, node->local, c), q + 1);
	nezha_node_wake(node, c, NEZHA_NODE_WANT_ROOM);
	return true;
}

static bool collect(struct nezha_nodecall *call)
{
	for (int i = 0; call->missing && i < call->pieces->count; i++) {
		int c = (call->next + i) % call->pieces->count;

		if (c == call->node->local || !collect_from(call, c))
			continue;
		call->next = c + 1;
		return true;
	}
	return false;
}

/* ---- the whole ---- */

/* What others wait for goes first. */
bool nezha_nodecall_move(struct nezha_nodecall *call)
{
	return put(call) || fold(call) || contribute(call) || collect(call);
}

uint64_t nezha_nodecall_folded(const struct nezha_nodecall *call)
{
	struct nezha_range piece = nezha_pieces_piece(call->pieces, call->node->local);
	uint64_t bytes = (uint64_t)call->folded * call->pieces->cell;

	return bytes < piece.length ? bytes : piece.length;
}

void nezha_nodecall_final(struct nezha_nodecall *call, uint64_t bytes)
{
	call->final = bytes;
}

void nezha_nodecall_hold(struct nezha_nodecall *call, uint64_t bytes)
{
	call->ahead = bytes;
}

void nezha_nodecall_note(const struct nezha_nodecall *call, uint64_t note[NEZHA_NOTE_VALUES])
{
	for (int r = 0; r < call->node->ranks; r++)
		for (int i = 0; i < NEZHA_NOTE_VALUES; i++)
			if (!r || call->node->rank[r].note[i] < note[i])
				note[i] = call->node->rank[r].note[i];
}

void nezha_nodecall_tell_note(struct nezha_nodecall *call, const uint64_t note[NEZHA_NOTE_VALUES])
{
	memcpy(call->node->note, note, NEZHA_NOTE_VALUES * sizeof *note);
	set(call->node->told, call->node->notes + 1);
	nezha_node_wake_all(call->node, NEZHA_NODE_WANT_RESULT);
}

void nezha_nodecall_hear_note(const struct nezha_nodecall *call, uint64_t note[NEZHA_NOTE_VALUES])
{
	memcpy(note, call->node->note, NEZHA_NOTE_VALUES * sizeof *note);
}

static bool misses_note(const struct nezha_nodecall *call)
{
	return call->noted && get(call->node->told) == call->node->notes;
}

static uint32_t wants(const struct nezha_nodecall *call)
{
	return (call->contributed < call->total ? NEZHA_NODE_WANT_SLOT : 0) |
	       (call->carrier && call->folded < call->pieces->cells ? NEZHA_NODE_WANT_INPUT : 0) |
	       (call->missing || misses_note(call) ? NEZHA_NODE_WANT_RESULT : 0) | (has_result(call) ? NEZHA_NODE_WANT_ROOM : 0);
}

bool nezha_nodecall_over(const struct nezha_nodecall *call)
{
	return call->contributed == call->total && !call->missing && !misses_note(call) &&
	       (!call->carrier || call->put == call->pieces->cells);
}

bool nezha_nodecall_wait(struct nezha_nodecall *call, uint64_t timeout)
{
	uint32_t bell = nezha_node_doze(call->node, wants(call));
	bool moved = nezha_nodecall_move(call);
	bool awake = moved || nezha_nodecall_over(call) || atomic_load(call->node->failed);

	nezha_node_sleep(call->node, bell, awake ? 0 : timeout);
	return moved;
}

void nezha_nodecall_end(struct nezha_nodecall *call)
{
	call->node->notes += call->noted;
	call->node->in_base += call->total;
	for (int c = 0; c < call->pieces->count; c++)
		call->node->out_base[c] += call->pieces->cells;
}
