/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/policy.h"

#define ROOM_SECONDS 3e-3    /* ecf: how much a path may have before it, */
#define ROOM_BLOCKS 2        /* but always so many blocks: one is sent while the next waits */
#define UNSEEN_BYTES 16384    /* ecf: what may lie before a path's bytes that is already acknowledged: the packet that a
                              * shaper has let go ahead of its time */

/* Seconds until path p has finished `bytes` more than it already has before it. */
static double finish(const struct nezha_path_view *p, uint64_t bytes)
{
	return (double)(p->in_flight + bytes) / p->rate;
}

static bool has_room(const struct nezha_path_view *p, uint64_t bytes)
{
	return p->up &&
	       ((double)p->in_flight < p->rate * ROOM_SECONDS || p->in_flight < ROOM_BLOCKS * bytes);
}

/* When the path's share would end if it took the block. */
static double tag(const struct nezha_path_view *p, uint64_t bytes)
{
	return p->share + (double)bytes / p->rate;
}

/* The same, but of the block no more than a path's room: one of 512 KiB takes a rail of 200 Mbit/s 21 ms, so
 * what ends with it comes behind the others' only after the rail has run dry. */
static double near_tag(const struct nezha_path_view *p, uint64_t bytes)
{
	double time = (double)bytes / p->rate;

	return p->share + (time < ROOM_SECONDS ? time : ROOM_SECONDS);
}

/* `a` before `b`, by their tags; the faster one on a tie. */
static bool is_before(const struct nezha_path_view *a, const struct nezha_path_view *b, double tag_a, double tag_b)
{
	return tag_a < tag_b || (tag_a == tag_b && a->rate > b->rate);
}

/* By when the share would end. */
static bool is_due(const struct nezha_path_view *a, const struct nezha_path_view *b, uint64_t bytes)
{
	return is_before(a, b, tag(a, bytes), tag(b, bytes));
}

/* One that has run dry goes first: were its rate right, that would hardly happen. */
static bool is_drier(const struct nezha_path_view *a, const struct nezha_path_view *b)
{
	return !a->in_flight && b->in_flight;
}

/* By when the share would end, dry ones first. */
static bool is_fairer(const struct nezha_path_view *a, const struct nezha_path_view *b, uint64_t bytes)
{
	return is_drier(a, b) || (!is_drier(b, a) && is_due(a, b, bytes));
}

/* By that with no more of the block than a path's room, dry ones first. */
static bool is_behind(const struct nezha_path_view *a, const struct nezha_path_view *b, uint64_t bytes)
{
	return is_drier(a, b) || (!is_drier(b, a) && is_before(a, b, near_tag(a, bytes), near_tag(b, bytes)));
}

static int pick_ecf(const struct nezha_path_view *paths, size_t count, const struct nezha_block_view *block)
{
	int fair = -1, due = -1, soonest = -1;
	double before = 0, rates = 0;

	for (size_t i = 0; i < count; i++) {
		if (!paths[i].up)
			continue;
		before += (double)paths[i].in_flight;
		rates += paths[i].rate;
		if (soonest < 0 || finish(&paths[i], block->bytes) < finish(&paths[soonest], block->bytes))
			soonest = (int)i;
		if (!has_room(&paths[i], block->bytes))
			continue;
		if (fair < 0 || is_behind(&paths[i], &paths[fair], block->bytes))
			fair = (int)i;
		if (due < 0 || is_fairer(&paths[i], &paths[due], block->bytes))
			due = (int)i;
	}
	if (fair < 0)
		return -1;
	/* One that still writes its last block does not keep the others waiting before its share ends, too. */
	if (!paths[fair].ready)
		fair = due;
	/* Would it be done, there and on its further hops, when all the rest of the call is? */
	if (finish(&paths[fair], block->bytes + UNSEEN_BYTES) + block->after <=
	    (before + (double)(block->bytes + block->waiting)) / rates)
		soonest = fair;
	else if (!has_room(&paths[soonest], block->bytes))
		return -1;
	/* With room, but not ready: its transport takes more in a moment, which is worth waiting for. */
	return paths[soonest].ready ? soonest : -1;
}

/* Seconds of work that each path has done at the end of the call if they share it by their rates. */
static double share_in_the_end(const struct nezha_path_view *paths, size_t count, const struct nezha_block_view *block)
{
	double bytes = (double)(block->bytes + block->waiting), rates = 0;

	for (size_t i = 0; i < count; i++) {
		if (!paths[i].up)
			continue;
		bytes += paths[i].share * paths[i].rate;
		rates += paths[i].rate;
	}
	return bytes / rates;
}

/* Of those that have not had all of their part the one whose share would end first.  A path that can take nothing keeps its part. */
static int pick_fixed(const struct nezha_path_view *paths, size_t count, const struct nezha_block_view *block)
{
	double end = share_in_the_end(paths, count, block);
	int best = -1;

	for (size_t i = 0; i < count; i++)
		if (paths[i].up && paths[i].ready && paths[i].share < end &&
		    (best < 0 || is_due(&paths[i], &paths[best], block->bytes)))
			best = (int)i;
	return best;
}

/* Less before it; on a tie, as where each block has arrived when the next one is dealt out, less given to it. */
static bool is_emptier(const struct nezha_path_view *a, const struct nezha_path_view *b)
{
	return a->in_flight < b->in_flight || (a->in_flight == b->in_flight && a->share < b->share);
}

static int pick_slice(const struct nezha_path_view *paths, size_t count)
{
	int best = -1;

	for (size_t i = 0; i < count; i++)
		if (paths[i].up && paths[i].ready && (best < 0 || is_emptier(&paths[i], &paths[best])))
			best = (int)i;
	return best;
}

int nezha_policy_pick(enum nezha_policy_kind kind, const struct nezha_path_view *paths, size_t count,
                      const struct nezha_block_view *block)
{
	switch (kind) {
	case NEZHA_POLICY_STATIC:
	case NEZHA_POLICY_SHARE:
		return pick_fixed(paths, count, block);
	case NEZHA_POLICY_SLICE:
		return pick_slice(paths, count);
	case NEZHA_POLICY_ECF:
		break;
	}
	return pick_ecf(paths, count, block);
}

const char *nezha_policy_name(enum nezha_policy_kind kind)
{
	static const char *const name[] = { "ecf", "static", "slice", "share" };
	return name[kind];
}
