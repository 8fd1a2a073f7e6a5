/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_window.h"

#include <string.h>

#define ROOM_FIRST 64            /* chunks */
#define ROOM_LEAST 4
#define QUEUEING (2 * NEZHA_MSEC)        /* more than that in addition to the least round trip: no growth */
#define LOSS_MUCH 0.4                    /* part of a round: above, the network takes less */
#define LOSS_SOME 0.02                   /* above, it takes no more */
#define ROOM_SMALL 32                    /* which always grows: losses may be the link's own, the queue that of others */
#define LOSS_SHRINK 0.6
#define ROUND_LEAST 32                   /* answers: of fewer, so much may be lost by chance */
#define STEADY_FLIGHT 64                 /* chunks */
#define STEADY_TRIP (4 * NEZHA_MSEC)     /* of a chunk */
#define STEADY_LEAST (3 * NEZHA_MSEC)    /* ... to go on so */
#define REORDERING (100 * NEZHA_USEC)    /* at least: packets that overtake others are not the end of these */
#define AGAIN_LEAST NEZHA_MSEC           /* between two resends: a rank that shares a processor takes as long to answer */
#define ASK_LEAST (2 * NEZHA_MSEC)       /* after so long without an answer, at least, the oldest chunk is asked for */
#define DOUBLE_MOST 8                    /* times that a pause doubles */

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
	window->round = ROUND_LEAST;
	window->asks = 1;
}

void nezha_ina_window_begin(struct nezha_ina_window *window, uint32_t count, uint64_t now)
{
	window->first = window->next;
	window->end = window->next + count;
	window->flight = 0;
	window->moved = now;
	window->unheard = 0;
	window->asks = 1;
	window->timed = window->next;
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
		*chunk = (struct nezha_ina_chunk){ .first = now, .sent = now };
		window->next++;
		if (!window->flight++)
			window->moved = now;
	} else {
		/* Nothing of ours that was sent as late has been answered: then it may be the network, or a rank, that is slow. */
		if (!chunk->again++)
			chunk->missed = chunk->first <= window->newest;
		chunk->sent = now;
		window->moved = now;
	}
}

/* A chunk that was sent so much earlier than another one is before it. */
static uint64_t apart(const struct nezha_ina_window *window)
{
	return window->smooth / 4 > REORDERING ? window->smooth / 4 : REORDERING;
}

static void measure(struct nezha_ina_window *window, uint64_t trip)
{
	if (!window->least || trip < window->least)
		window->least = trip;
	window->smooth = window->smooth ? (7 * window->smooth + trip) / 8 : trip;
}

static void grow(struct nezha_ina_window *window, uint64_t trip)
{
	bool careful = trip > window->least + QUEUEING || window->hold;

	if (window->room >= window->slots || (careful && window->room >= ROOM_SMALL))
		return;
	window->room += window->room < window->threshold ? 0.5 : 1 / window->room;
}

/* What was lost in a round that is over decides about the next one. */
static void end_round(struct nezha_ina_window *window)
{
	uint32_t all = window->come;
	bool full = window->smooth > window->least + QUEUEING;

	window->hold = window->gone > LOSS_SOME * all;
	if (window->gone > LOSS_MUCH * all || (full && window->hold && window->room > ROOM_SMALL)) {
		window->room *= LOSS_SHRINK;
		if (window->room < ROOM_LEAST)
			window->room = ROOM_LEAST;
		window->threshold = window->room;
	}
	window->round = window->flight > ROUND_LEAST ? window->flight : ROUND_LEAST;
	window->gone = window->come = 0;
}

bool nezha_ina_window_answered(struct nezha_ina_window *window, uint32_t seq, uint64_t now)
{
	struct nezha_ina_chunk *chunk = chunk_of(window, seq);

	if (seq - window->first >= window->next - window->first || chunk->answered)
		return false;
	chunk->answered = true;
	window->flight--;
	window->come++;
	window->gone += chunk->missed;
	window->moved = now;
	window->unheard = 0;
	if (!chunk->again)
		window->asks = 1;
	/* An answer to the second sending counts as a long trip: else a trip that has grown beyond the pause was never measured. */
	if (!chunk->missed && !chunk->waits && (int32_t)(seq - window->timed) >= 0)
		measure(window, now - chunk->first);
	if (chunk->first > window->newest && !chunk->waits)
		window->newest = chunk->first;
	while (window->first != window->next && chunk_of(window, window->first)->answered)
		window->first++;
	grow(window, now - chunk->sent);
	if (window->come >= window->round)
		end_round(window);
	return true;
}

bool nezha_ina_window_steady(const struct nezha_ina_window *window, bool already)
{
	return window->next != window->end && window->flight >= STEADY_FLIGHT &&
	       window->smooth >= (already ? STEADY_LEAST : STEADY_TRIP);
}

void nezha_ina_window_waits(struct nezha_ina_window *window, uint32_t seq)
{
	struct nezha_ina_chunk *chunk = chunk_of(window, seq);

	if (seq - window->first >= window->next - window->first)
		return;
	chunk->waits = true;
	/* Where later ones have been answered some rank has lost this one, else one is late. */
	if (chunk->first + apart(window) >= window->newest)
		window->timed = window->next;
}

/* How long to wait for an answer, the times-th time, where one takes about `trip`; 0: unknown. */
static uint64_t pause(uint64_t trip, uint32_t times)
{
	trip <<= times < DOUBLE_MOST ? times : DOUBLE_MOST;
	return trip && trip < NEZHA_INA_RTO ? trip : NEZHA_INA_RTO;
}

/* A chunk that another rank lost stays unanswered until that one has sent it again: what is sent meanwhile says nothing about ours, so
 * from the second time on it is time that tells.  One of which we know that it waits for others has its turn when it is the oldest:
 * they may be late by minutes. */
static bool is_lost(const struct nezha_ina_window *window, uint32_t seq, uint64_t now)
{
	const struct nezha_ina_chunk *chunk = &window->chunks[seq & (window->slots - 1)];
	bool passed = chunk->sent + apart(window) < window->newest;
	uint64_t trip = window->smooth + apart(window);

	if (chunk->answered || (chunk->waits && seq != window->first && !passed))
		return false;
	if (!chunk->again)
		return passed;
	return now - chunk->sent >= pause(!window->smooth ? 0 : trip > AGAIN_LEAST ? trip : AGAIN_LEAST, chunk->again - 1);
}

uint32_t nezha_ina_window_lost(const struct nezha_ina_window *window, uint32_t *seqs, uint32_t most, uint64_t now)
{
	uint32_t count = 0;

	for (uint32_t seq = window->first; seq != window->next && count < most; seq++)
		if (is_lost(window, seq, now))
			seqs[count++] = seq;
	return count;
}

bool nezha_ina_window_was_again(const struct nezha_ina_window *window, uint32_t seq)
{
	return window->chunks[seq & (window->slots - 1)].again;
}

uint32_t nezha_ina_window_asks(struct nezha_ina_window *window, uint32_t *seqs, uint32_t most, uint64_t now)
{
	uint64_t trips = 2 * window->smooth;
	uint32_t count = 0, wanted = chunk_of(window, window->first)->waits ? 1 : window->asks;

	if (trips && trips < ASK_LEAST)
		trips = ASK_LEAST;
	if (window->first == window->next || now - window->moved < pause(trips, window->unheard))
		return 0;
	for (uint32_t seq = window->first; seq != window->next && count < wanted && count < most; seq++)
		if (!chunk_of(window, seq)->answered)
			seqs[count++] = seq;
	window->moved = now;
	window->unheard++;
	window->asks = wanted < most ? 2 * wanted : wanted;
	return count;
}
