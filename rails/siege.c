/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/siege.h"

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/sieve.h"
#include "tuning/log.h"
#include "tuning/pause.h"

#define PAUSE_LEAST NEZHA_SEC
#define PAUSE_MOST (4 * NEZHA_SEC)   /* less than a neighbour may be without a path: rails/breakdown.c */
#define FORGET (10 * NEZHA_SEC)      /* a crowd that comes so long after the last one is another one */

/* One address more than there is room for: too many. */
#define ROOM (NEZHA_SIEVE_MOST + 1)

static size_t add(uint32_t *addresses, size_t count, uint32_t address)
{
	for (size_t i = 0; i < count; i++)
		if (addresses[i] == address)
			return count;
	if (address && count < ROOM)
		addresses[count++] = address;
	return count;
}

/* Who has to come in.  The lock is held. */
static size_t gather(const struct nezha_engine *engine, uint32_t addresses[ROOM])
{
	const struct nezha_inlink *inlink;
	size_t count = 0;

	LIST_FOREACH(inlink, &engine->inlinks, entry)
		for (int r = 0; r < NEZHA_RAILS_MAX; r++) {
			count = add(addresses, count, inlink->addresses[r]);
			count = add(addresses, count, inlink->from[r]);
		}
	return count;
}

/* False: all are let in as before. */
static bool keep_out(struct nezha_siege *siege, struct nezha_engine *engine, const int *listeners)
{
	uint32_t addresses[ROOM];
	size_t count;
	bool good = true;

	nezha_fairlock_take(&engine->lock);
	siege->known = engine->known;
	count = gather(engine, addresses);
	nezha_fairlock_give(&engine->lock);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		good = nezha_sieve_set(listeners[r], addresses, count) && good;
	return good;
}

void nezha_siege_begin(struct nezha_siege *siege, struct nezha_engine *engine, const int *listeners, uint64_t now)
{
	if (siege->on)
		return;
	if (now > siege->until + FORGET)
		siege->pause = 0;
	siege->on = true;
	siege->pause = nezha_pause_longer(siege->pause, PAUSE_LEAST, PAUSE_MOST);
	siege->until = now + siege->pause;
	if (keep_out(siege, engine, listeners))
		nezha_info("strangers crowd the rails: for %.0f s only the neighbours' hosts are let in", (double)siege->pause / NEZHA_SEC);
	else
		nezha_debug("strangers crowd the rails, and cannot be kept out: %m");
}

void nezha_siege_turn(struct nezha_siege *siege, struct nezha_engine *engine, const int *listeners, uint64_t now, uint64_t *next)
{
	bool more;

	if (!siege->on)
		return;
	if (siege->until <= now) {
		siege->on = false;
		for (uint32_t r = 0; r < engine->card.rail_count; r++)
			nezha_sieve_lift(listeners[r]);
		return;
	}
	nezha_fairlock_take(&engine->lock);
	more = engine->known != siege->known;
	nezha_fairlock_give(&engine->lock);
	if (more)
		keep_out(siege, engine, listeners);
	if (siege->until < *next)
		*next = siege->until;
}
