/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/probing.h"

#include "rails/clock.h"

/* The opening probe takes PROBE_TIME, or PROBE_LONG while the estimate is not steady, but sends no less than PROBE_LEAST
 * and no more than PROBE_MOST bytes. */
#define PROBE_TIME (45 * NEZHA_MSEC)
#define PROBE_LONG (150 * NEZHA_MSEC)
#define PROBE_LEAST (128u << 10)
#define PROBE_MOST (8u << 20)
#define PROBE_AGAIN_SECONDS 6e-3        /* a later one, at the rate that is believed */
#define PROBE_PIECE (32u << 10)

static uint64_t probe_time(const struct nezha_path *path)
{
	return nezha_estimator_is_new(&path->estimator) ? PROBE_LONG : PROBE_TIME;
}

/* An opening probe ends by time, a later one when all of it is sent; each at once where blocks have no other path than this:
 * many of them measure it as well, and one that is lost before a probe ends would never carry any. */
static bool probed_enough(const struct nezha_path *path)
{
	if (!TAILQ_EMPTY(&path->link->queue) && nezha_link_paths_up(path->link) == 1)
		return true;
	return path->probe_since && path->probe_left <= PROBE_MOST - PROBE_LEAST &&
	       nezha_now() - path->probe_since > probe_time(path);
}

uint32_t nezha_probing_take(struct nezha_path *path)
{
	path->probe_left -= PROBE_PIECE;
	if (probed_enough(path))
		path->probe_left = 0;
	return PROBE_PIECE;
}

void nezha_probing_begin(struct nezha_path *path)
{
	path->probe_left = PROBE_MOST;
	path->probe_since = nezha_now();
	nezha_link_pump(path->link);
}

void nezha_probing_again(struct nezha_path *path)
{
	double pieces = path->estimator.rate * PROBE_AGAIN_SECONDS / PROBE_PIECE;
	double most = PROBE_MOST / PROBE_PIECE;

	path->probe_left = (uint32_t)(pieces < 2 ? 2 : pieces > most ? most : pieces) * PROBE_PIECE;
	path->probe_since = 0;
	nezha_link_pump(path->link);
}

uint64_t nezha_probing_bytes(const struct nezha_path *path)
{
	uint64_t spent, time = probe_time(path);
	double most;

	if (!path->probe_left || !path->probe_since)
		return path->probe_left;
	spent = nezha_now() - path->probe_since;
	most = spent < time ? path->estimator.rate * (double)(time - spent) / NEZHA_SEC : 0;
	return most < path->probe_left ? (uint64_t)most : path->probe_left;
}

bool nezha_probing_is_on(const struct nezha_path *path)
{
	return path->up && (path->probe_left || path->out.record_left || path->out.payload_left ||
	                    path->written != path->last.acked);
}
