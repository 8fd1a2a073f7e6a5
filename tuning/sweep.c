/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_NS 8e6        /* what a sample should take at least, */
#define SAMPLE_CALLS 64      /* with so many calls at most, */
#define SAMPLE_SHORT 4       /* ... and of short ones at least */
#define SETTLE 3             /* short calls before them, for the first ones after another candidate's take longer */
#define WARM_NS 50e6         /* the first call of a candidate counts if it takes so long: what is new to it is little then */
#define ROUNDS_LEAST 3       /* samples that the best have at least, */
#define ROUNDS_SHORT 8       /* ... and that the others have at least, of short calls */
#define OVERTIME 2.0         /* unless so many times the budget is used up */
#define HOPELESS 1.3         /* times the best: after the first sample, unless calls are short */
#define BEHIND 1.1           /* ... after ROUNDS_LEAST samples */
#define FAR_BEHIND 1.5       /* ... at LOSSES_MOST sizes in a row: left out from then on */
#define LOSSES_MOST 2
#define WEIGHT_LEAST 65536.0 /* bytes: smaller sizes get as much of the time as this one */

static void add(struct nezha_sweep *sweep, const char *rule)
{
	struct nezha_sweep_candidate *c = &sweep->candidate[sweep->count++];

	snprintf(c->rule, sizeof c->rule, "%s", rule);
	c->out = c->losses >= LOSSES_MOST;
	c->estimate = 0;
	c->calls = 0;
	c->count = 0;
}

/* `rail`: NULL for all */
static void add_ring(struct nezha_sweep *sweep, uint32_t block, const char *rail)
{
	char rule[NEZHA_SWEEP_RULE];

	snprintf(rule, sizeof rule, "alg=ring,block=%" PRIu32 "%s%s", block, rail ? ",rails=" : "",
	         rail ? rail : "");
	add(sweep, rule);
}


static double best(const struct nezha_sweep *sweep)
{
	double least = 0;

	for (size_t i = 0; i < sweep->count; i++) {
		double ns = nezha_sweep_median(sweep, i);

		if (ns > 0 && (!least || ns < least))
			least = ns;
	}
	return least;
}

/* The last size's verdicts. */
static void count_losses(struct nezha_sweep *sweep)
{
	double least = best(sweep);

	for (size_t i = 0; i < sweep->fixed; i++) {
		struct nezha_sweep_candidate *c = &sweep->candidate[i];
		double ns = nezha_sweep_median(sweep, i);

		if (ns > 0)
			c->losses = ns > NEZHA_SWEEP_SHORT_NS && ns > FAR_BEHIND * least ? c->losses + 1 : 0;
	}
}

void nezha_sweep_begin(struct nezha_sweep *sweep, const struct nezha_sweep_blocks *blocks,
                       const char *const *rails, size_t rail_count)
{
	count_losses(sweep);
	sweep->count = sweep->round = sweep->turn = 0;
	add(sweep, "alg=native");
	for (size_t i = 0; rail_count > 1 && i < rail_count && i < NEZHA_SWEEP_RAILS; i++)
		add_ring(sweep, blocks->bytes[0], rails[i]);
	sweep->fixed = sweep->count;
	for (size_t i = 0; i < blocks->count && i < NEZHA_SWEEP_BLOCKS; i++) {
		sweep->candidate[sweep->count].losses = 0;
		add_ring(sweep, blocks->bytes[i], NULL);
	}
}

void nezha_sweep_add(struct nezha_sweep *sweep, const char *rule)
{
	sweep->candidate[sweep->count].losses = 0;
	add(sweep, rule);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The sample below which a part (0.5: the median) of them lies; 0: there is none. */
static double quantile(const struct nezha_sweep_candidate *c, double part)
{
	double ns[NEZHA_SWEEP_SAMPLES], at;
	size_t below;

	if (!c->count)
		return 0;
	at = part * (double)(c->count - 1);
	below = (size_t)at;
	memcpy(ns, c->ns, c->count * sizeof *ns);
	qsort(ns, c->count, sizeof *ns, compare);
	return below + 1 < c->count ? ns[below] + (at - (double)below) * (ns[below + 1] - ns[below]) : ns[below];
}

double nezha_sweep_median(const struct nezha_sweep *sweep, size_t candidate)
{
	return quantile(&sweep->candidate[candidate], 0.5);
}

static size_t left(const struct nezha_sweep *sweep)
{
	size_t count = 0;

	for (size_t i = 0; i < sweep->count; i++)
		count += !sweep->candidate[i].out;
	return count;
}

/* Short calls may take twice as long by chance: most of such a candidate's samples have to be worse than the best's median. */
static bool is_behind(const struct nezha_sweep_candidate *c, double least)
{
	double median = quantile(c, 0.5);

	if (median < NEZHA_SWEEP_SHORT_NS)
		return c->count >= ROUNDS_SHORT && median > BEHIND * least && quantile(c, 0.25) > least;
	return median > (c->count >= ROUNDS_LEAST ? BEHIND : HOPELESS) * least;
}

/* At the end of a round: those that are behind fall out, the best never does. */
static void prune(struct nezha_sweep *sweep)
{
	double least = best(sweep);

	for (size_t i = 0; i < sweep->count; i++)
		if (is_behind(&sweep->candidate[i], least))
			sweep->candidate[i].out = true;
}

/* Samples that those still in the race have, at least. */
static size_t samples(const struct nezha_sweep *sweep)
{
	size_t least = NEZHA_SWEEP_SAMPLES;

	for (size_t i = 0; i < sweep->count; i++)
		if (!sweep->candidate[i].out && sweep->candidate[i].count < least)
			least = sweep->candidate[i].count;
	return least;
}

/* Whether, after a round, enough is known. */
static bool is_enough(const struct nezha_sweep *sweep, double spent, double budget)
{
	size_t have = samples(sweep);

	if (!have)
		return false;
	if (have >= NEZHA_SWEEP_SAMPLES || spent >= OVERTIME * budget)
		return true;
	return have >= ROUNDS_LEAST && (spent >= budget || left(sweep) == 1);
}

bool nezha_sweep_next(struct nezha_sweep *sweep, double spent, double budget, struct nezha_sweep_step *out)
{
	size_t at;

	do {
		if (sweep->turn == sweep->count) {
			prune(sweep);
			sweep->turn = 0;
			sweep->round++;
			if (is_enough(sweep, spent, budget))
				return false;
		}
		/* Each round begins one further on: nobody is always behind the same one. */
		at = (sweep->turn++ + sweep->round) % sweep->count;
	} while (sweep->candidate[at].out);
	*out = (struct nezha_sweep_step){ .candidate = at, .calls = 1 };
	if (sweep->candidate[at].estimate > 0 && sweep->candidate[at].estimate < NEZHA_SWEEP_SHORT_NS) {
		double calls = SAMPLE_NS / sweep->candidate[at].estimate;

		out->settle = SETTLE;
		out->calls = calls < SAMPLE_SHORT ? SAMPLE_SHORT : calls > SAMPLE_CALLS ? SAMPLE_CALLS : (unsigned)calls;
	}
	return true;
}

void nezha_sweep_record(struct nezha_sweep *sweep, const struct nezha_sweep_step *step, double ns)
{
	struct nezha_sweep_candidate *c = &sweep->candidate[step->candidate];
	bool warm = c->estimate > 0 || ns >= WARM_NS;

	c->estimate = ns > 1 ? ns : 1;
	if (!warm || c->count == NEZHA_SWEEP_SAMPLES)
		return;
	c->ns[c->count++] = c->estimate;
	c->calls += step->calls;
}

double nezha_sweep_foresee(const struct nezha_sweep *sweep, double times)
{
	double least = best(sweep), sum = 0;

	for (size_t i = 0; i < sweep->count; i++) {
		const struct nezha_sweep_candidate *c = &sweep->candidate[i];
		bool lost = i < sweep->fixed && c->estimate > FAR_BEHIND * least;

		if (c->losses + lost < LOSSES_MOST)
			sum += c->estimate * times;
	}
	return sum;
}

double nezha_sweep_weight(uint64_t bytes)
{
	return sqrt(WEIGHT_LEAST + (double)bytes);
}
