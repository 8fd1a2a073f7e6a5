/* SPDX-License-Identifier: BSD-3-Clause
 * The window of a rank towards an aggregator: which chunks may be sent, which are lost.  Pure: no sockets, the caller
 * tells the time (ns).
 *
 * A chunk may be sent while fewer than the congestion window are unanswered, and never more than the session's
 * slots after the first unanswered one (ina_slots.h needs that).  The congestion window grows by additive increase
 * while the answers show little queueing and less than 2 % is lost, and shrinks by a factor, once for each round
 * (a window of answers), if a good part of it was lost, or some while answers come late, which tells a full queue;
 * less tells a bad link, on which a smaller window would only be slower.  Loss is what RACK (RFC 8985) calls so: a
 * chunk that was first sent clearly later has been answered, so that all ranks have sent this one.  When it was sent again is no
 * measure: a late rank's contributions to those in between may still be to come.  What was sent again is so once more after a
 * round trip, with pauses that double, and the aggregator asked to answer.  Where no answer comes at all for two round trips the
 * oldest chunk is asked for (RFC 8985's tail loss probe), then two, four and so on, as long as nothing comes that was sent but
 * once, with pauses that double up to NEZHA_INA_RTO while nothing comes, which is also the first pause where no round trip is
 * known.  What is asked for so is no loss, unless something that was sent as late had come: a rank may be late. */
#ifndef NEZHA_RAILS_INA_WINDOW_H
#define NEZHA_RAILS_INA_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/clock.h"
#include "rails/ina_wire.h"

#define NEZHA_INA_RTO (10 * NEZHA_MSEC)

struct nezha_ina_window {
	uint32_t slots;              /* of the session */
	uint32_t first;              /* the first chunk without an answer */
	uint32_t next;               /* the next to be sent for the first time */
	uint32_t end;                /* behind the last one of the call */
	uint32_t flight;             /* sent, not answered */
	double room;                 /* congestion window, chunks */
	double threshold;            /* below it the window grows by a half for each answer */
	uint32_t round;              /* answers until it ends: as many as were to come when it began */
	uint32_t come, gone;         /* chunks answered in the round, and those of them that had been lost */
	bool hold;                   /* the last round had losses: no growth */
	uint64_t least, smooth;      /* round trip: the least, a running mean; 0: unknown */
	uint64_t newest;             /* when the latest chunk that was answered was first sent */
	uint64_t moved;              /* when something was last answered or sent again, or sent while nothing was on the way */
	uint32_t unheard;            /* times that chunks were asked for since the last answer */
	uint32_t asks;               /* chunks that are asked for next time */
	uint32_t timed;              /* chunks before it were sent while a rank was late: no measure of the round trip */
	struct nezha_ina_chunk {
		uint64_t first, sent;  /* when it was first and last sent */
		uint32_t again;        /* sendings besides the first */
		bool answered, missed; /* missed: when it was sent again, one that was first sent as late had been answered */
		bool waits;          /* for other ranks, not for us: when its answer comes says nothing of losses */
	} chunks[NEZHA_INA_WINDOW_MAX];  /* by number modulo slots */
};

/* A new session: chunks count from 0. */
void nezha_ina_window_open(struct nezha_ina_window *window, uint32_t slots);

/* `count` more chunks are to be sent; all before were answered. */
void nezha_ina_window_begin(struct nezha_ina_window *window, uint32_t count, uint64_t now);

/* How many chunks may be sent for the first time now, from `next` on. */
uint32_t nezha_ina_window_room(const struct nezha_ina_window *window);

/* The chunk was sent: `next`, or one before it again. */
void nezha_ina_window_sent(struct nezha_ina_window *window, uint32_t seq, uint64_t now);

/* Its result has come; false: it is not awaited (it came twice, or is no chunk of the call). */
bool nezha_ina_window_answered(struct nezha_ina_window *window, uint32_t seq, uint64_t now);

/* While several turns' worth of chunks is on its way and more is to be sent, a look at each turn of the engine, a millisecond, keeps the
 * window moving, and being roused by each packet is mere processor time.  `already`: it was so. */
bool nezha_ina_window_steady(const struct nezha_ina_window *window, bool already);

/* The aggregator has said that others' contributions to the chunk are missing. */
void nezha_ina_window_waits(struct nezha_ina_window *window, uint32_t seq);

/* Chunks that are lost and shall be sent again, at most `most`; the caller sends them all. */
uint32_t nezha_ina_window_lost(const struct nezha_ina_window *window, uint32_t *seqs, uint32_t most, uint64_t now);

/* Whether the unanswered chunk has been sent again before: then the aggregator is to say whether it lives. */
bool nezha_ina_window_was_again(const struct nezha_ina_window *window, uint32_t seq);

/* The oldest chunks, if nothing has moved for so long that they shall be asked for; the caller asks for them, `most` at most. */
uint32_t nezha_ina_window_asks(struct nezha_ina_window *window, uint32_t *seqs, uint32_t most, uint64_t now);

/* Whether chunks are to be sent or awaited. */
static inline bool nezha_ina_window_busy(const struct nezha_ina_window *window)
{
	return window->first != window->end;
}

#endif
