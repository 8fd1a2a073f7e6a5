/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/estimator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"

#define TAIL_BYTES 36864.0      /* what may be under way without any queue: two packets as the kernel builds them */
/* A window is so long that the bunching of acknowledgements (up to 1 ms on a busy host) matters little. */
#define WINDOW_BYTES 196608.0
#define WINDOW_TIME 8e-3        /* s, with WINDOW_BYTES ... */
#define WINDOW_SLOW 16e-3       /* ... or, on a slow path, so long in any case */
#define OPENING_WINDOW 10e-3    /* a new estimate begins with longer ones, and is new for ... */
#define OPENING_TIME 35e-3
#define OPENING_MOST 0.15       /* ... until it no longer rises, but not longer than this */
#define LATEST 3                /* it rises if the median of its latest windows ... */
#define RISE 0.05               /* ... is so much above that of those before */
#define RUN_BYTES 65536.0       /* a run that ends early counts from here */
#define RUN_TIME 3e-3
#define HELD_TIME 2e-3          /* s: a window of departures is shorter, */
#define HELD_BYTES 49152.0      /* for these are hardly disturbed: of 3,300 with 4 ranks on 2 cores 12 were more than a quarter off, no two in a row */
#define WEIGHT_MOST 100e-3      /* s: the memory of the average */
#define WEIGHT_LEAST 1e-3
#define FAR 0.25                /* a window further off than this must be confirmed by others on the same side */
#define STILL_TIME 5e-3         /* s: a longer silence ... */
#define STILL_BYTES 65536.0     /* ... than four times that of the largest packet the kernel builds is a stall */
#define HIGH 1.1                /* a bound so many times the estimate is news, ... */
#define HIGHS 2                 /* ... and so many in a row are believed */
#define HOPE 1.5                /* after a rise of the rate, bounds are found at 0.7 of it */
#define HOPE_BYTES (1u << 20)   /* written since, and a single bound is forgotten */

/* What makes windows that are far off, in a row, believed: so many, so long together. */
struct proof {
	int windows;
	double time;            /* s */
	bool doubtful;          /* a path that is found slower so, and then gets less, may have too little to show that this was wrong */
};
static const struct proof of_runs = { 2, 16e-3, true }, of_departures = { 2, 0, false };

void nezha_estimator_init(struct nezha_estimator *estimator, double rate)
{
	memset(estimator, 0, sizeof *estimator);
	estimator->rate = rate;
}

void nezha_estimator_restart(struct nezha_estimator *estimator)
{
	struct nezha_estimator old = *estimator;

	nezha_estimator_init(estimator, old.rate);
	estimator->weight = fmin(old.weight, WEIGHT_LEAST);
	estimator->measured = old.measured;
	estimator->bounded = old.bounded;
	estimator->doubt = old.doubt;
}

static void confirm(struct nezha_estimator *e)
{
	e->odd_bytes = e->odd_time = 0;
	e->odds = 0;
	e->highs = 0;
	e->doubt = e->bounded = false;
	e->measured++;
}

/* A new estimate, from a window. */
static void step(struct nezha_estimator *e, double rate, double time)
{
	e->rate = rate;
	e->weight = time;
	e->windows = 0;
	confirm(e);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
	double sorted[NEZHA_ESTIMATOR_WINDOWS];

	memcpy(sorted, values, (size_t)count * sizeof *sorted);
	qsort(sorted, (size_t)count, sizeof *sorted, compare);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static bool is_rising(const struct nezha_estimator *e)
{
	return e->windows < NEZHA_ESTIMATOR_WINDOWS ||
	       median(e->window + NEZHA_ESTIMATOR_WINDOWS - LATEST, LATEST) > median(e->window, LATEST) * (1 + RISE);
}

bool nezha_estimator_is_new(const struct nezha_estimator *e)
{
	return e->weight < OPENING_TIME || (e->windows > 0 && e->weight < OPENING_MOST && is_rising(e));
}

/* A window of a new estimate. */
static void begin(struct nezha_estimator *e, double rate, double time)
{
	if (e->windows == NEZHA_ESTIMATOR_WINDOWS)
		memmove(e->window, e->window + 1, --e->windows * sizeof *e->window);
	e->window[e->windows++] = rate;
	e->rate = median(e->window, e->windows);
	e->weight += time;
	confirm(e);
}

double nezha_estimator_hoped(const struct nezha_estimator *e)
{
	bool bounded = e->bounded && e->doubt;  /* a probe that measured nothing ends the hope, too */
	bool high = e->highs > 0 && e->last.written - e->high_at <= HOPE_BYTES;

	/* Where it is not told what has left the host a false hope would last. */
	return (bounded || high) && e->weight > 0 && e->last.left ? e->rate * HOPE : e->rate;
}

/* A window that is far off an old estimate.  The mean of several in a row on the same side is the new one. */
static void set_aside(struct nezha_estimator *e, double bytes, double time, const struct proof *proof)
{
	bool above = bytes > e->rate * time;

	if (above != (e->odd_bytes > e->rate * e->odd_time)) {
		e->odd_bytes = e->odd_time = 0;
		e->odds = 0;
	}
	e->odd_bytes += bytes;
	e->odd_time += time;
	if (++e->odds < proof->windows || e->odd_time < proof->time)
		return;
	step(e, e->odd_bytes / e->odd_time, e->odd_time);
	e->doubt = !above && proof->doubtful;
}

static bool is_opening(const struct nezha_estimator *e)
{
	return e->weight == 0 || (nezha_estimator_is_new(e) && e->windows > 0);
}

/* Runs and departures tell of the same time: a window of either ends what there is of the other. */
static void windows_over(struct nezha_estimator *e)
{
	e->run_bytes = e->run_time = 0;
	e->departures.bytes = e->departures.time = 0;
}

static void window_closed(struct nezha_estimator *e, double bytes, double time, const struct proof *proof)
{
	double rate = bytes / time;

	if (is_opening(e)) {
		begin(e, rate, time);
	} else if (fabs(rate / e->rate - 1) < FAR) {
		e->rate += time / (e->weight + time) * (rate - e->rate);
		e->weight = fmin(e->weight + time, WEIGHT_MOST);
		confirm(e);
	} else {
		set_aside(e, bytes, time, proof);
	}
}

static bool window_full(const struct nezha_estimator *e)
{
	if (nezha_estimator_is_new(e))
		return e->run_time >= OPENING_WINDOW;
	return e->run_time >= WINDOW_SLOW || (e->run_time >= WINDOW_TIME && e->run_bytes >= WINDOW_BYTES);
}

static void run_window(struct nezha_estimator *e)
{
	double bytes = e->run_bytes, time = e->run_time;

	windows_over(e);
	window_closed(e, bytes, time, &of_runs);
}

static void run_over(struct nezha_estimator *e)
{
	if (e->run_time >= RUN_TIME && e->run_bytes >= RUN_BYTES)
		run_window(e);
	e->run_bytes = e->run_time = 0;
	e->silence = 0;
	e->running = e->told = false;
}

/* The path surely delivers so much. */
static void at_least(struct nezha_estimator *e, double bound)
{
	if (e->weight == 0) {
		e->rate = e->bounded ? fmax(e->rate, bound) : bound;
		e->bounded = e->doubt = true;
	} else if (bound < e->rate * HIGH) {
		e->highs = 0;
	} else {
		e->low = e->highs ? fmin(e->low, bound) : bound;
		e->high_at = e->last.written;
		if (++e->highs < HIGHS)
			return;
		e->rate = e->low;
		e->weight = WEIGHT_LEAST;
		e->windows = 0;
		e->highs = 0;
		e->bounded = e->doubt = true;
	}
}

static bool is_undisturbed(const struct nezha_path_sample *from, const struct nezha_path_sample *to)
{
	return to->shut == from->shut && !from->narrow && !to->narrow && !from->recovering && !to->recovering;
}

/* The bottleneck was busy all the time if, at the end, some of what was already written at the beginning is not even sent, or
 * more of it unacknowledged than the empty path holds, or a path of the believed rate would not have sent it all.  Else
 * it may have waited for us, and the interval says nothing. */
static bool counts(const struct nezha_estimator *e, const struct nezha_path_sample *from,
                   const struct nezha_path_sample *to)
{
	double holds = e->rate * to->rtt * 1e-6 + TAIL_BYTES;
	bool backlog = (double)to->acked + holds < (double)from->written || to->sent < from->written || e->backlog > 0;

	return backlog && is_undisturbed(from, to) && (double)(from->acked - e->busy_acked) >= NEZHA_BURST_BYTES;
}

/* How long a healthy path needs for its largest piece, at most; what is more is a stall, not slowness. */
static double longest_silence(const struct nezha_estimator *e)
{
	return fmax(STILL_TIME, 4 * STILL_BYTES / e->rate);
}

/* Of the time in which nothing is acknowledged, what is no stall. */
static double without_stall(struct nezha_estimator *e, double bytes, double time)
{
	double counted = fmax(0, fmin(time, longest_silence(e) - e->still));

	e->still = bytes > 0 ? 0 : e->still + time;
	return counted;
}

static void add_to_run(struct nezha_estimator *e, double bytes)
{
	if (e->running) {
		e->run_time += e->silence;
		e->run_bytes += bytes;
	}
	e->running = true;
	e->silence = 0;
}

/* The interval between two samples, of which the first one was not idle. */
static void interval(struct nezha_estimator *e, const struct nezha_path_sample *from, const struct nezha_path_sample *to)
{
	double bytes = (double)(to->acked - from->acked);
	bool busy = counts(e, from, to);

	e->silence += without_stall(e, bytes, (double)(to->time - from->time) / NEZHA_SEC);
	/* What makes a path look idle is often that late acknowledgements come all at once: without them runs would be slow. */
	if (bytes > 0 && (busy || (e->running && to->acked != to->written && is_undisturbed(from, to))))
		add_to_run(e, bytes);
	/* With nothing left to acknowledge it waits for us from here, whatever it would have had to send by what we believe. */
	if (!busy || to->acked == to->written) {
		run_over(e);
	} else if (window_full(e)) {
		run_window(e);
		e->told = true;
	}
}

static bool has_departed(const struct nezha_estimator *e, double windows)
{
	return e->departures.time >= windows * HELD_TIME && e->departures.bytes >= windows * HELD_BYTES;
}

/* What left the host so far.  A run that is under way holds for a path that is held back elsewhere, too, and long ones see dips out; but a path is
 * nowhere faster than where it leaves the host: as long as the run has told nothing, what is far slower than believed counts. */
static void departed(struct nezha_estimator *e)
{
	double bytes = e->departures.bytes, time = e->departures.time;

	if (is_opening(e))
		return;
	/* Of what is known but for a lower bound half a window above it tells more. */
	if (e->bounded && bytes > e->rate * time && has_departed(e, 0.5)) {
		windows_over(e);
		step(e, bytes / time, time);
	} else if (has_departed(e, 1) && e->running) {
		if (e->told || bytes >= e->rate * time * (1 - FAR))
			return;
		e->departures.bytes = e->departures.time = 0;
		set_aside(e, bytes, time, &of_departures);
	} else if (has_departed(e, 1)) {
		windows_over(e);
		window_closed(e, bytes, time, &of_departures);
	}
}

void nezha_estimator_sample(struct nezha_estimator *e, const struct nezha_path_sample *s)
{
	const struct nezha_path_sample last = e->last;

	e->last = *s;
	if (!e->valid) {
		e->valid = true;
		e->busy_acked = s->acked;
		nezha_bound_begin(&e->bound, s);
		return;
	}
	if (last.acked == last.written) {
		/* It was idle when last looked at, and may have begun at any time since. */
		e->busy_acked = last.acked;
		e->still = 0;
		e->backlog = -NEZHA_BURST_BYTES;
	}
	e->backlog = fmax(-NEZHA_BURST_BYTES, e->backlog - e->rate * (double)(s->time - last.time) / NEZHA_SEC);
	if (s->acked == s->written) {
		double bound = nezha_bound_look(&e->bound, s, e->rate * HIGH);

		if (bound > 0)
			at_least(e, bound);
	}
	/* The host has nothing more to send: another call's bytes come next, although the run goes on as acknowledgements are late. */
	if (s->left == s->written)
		e->told = false;
	nezha_departures_add(&e->departures, &last, s, is_undisturbed(&last, s), longest_silence(e));
	interval(e, &last, s);
	departed(e);
	e->backlog += (double)(s->written - last.written);
}
