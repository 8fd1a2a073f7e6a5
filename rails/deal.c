/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/deal.h"

#include <limits.h>

#include "rails/ack_delay.h"
#include "rails/clock.h"
#include "rails/policy.h"
#include "rails/probing.h"
#include "rails/share.h"

#define HOP_SECONDS 50e-6               /* what a hop costs besides the bytes */
#define PART_RATE 1e9                   /* bytes per second of a path that had all of a call, policy share: any will do */

/* What the policy takes for the path's rate, if it does not fix the path's part of the call. */
static double weight(const struct nezha_path *path)
{
	switch (path->link->engine->config.policy) {
	case NEZHA_POLICY_STATIC:
		return path->nominal;
	case NEZHA_POLICY_ECF:
		/* What is held back elsewhere would not show at the host that too much was hoped of it. */
		if (!nezha_ack_delay_is_away(&path->ack_delay))
			return nezha_estimator_hoped(&path->estimator);
		break;
	case NEZHA_POLICY_SHARE:
	case NEZHA_POLICY_SLICE:
		break;
	}
	return path->estimator.rate;
}

/* The rails that the team's call is restricted to; if it has none of them left, all. */
static uint32_t allowed(const struct nezha_link *link, const struct nezha_team *team)
{
	uint32_t rails = team->call.rails;

	for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
		if (link->paths[r].up && rails >> r & 1)
			return rails;
	return UINT32_MAX;
}

/* Policy share: only the paths that have a part of the call, at rates in these proportions, as long as one of them is
 * up; else all, as they are.  The rates do not follow what is measured in the midst of a call: by them is reckoned what each has had. */
static void view_parts(const struct nezha_team *team, struct nezha_path_view *view, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any = any || (view[i].up && team->part[i] > 0);
	for (size_t i = 0; any && i < count; i++) {
		view[i].up = view[i].up && team->part[i] > 0;
		view[i].rate = view[i].up ? PART_RATE * team->part[i] : view[i].rate;
	}
}

/* Bytes given to the path and not acknowledged. */
static uint64_t undelivered(const struct nezha_path *path)
{
	return path->written - path->last.acked + path->out.payload_left + nezha_probing_bytes(path);
}

static size_t views(const struct nezha_link *link, const struct nezha_team *team, struct nezha_path_view *view)
{
	size_t count = link->engine->card.rail_count;
	uint32_t rails = allowed(link, team);

	for (size_t r = 0; r < count; r++) {
		const struct nezha_path *path = &link->paths[r];

		view[r] = (struct nezha_path_view){
			.up = path->up && rails >> r & 1,
			.ready = path->ready && nezha_path_is_free(path),
			.rate = weight(path),
			.share = path->share,
			.in_flight = undelivered(path) - nezha_ack_delay_bytes(&path->ack_delay, &path->last, path->estimator.rate),
		};
	}
	if (link->share)
		view_parts(team, view, count);
	return count;
}

/* How long the block still travels after this hop, on the fastest rails. */
static double time_after(const struct nezha_path_view *view, size_t count, const struct nezha_tx *tx)
{
	int hops = nezha_call_hops_left(&tx->team->call, tx);
	double best = 1;

	for (size_t i = 0; i < count; i++)
		if (view[i].up && view[i].rate > best)
			best = view[i].rate;
	return hops > 0 ? hops * (tx->length / best + HOP_SECONDS) : 0;
}

void nezha_deal_expect_less(struct nezha_team *team, uint64_t bytes)
{
	if (bytes > team->expected)
		bytes = team->expected;
	team->expected -= bytes;
	team->right->expected -= bytes;
}

/* Of a call's blocks those go first that have the longest way before them: else, where one link is slower than the others,
 * blocks that still have to pass it twice wait behind ones that end here.  The note is never what a call waits for. */
static int urgency(const struct nezha_tx *tx)
{
	const struct nezha_call *call = &tx->team->call;

	return nezha_call_is_note(call, tx->block) ? INT_MAX : nezha_call_hops_left(call, tx);
}

/* Other calls are never overtaken. */
static void enqueue(struct nezha_link *link, struct nezha_tx *tx)
{
	struct nezha_tx *before = TAILQ_LAST(&link->queue, nezha_tx_list);

	while (before && before->team == tx->team && urgency(before) < urgency(tx))
		before = TAILQ_PREV(before, nezha_tx_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&link->queue, before, tx, entry);
	else
		TAILQ_INSERT_HEAD(&link->queue, tx, entry);
}

void nezha_deal_block(struct nezha_link *link, struct nezha_tx *tx)
{
	tx->where = NEZHA_TX_QUEUED;
	enqueue(link, tx);
	link->queued += tx->length;
	if (!tx->counted) {
		tx->counted = true;
		nezha_deal_expect_less(tx->team, tx->length);
	}
}

static void unqueue(struct nezha_link *link, struct nezha_tx *tx)
{
	TAILQ_REMOVE(&link->queue, tx, entry);
	link->queued -= tx->length;
	tx->where = NEZHA_TX_IDLE;
}

static struct nezha_tx *first_useful(struct nezha_link *link)
{
	struct nezha_tx *tx;

	while ((tx = TAILQ_FIRST(&link->queue)) && !nezha_call_tx_useful(&tx->team->call, tx))
		unqueue(link, tx);
	return tx;
}

/* A note goes where a block would: by itself it is so short that a slow path which is idle seems the best, and has to be woken for it. */
static uint32_t length_for_pick(const struct nezha_tx *tx)
{
	const struct nezha_call *call = &tx->team->call;

	return nezha_call_is_note(call, tx->block) ? call->grid.block : tx->length;
}

struct nezha_tx *nezha_deal_next(struct nezha_path *path, bool *other)
{
	struct nezha_link *link = path->link;
	struct nezha_path_view view[NEZHA_RAILS_MAX];
	struct nezha_tx *tx = first_useful(link);
	struct nezha_block_view block;
	size_t count;
	int pick;

	*other = false;
	if (!tx)
		return NULL;
	count = views(link, tx->team, view);
	block = (struct nezha_block_view){
		.bytes = length_for_pick(tx),
		.waiting = link->queued - tx->length + link->expected,
		.after = time_after(view, count, tx),
	};
	pick = nezha_policy_pick(link->engine->config.policy, view, count, &block);
	*other = pick >= 0 && pick != path->rail;
	if (pick != path->rail)
		return NULL;
	unqueue(link, tx);
	path->share += tx->length / view[path->rail].rate;
	nezha_overdue_promise(&path->overdue, nezha_now(), undelivered(path) + tx->length, path->estimator.rate);
	return tx;
}

void nezha_deal_forget(struct nezha_link *link, struct nezha_team *team)
{
	struct nezha_tx *tx, *next;

	for (tx = TAILQ_FIRST(&link->queue); tx; tx = next) {
		next = TAILQ_NEXT(tx, entry);
		if (tx->team == team)
			unqueue(link, tx);
	}
	nezha_deal_expect_less(team, team->expected);
}

void nezha_deal_anew(struct nezha_link *link)
{
	for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
		link->paths[r].share = 0;
}

/* Bytes per second. */
static double rate_of_all(const struct nezha_link *link)
{
	double rate = 0;

	for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
		rate += link->paths[r].up ? link->paths[r].estimator.rate : 0;
	return rate;
}

static void probe_again(struct nezha_link *link, uint64_t bytes)
{
	bool choice = nezha_link_paths_up(link) > 1;
	double rate = rate_of_all(link);

	for (uint32_t r = 0; r < link->engine->card.rail_count; r++) {
		struct nezha_path *path = &link->paths[r];

		if (nezha_probe_is_due(&path->probe, &path->estimator, rate, path->up && choice))
			nezha_probing_again(path);
		nezha_probe_count(&path->probe, &path->estimator, bytes);
	}
}

/* Policy share: the parts of the call that begins. */
static void share_out(struct nezha_team *team, uint64_t bytes)
{
	const struct nezha_link *link = team->right;
	struct nezha_share_time now[NEZHA_RAILS_MAX];
	uint32_t up = 0, rails = link->engine->card.rail_count;

	for (uint32_t r = 0; r < rails; r++) {
		const struct nezha_path *path = &link->paths[r];
		double hop = path->last.rtt * 1e-6 / 2 + HOP_SECONDS;

		now[r] = (struct nezha_share_time){ 2 * (team->ranks - 1) * hop, 1 / weight(path) };
		up |= (uint32_t)path->up << r;
	}
	nezha_share_call(link->share, now, rails, up & allowed(link, team), bytes, team->part);
}

void nezha_deal_expect(struct nezha_team *team, uint64_t bytes)
{
	if (!team->right->expected)
		nezha_deal_anew(team->right);
	team->expected = bytes;
	team->right->expected += bytes;
	if (team->right->share)
		share_out(team, bytes);
	if (team->right->share || team->engine->config.policy == NEZHA_POLICY_ECF)
		probe_again(team->right, bytes);
}
