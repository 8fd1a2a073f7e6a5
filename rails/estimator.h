/* SPDX-License-Identifier: BSD-3-Clause
 * How fast is a path?  Bytes acknowledged over time, counted only while the path certainly had something to
 * send.  Pure: fed with samples, tested with made-up and recorded ones.
 *
 * - Seeded with the nominal speed, measured by the opening probe, so it is never "unknown".
 * - It counts runs: unbroken stretches in which the path was backlogged, 3 ms at least, from one acknowledgement to
 *   another.  Shorter ones are left out, as whether a short stretch looks backlogged depends on how late its
 *   acknowledgements happen to come: a path with little to carry would be found slow, be given less, and so on down.
 * - Deaf to intervals in which the receiver's window was shut, to stalls, and to the first bytes of a busy period (a
 *   shaper's or NIC's burst, slow start).
 * - A path that is never backlogged for long cannot be measured; but what it delivers in a busy period is a lower
 *   bound.  Two in a row above the estimate raise it, and leave a doubt, which a call or a probe settles (probe.h); a
 *   path that was not measured for long is probed, too.  So there is no absorbing state.
 * - The longer the estimate stands, the less one window moves it; a window far off is put aside, and only a second
 *   one on the same side makes a step of it. */
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
	uint64_t shut;        /* us so far in which the receiver's window was shut */
	uint32_t rtt;         /* us: the shortest round trip seen, what an empty path takes */
	bool narrow;          /* the receiver's window holds the sender back at this moment */
	bool in_flight;       /* something was sent and is not acknowledged */
	bool recovering;      /* the transport makes up for a loss that stopped it */
};

struct nezha_estimator {
	double rate;                    /* bytes per second, > 0 */
	double weight;                  /* seconds of measurement behind it; 0: it is the seed */
	uint64_t measured;              /* how often the rate was confirmed or changed */
	bool doubt;                     /* the path seems to be faster; cleared by who settles it */
	bool bounded;                   /* not measured, but the rate is no longer the seed: it delivered as much */
	struct nezha_path_sample last;
	bool valid;                     /* `last` is one */
	uint64_t busy_since, busy_acked;/* when this busy period began, and acked then */
	bool running;                   /* a run has begun: windows reach from acknowledgement to acknowledgement */
	double silence;                 /* seconds of the run since the last one */
	double run_bytes, run_time;     /* the run, so far */
	double still;                   /* seconds in which nothing was acknowledged, so far */
	double window, before;          /* the last windows of a new estimate, 0: none */
	int flat;                       /* windows in a row that did not raise a new estimate */
	double odd;                     /* the last window's rate if it was far off, else 0 */
	double low;                     /* the lowest bound of the last `highs` busy periods */
	int highs;                      /* busy periods in a row that were faster than the estimate */
};

/* rate: bytes per second, > 0. */
void nezha_estimator_init(struct nezha_estimator *estimator, double rate);

/* Feeds one sample; their times do not decrease. */
void nezha_estimator_sample(struct nezha_estimator *estimator, const struct nezha_path_sample *sample);

/* There is none yet, or too little is known of it; the first one of a path also while it still rises, as TCP's own
 * window does. */
bool nezha_estimator_is_new(const struct nezha_estimator *estimator);

/* The path was replaced by a new connection: counters begin anew, the rate stays but weighs next to nothing. */
void nezha_estimator_restart(struct nezha_estimator *estimator);

#endif
