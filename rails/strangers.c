/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/strangers.h"

#define SLOTS (2 * NEZHA_STRANGERS_MOST)     /* of the hash table: never full */

struct tally {
	uint32_t address, count;     /* count 0: free */
};

static struct tally *find(struct tally *tallies, uint32_t address)
{
	/* Multiplying by 2^32 / golden ratio spreads addresses of one subnet (Knuth, TAOCP 6.4). */
	size_t at = (address * 0x9e3779b9u) % SLOTS;

	while (tallies[at].count && tallies[at].address != address)
		at = (at + 1) % SLOTS;
	return &tallies[at];
}

/* Whether a goes rather than b. */
static bool rather(const struct nezha_stranger *a, uint32_t as, const struct nezha_stranger *b, uint32_t bs)
{
	if (a->ours != b->ours)
		return b->ours;
	if (as != bs)
		return as > bs;
	return a->since < b->since;
}

size_t nezha_strangers_choose(const struct nezha_stranger *strangers, size_t count)
{
	struct tally tallies[SLOTS] = { 0 };
	size_t chosen = 0;

	for (size_t i = 0; i < count; i++) {
		struct tally *tally = find(tallies, strangers[i].address);

		tally->address = strangers[i].address;
		tally->count++;
	}
	for (size_t i = 1; i < count; i++)
		if (rather(&strangers[i], find(tallies, strangers[i].address)->count, &strangers[chosen],
		           find(tallies, strangers[chosen].address)->count))
			chosen = i;
	return chosen;
}
