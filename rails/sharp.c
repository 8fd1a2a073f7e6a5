/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/sharp.h"

#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define HANGS (2 * NEZHA_SEC)            /* a request without an end, though all ranks are in the call */

/* ---- slots ---- */

char *nezha_sharp_from(const struct nezha_sharp *sharp, int i)
{
	return sharp->staging + (size_t)(2 * i) * NEZHA_SHARP_BLOCK;
}

char *nezha_sharp_to(const struct nezha_sharp *sharp, int i)
{
	return sharp->staging + (size_t)(2 * i + 1) * NEZHA_SHARP_BLOCK;
}

int nezha_sharp_begin(struct nezha_sharp *sharp, int i, size_t elements, int type, int operation, size_t bytes)
{
	struct nezha_sharp_reduce what = {
		.from = { .at = nezha_sharp_from(sharp, i), .bytes = bytes, .registration = sharp->registration },
		.to = { .at = nezha_sharp_to(sharp, i), .bytes = bytes, .registration = sharp->registration },
		.type = type, .elements = elements, .operation = operation,
	};
	int rc = sharp->api->allreduce(sharp->group, &what, &sharp->slots[i].request);

	if (rc < 0)
		sharp->slots[i].request = NULL;
	return rc;
}

bool nezha_sharp_ended(struct nezha_sharp *sharp, int i)
{
	sharp->api->progress(sharp->context);
	if (!sharp->api->test(sharp->slots[i].request))
		return false;
	sharp->api->release(sharp->slots[i].request);
	sharp->slots[i].request = NULL;
	return true;
}

static bool under_way(const struct nezha_sharp *sharp)
{
	for (int i = 0; i < NEZHA_SHARP_SLOTS; i++)
		if (sharp->slots[i].request)
			return true;
	return false;
}

/* ---- the end of blocks ---- */

static void settle(struct nezha_sharp *sharp, uint32_t b, bool final)
{
	sharp->settled[b - sharp->first] = true;
	sharp->open--;
	sharp->finals += final;
	if (final)
		nezha_call_final(&sharp->team->call, b);
	else
		nezha_call_return(&sharp->team->call, b);
}

/* The team goes on without it; what is still under way keeps its memory, and nobody in this process uses SHARP again. */
static void fail(struct nezha_sharp *sharp, const char *cause)
{
	bool hangs = under_way(sharp);

	if (!sharp->lost)
		nezha_log(hangs && !sharp->engine->sharp_dead ? NEZHA_LOG_WARN : NEZHA_LOG_INFO,
		          "sharp is given up%s: %s; the other rails do its work", hangs ? " by this process" : "", cause);
	sharp->lost = true;
	sharp->engine->sharp_dead = sharp->engine->sharp_dead || hangs;
	sharp->engine->stats[NEZHA_RAILS_MAX + sharp->engine->config.aggregator_count].failures++;
	for (uint32_t b = sharp->first; b < sharp->first + sharp->count && sharp->open; b++)
		if (!sharp->settled[b - sharp->first])
			settle(sharp, b, false);
}

/* ---- a call ---- */

static uint64_t token(void *rail)
{
	const struct nezha_sharp *sharp = rail;

	return sharp->lost || sharp->engine->sharp_dead ? 0 : NEZHA_SHARP_TOKEN;
}

/* A single block stays with the links: what they make final shows that all ranks are in the call (see watch).  The order in which
 * the switch adds is its own, so where runs must agree no floats are given to it. */
static bool takes(void *rail, const struct nezha_call *call)
{
	const struct nezha_sharp *sharp = rail;
	int type = nezha_sharp_type(call->type), operation = nezha_sharp_operation(call->reduction);

	if (sharp->engine->config.reproducible && call->type >= NEZHA_FLOAT32)
		return false;
	return call->grid.blocks > 1 && call->grid.block <= NEZHA_SHARP_BLOCK && operation != NEZHA_SHARP_NONE &&
	       sharp->types >> type & 1 && sharp->operations >> operation & 1;
}

static void count_sent(struct nezha_sharp *sharp, uint64_t bytes)
{
	uint32_t at = NEZHA_RAILS_MAX + sharp->engine->config.aggregator_count;

	sharp->engine->stats[at].bytes_sent += bytes;
	sharp->team->last_bytes[at] += bytes;
}

/* Begins what there are free slots for, in the same order on all ranks. */
static void begin_some(struct nezha_sharp *sharp)
{
	const struct nezha_call *call = &sharp->team->call;

	while (sharp->open && sharp->next < sharp->first + sharp->count) {
		uint32_t b = sharp->next, bytes = nezha_call_length(call, b);
		int i = (int)((b - sharp->first) % NEZHA_SHARP_SLOTS), rc;

		if (sharp->slots[i].request)
			return;
		memcpy(nezha_sharp_from(sharp, i), call->sendbuf + nezha_grid_offset(&call->grid, b), bytes);
		rc = nezha_sharp_begin(sharp, i, bytes / call->element, nezha_sharp_type(call->type),
		                       nezha_sharp_operation(call->reduction), bytes);
		if (rc < 0) {
			fail(sharp, sharp->api->text(rc));
			return;
		}
		sharp->slots[i].block = b;
		sharp->next++;
		count_sent(sharp, bytes);
	}
}

static void end_some(struct nezha_sharp *sharp)
{
	const struct nezha_call *call = &sharp->team->call;

	for (int i = 0; i < NEZHA_SHARP_SLOTS; i++) {
		uint32_t b = sharp->slots[i].block;

		if (!sharp->slots[i].request || !nezha_sharp_ended(sharp, i))
			continue;
		memcpy(nezha_call_place(call, b), nezha_sharp_to(sharp, i), nezha_call_length(call, b));
		sharp->waited = 0;
		settle(sharp, b, true);
		if (!sharp->open)
			return;
	}
}

/* No progress is not a hang: a rank may be late.  But once anything that others make final is so, all ranks are in the call. */
static void watch(struct nezha_sharp *sharp)
{
	uint64_t now = nezha_now();

	if (sharp->team->call.finals > sharp->finals)
		sharp->waited += nezha_looked(sharp->looked, now);
	sharp->looked = now;
	if (sharp->waited > HANGS)
		fail(sharp, "a request does not come to its end");
}

static int post(void *rail, struct nezha_call *call, uint32_t first, uint32_t count)
{
	struct nezha_sharp *sharp = rail;
	bool *settled;

	(void)call;
	if (count > sharp->room) {
		settled = realloc(sharp->settled, count * sizeof *settled);
		if (!settled) {
			sharp->count = 0;
			fail(sharp, "no memory for a call");
			return NEZHA_ERR_NOMEM;
		}
		sharp->settled = settled;
		sharp->room = count;
	}
	memset(sharp->settled, 0, count * sizeof *sharp->settled);
	sharp->first = sharp->next = first;
	sharp->count = sharp->open = count;
	sharp->finals = 0;
	sharp->waited = 0;
	sharp->looked = nezha_now();
	begin_some(sharp);
	return NEZHA_OK;
}

static void progress(void *rail, struct nezha_call *call)
{
	struct nezha_sharp *sharp = rail;

	(void)call;
	if (sharp->open)
		end_some(sharp);
	if (sharp->open)
		begin_some(sharp);
	if (sharp->open)
		watch(sharp);
}

/* A neighbour has got its blocks back: so it is lost there, and will not finish anything. */
static void cancel(void *rail, struct nezha_call *call, uint32_t b)
{
	struct nezha_sharp *sharp = rail;

	(void)call;
	if (sharp->open && b - sharp->first < sharp->count && !sharp->settled[b - sharp->first])
		fail(sharp, "a neighbour has lost it");
}

static bool finish(void *rail, struct nezha_call *call)
{
	struct nezha_sharp *sharp = rail;

	(void)call;
	/* A call that ends with an error: its blocks are nobody's any more. */
	if (sharp->open) {
		sharp->open = sharp->count = 0;
		fail(sharp, "a call has failed");
	}
	return !sharp->lost;
}

const struct nezha_collective_ops nezha_sharp_rail = {
	.name = "sharp", .token = token, .takes = takes, .post = post, .progress = progress, .cancel = cancel, .finish = finish,
};
