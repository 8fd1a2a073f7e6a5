/* SPDX-License-Identifier: BSD-3-Clause
 * How fast is a path?  Bytes acknowledged over time, counted only while the path certainly had something to
 * send.  Pure: fed with samples, tested with made-up and recorded ones.
 *
 * - Seeded with the nominal speed, measured by the opening probe, so it is never "unknown".
 * - It counts runs: unbroken stretches in which the path was backlogged, 3 ms at least, from one acknowledgement to
 *   another.  It was, if what is not acknowledged at the end is more than the empty path holds, or if a path as fast as
 *   believed would still have to send of what was written (were it slower, so much the more).
 * - Deaf to intervals in which the receiver's window was shut, to stalls, and to the first bytes of a busy period (a
 *   shaper's or NIC's burst, slow start).
 * - A path that is never backlogged for long cannot be measured; but what it delivers in a busy period is a lower
 *   bound.  Two in a row above the estimate raise it, and leave a doubt, which a call or a probe settles (probe.h); a
 *   path that was not measured for long is probed, too.  So there is no absorbing state for calls of 1 MiB and more; smaller
 *   ones may leave a path unmeasured for a long time (doc/design.md, "What calls of 256 KiB do not measure").
 * - A new estimate is the median of the last windows: single ones are disturbed, in both directions.  Later, the longer the
 *   estimate stands, the less one window moves it; those far off are put aside, until several in a row on the same
 *   side make a step of it. */
#ifndef NEZHA_RAILS_ESTIMATOR_H
#define NEZHA_RAILS_ESTIMATOR_H

#include <stdbool.h>
#include <stdint.h>

/* What a path's transport tells of itself at one moment.  Byte counts since the path was opened. */
struct nezha_path_sample {
	uint64_t time;        /* ns, nezha_now() */
	uint64_t written;     /* bytes handed to the transport */
	uint64_t sent;        /* of these: that the transport has begun to send */
	uint64_t acked;       /* of these: known to have arrived */
	uint64_t left;        /* of these: known to have left this host, or acked; less than acked: the transport does not tell */
	uint64_t shut;        /* us so far in which the receiver's window was shut */
	uint64_t quiet;       /* ns since the peer's host last answered anything; 0: the transport does not tell, and looks to that itself */
	uint64_t window;      /* bytes that may be sent and not acknowledged, for all that the way allows; 0: the transport does not tell */
	uint32_t rtt;         /* us: the shortest round trip seen, what an empty path takes */
	bool narrow;          /* the receiver's window holds the sender back at this moment */
	bool in_flight;       /* something was sent and is not acknowledged */
	bool recovering;      /* the transport makes up for a loss that stopped it */
};

#define NEZHA_ESTIMATOR_WINDOWS 5

struct nezha_estimator {
	double rate;                    /* bytes per second, > 0 */
	double weight;                  /* seconds of measurement behind it; 0: it is the seed */
	uint64_t measured;              /* how often the rate was confirmed or changed */
	bool doubt;                     /* the path may be faster; cleared by who settles it */
	bool bounded;                   /* not measured, but the rate is no longer the seed: it delivered as much */
	struct nezha_path_sample last;
	bool valid;                     /* `last` is one */
	uint64_t busy_since, busy_acked;/* when this busy period began, and acked then */
	double backlog;                 /* bytes that a path as fast as believed would still have to send */
	bool running;                   /* a run has begun: windows reach from acknowledgement to acknowledgement */
	double silence;                 /* seconds of the run since the last one */
	double run_bytes, run_time;     /* the run, so far */
	double still;                   /* seconds in which nothing was acknowledged, so far */
	double window[NEZHA_ESTIMATOR_WINDOWS];  /* rates of a new estimate's last windows, oldest first */
	int windows;                    /* how many these are; 0: the estimate did not begin with windows */
	double odd_bytes, odd_time;     /* the last windows in a row that were far off on one side, together */
	double low;                     /* the lowest bound of the last `highs` busy periods */
	int highs;                      /* busy periods in a row that were faster than the estimate */
};

/* rate: bytes per second, > 0. */
void nezha_estimator_init(struct nezha_estimator *estimator, double rate);

/* Feeds one sample; their times do not decrease. */
void nezha_estimator_sample(struct nezha_estimator *estimator, const struct nezha_path_sample *sample);

/* There is none yet, or too little is known of it, or it still rises, as TCP's own window does at first. */
bool nezha_estimator_is_new(const struct nezha_estimator *estimator);

/* The path was replaced by a new connection: counters begin anew, the rate stays but weighs next to nothing. */
void nezha_estimator_restart(struct nezha_estimator *estimator);

#endif
