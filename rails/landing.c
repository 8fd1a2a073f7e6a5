/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/landing.h"

#include <string.h>

#include "rails/call.h"
#include "rails/engine.h"
#include "rails/wire.h"

void nezha_landing_check(struct nezha_landing *landing)
{
	uint8_t state;

	if (landing->mode == NEZHA_LAND_DROP || landing->mode == NEZHA_LAND_EAGER)
		return;
	state = landing->team->call.state[landing->block];
	if (landing->mode == NEZHA_LAND_FINAL ? state & NEZHA_BLOCK_FINAL
	    : state & (NEZHA_BLOCK_FOLDED | NEZHA_BLOCK_FINAL | NEZHA_BLOCK_LANDING))
		nezha_landing_drop(landing);
}

size_t nezha_landing_room(struct nezha_landing *landing, void **at)
{
	size_t left = landing->length - landing->done, room = NEZHA_SCRATCH;

	nezha_landing_check(landing);
	switch (landing->mode) {
	case NEZHA_LAND_FINAL:
	case NEZHA_LAND_STORE:
	case NEZHA_LAND_EAGER:
		*at = landing->base + landing->done;
		return left;
	case NEZHA_LAND_FOLD:
		*at = landing->scratch + landing->carry;
		room -= landing->carry;
		break;
	case NEZHA_LAND_DROP:
		*at = landing->scratch;
		break;
	}
	return left < room ? left : room;
}

/* Folds the whole elements of `have` bytes at `data`, the first of which is byte `from` of the block, leaving out what another
 * path has folded already.  Returns how many bytes these are. */
static uint32_t fold_whole(struct nezha_landing *landing, const char *data, uint32_t from, uint32_t have)
{
	struct nezha_call *call = &landing->team->call;
	uint32_t *folded = &call->folded[landing->block];
	uint32_t whole = have - have % nezha_call_element(call, landing->block);

	if (from + whole > *folded) {
		uint32_t skip = *folded - from;

		nezha_call_fold(call, landing->block, *folded, data + skip, whole - skip);
		*folded = from + whole;
	}
	return whole;
}

static void fold(struct nezha_landing *landing, size_t n)
{
	uint32_t have = landing->carry + (uint32_t)n;
	uint32_t whole = fold_whole(landing, landing->scratch, landing->done - landing->carry, have);

	landing->carry = have - whole;
	memmove(landing->scratch, landing->scratch + whole, landing->carry);
}

void nezha_landing_advance(struct nezha_landing *landing, size_t n)
{
	if (landing->mode == NEZHA_LAND_FOLD)
		fold(landing, n);
	landing->done += (uint32_t)n;
}

void nezha_landing_put(struct nezha_landing *landing, const char *data, size_t n)
{
	nezha_landing_check(landing);
	/* Most often elements are whole at both ends: then they are folded where they lie. */
	if (landing->mode == NEZHA_LAND_FOLD && !landing->carry) {
		uint32_t whole = fold_whole(landing, data, landing->done, (uint32_t)n);

		landing->done += whole;
		data += whole;
		n -= whole;
	} else if (landing->mode == NEZHA_LAND_DROP) {
		landing->done += (uint32_t)n;
		return;
	}
	while (n) {
		void *at = NULL;
		size_t piece = nezha_landing_room(landing, &at);

		piece = piece < n ? piece : n;
		memcpy(at, data, piece);
		nezha_landing_advance(landing, piece);
		data += piece;
		n -= piece;
	}
}
