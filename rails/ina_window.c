/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_window.h"

#include <string.h>

#define ROOM_FIRST 64            /* chunks */
#define ROOM_LEAST 4
#define ROOM_LOSSY 32            /* not less for losses that no queue explains */
#define QUEUEING (2 * NEZHA_MSEC)        /* more than that in addition to the least round trip: no growth */
#define QUEUE_FULL (NEZHA_MSEC)          /* a loss with more than that is one of a full queue */
#define REORDERING (100 * NEZHA_USEC)    /* at least: packets that overtake others are not the end of these */

static struct nezha_ina_chunk *chunk_of(struct nezha_ina_window *window, uint32_t seq)
{
	return &window->chunks[seq & (window->slots - 1)];
}

void nezha_ina_window_open(struct nezha_ina_window *window, uint32_t slots)
{
	memset(window, 0, sizeof *window);
	window->slots = slots;
	window->room = slots < ROOM_FIRST ? slots : ROOM_FIRST;
	window->threshold = slots;
}

void nezha_ina_window_begin(struct nezha_ina_window *window, uint32_t count, uint64_t now)
{
	window->first = window->next;
	window->end = window->next + count;
	window->flight = 0;
	window->moved = now;
}

uint32_t nezha_ina_window_room(const struct nezha_ina_window *window)
{
	uint32_t ahead = window->first + window->slots - window->next, left = window->end - window->next;
	uint32_t room = window->flight < window->room ? (uint32_t)window->room - window->flight : 0;

	if (ahead < room)
		room = ahead;
	return left < room ? left : room;
}

void nezha_ina_window_sent(struct nezha_ina_window *window, uint32_t seq, uint64_t now)
{
	struct nezha_ina_chunk *chunk = chunk_of(window, seq);

	if (seq == window->next) {
		*chunk = (struct nezha_ina_chunk){ .sent = now };
		window->next++;
		window->flight++;
	} else {
		chunk->sent = now;
		chunk->again = true;
	}
	window->moved = now;
}

static void measure(struct nezha_ina_window *window, uint64_t trip)
{
	if (!window->least || trip < window->least)
		window->least = trip;
	window->smooth = window->smooth ? (7 * window->smooth + trip) / 8 : trip;
}

static void grow(struct nezha_ina_window *window)
{
	if (window->smooth > window->least + QUEUEING || window->room >= window->slots)
		return;
	window->room += window->room < window->threshold ? 1 : 1 / window->room;
}

bool nezha_ina_window_answered(struct nezha_ina_window *window, uint32_t seq, uint64_t now)
{
	struct nezha_ina_chunk *chunk = chunk_of(window, seq);

	if (seq - window->first >= window->next - window->first || chunk->answered)
		return false;
	chunk->answered = true;
	window->flight--;
	window->moved = now;
	if (!chunk->again && !chunk->waits)
		measure(window, now - chunk->sent);
	/* What comes sooner than any answer can is the answer to an earlier sending. */
	if (chunk->sent > window->newest && !chunk->waits && (!chunk->again || now - chunk->sent >= window->least))
		window->newest = chunk->sent;
	while (window->first != window->next && chunk_of(window, window->first)->answered)
		window->first++;
	grow(window);
	return true;
}

void nezha_ina_window_waits(struct nezha_ina_window *window, uint32_t seq)
{
	if (seq - window->first < window->next - window->first)
		chunk_of(window, seq)->waits = true;
}

static void shrink(struct nezha_ina_window *window)
{
	bool full = window->smooth > window->least + QUEUE_FULL;
	double least = full ? ROOM_LEAST : ROOM_LOSSY, room = window->room * (full ? 0.5 : 0.875);

	if (room < least)
		room = least < window->room ? least : window->room;
	window->room = window->threshold = room;
}

uint32_t nezha_ina_window_lost(struct nezha_ina_window *window, uint32_t *seqs, uint32_t most)
{
	uint64_t apart = window->smooth / 4 > REORDERING ? window->smooth / 4 : REORDERING;
	uint32_t count = 0;

	for (uint32_t seq = window->first; seq != window->next && count < most; seq++) {
		const struct nezha_ina_chunk *chunk = chunk_of(window, seq);

		if (!chunk->answered && chunk->sent + apart < window->newest)
			seqs[count++] = seq;
	}
	if (count && (int32_t)(seqs[0] - window->recover) >= 0) {
		shrink(window);
		window->recover = window->next;
	}
	return count;
}

bool nezha_ina_window_stuck(const struct nezha_ina_window *window, uint64_t now)
{
	return window->first != window->next && now - window->moved >= NEZHA_INA_RTO;
}
