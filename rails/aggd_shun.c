/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/aggd_shun.h"

#include "rails/clock.h"
#include "tuning/pause.h"

#define PAUSE_LEAST (1 * NEZHA_SEC)
#define PAUSE_MOST (3600 * NEZHA_SEC)
#define GOOD (60 * NEZHA_SEC)            /* good for so long, and for as long as it was shunned: all is forgotten */

static bool is_forgotten(const struct aggd_shun_entry *entry, uint64_t now)
{
	return now >= entry->until + (entry->pause > GOOD ? entry->pause : GOOD);
}

/* Of `address`, else one that nobody needs any more, else a new one, else NULL. */
static struct aggd_shun_entry *entry_for(struct aggd_shun *shun, struct in_addr address, uint64_t now)
{
	struct aggd_shun_entry *unused = NULL;

	for (int i = 0; i < shun->count; i++) {
		if (shun->list[i].address.s_addr == address.s_addr)
			return &shun->list[i];
		if (is_forgotten(&shun->list[i], now))
			unused = &shun->list[i];
	}
	if (!unused && shun->count < AGGD_SHUN_MOST)
		unused = &shun->list[shun->count++];
	if (unused)
		*unused = (struct aggd_shun_entry){ .address = address };
	return unused;
}

bool aggd_shun_add(struct aggd_shun *shun, struct in_addr address, uint64_t now)
{
	struct aggd_shun_entry *entry = entry_for(shun, address, now);

	if (!entry)
		return false;
	entry->pause = !entry->until || is_forgotten(entry, now) ? 0 :
	               nezha_pause_longer(entry->pause, PAUSE_LEAST, PAUSE_MOST);
	entry->until = now + entry->pause;
	return true;
}

bool aggd_shun_has(const struct aggd_shun *shun, struct in_addr address, uint64_t now)
{
	bool full = shun->count == AGGD_SHUN_MOST;

	for (int i = 0; i < shun->count; i++) {
		if (shun->list[i].address.s_addr == address.s_addr)
			return now < shun->list[i].until;
		full = full && !is_forgotten(&shun->list[i], now);
	}
	return full;
}
