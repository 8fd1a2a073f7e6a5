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
 * - Where calls are too short for runs, what left the host while its interface held more is put together over several
 *   of them (departures.h).  Runs go before it, as they hold for a path that is held back elsewhere, too; but no path is faster than what
 *   leaves the host, which counts until a run has told a window.
 * - A path that is never backlogged for long cannot be measured; but what it delivers is a lower bound (bound.h).  Two in a row
 *   above the estimate raise it, and leave a doubt, which a call or a probe settles (probe.h); a path that was not
 *   measured for long is probed, too.  So no path stays with what it once was believed to be, but one so fast that a probe of 8 MiB is
 *   shorter than a run (above 22 Gbit/s).
 * - A new estimate is the median of the last windows: single ones are disturbed, in both directions.  Later, the longer the
 *   estimate stands, the less one window moves it; those far off are put aside, until several in a row on the same
 *   side make a step of it. */
#ifndef NEZHA_RAILS_ESTIMATOR_H
#define NEZHA_RAILS_ESTIMATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/bound.h"
#include "rails/departures.h"
#include "rails/path_sample.h"

#define NEZHA_ESTIMATOR_WINDOWS 5

struct nezha_estimator {
	double rate;                    /* bytes per second, > 0 */
	double weight;                  /* seconds of measurement behind it; 0: it is the seed */
	uint64_t measured;              /* how often the rate was confirmed or changed */
	bool doubt;                     /* the path may be faster; cleared by who settles it */
	bool bounded;                   /* the rate is what it was seen to deliver at least, and no window since told more */
	struct nezha_path_sample last;
	bool valid;                     /* `last` is one */
	uint64_t busy_acked;            /* acked when this busy period began */
	double backlog;                 /* bytes that a path as fast as believed would still have to send */
	bool running;                   /* a run has begun: windows reach from acknowledgement to acknowledgement */
	bool told;                      /* ... and has told a window */
	double silence;                 /* seconds of the run since the last one */
	double run_bytes, run_time;     /* the run, so far */
	double still;                   /* seconds in which nothing was acknowledged, so far */
	double window[NEZHA_ESTIMATOR_WINDOWS];  /* rates of a new estimate's last windows, oldest first */
	int windows;                    /* how many these are; 0: the estimate did not begin with windows */
	double odd_bytes, odd_time;     /* the last windows in a row that were far off on one side, together */
	int odds;                       /* how many these are */
	struct nezha_departures departures;     /* since the last window */
	struct nezha_bound bound;
	double low;                     /* the lowest of the last `highs` bounds */
	int highs;                      /* bounds in a row that were above the estimate */
	uint64_t high_at;               /* bytes written when the last of them was seen */
};

/* rate: bytes per second, > 0. */
void nezha_estimator_init(struct nezha_estimator *estimator, double rate);

/* Feeds one sample; their times do not decrease. */
void nezha_estimator_sample(struct nezha_estimator *estimator, const struct nezha_path_sample *sample);

/* There is none yet, or too little is known of it, or it still rises, as TCP's own window does at first. */
bool nezha_estimator_is_new(const struct nezha_estimator *estimator);

/* Bytes per second: the rate to give the path blocks by.  That is more than the estimate while it is but a bound, or a bound is above it: who gives
 * a path no more than what it has shown never sees more, and one that is given too much shows that at once. */
double nezha_estimator_hoped(const struct nezha_estimator *estimator);

/* The path was replaced by a new connection: counters begin anew, the rate stays but weighs next to nothing. */
void nezha_estimator_restart(struct nezha_estimator *estimator);

#endif
