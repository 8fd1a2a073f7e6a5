/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/sharp_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "rails/engine.h"
#include "tuning/status.h"

#define NO 16u                   /* beside NEZHA_SHARP_VOTE: a rank says no */

/* By the links alone, and without a note: while SHARP's rail is being attached one rank may have it and another one not. */
static int reduce(struct nezha_team *team, void *values, size_t count, enum nezha_type type, enum nezha_op op)
{
	const struct nezha_way way = { .block = NEZHA_BLOCK_MIN, .rails = (1u << team->common) - 1, .silent = true };

	return nezha_allreduce(team, values, values, count, type, op, &way);
}

/* What any rank says. */
static int step(struct nezha_team *team, uint64_t said[3])
{
	return reduce(team, said, 3, NEZHA_UINT64, NEZHA_BOR);
}

static int bcast(struct nezha_team *team, int root, void *buffer, size_t bytes)
{
	if (team->rank != root)
		memset(buffer, 0, bytes);
	return reduce(team, buffer, bytes, NEZHA_UINT8, NEZHA_BOR);
}

/* `row`: room for `bytes` of each rank, all zero. */
static int gather(struct nezha_team *team, int root, const void *from, void *to, size_t bytes, char *row)
{
	size_t all = bytes * (size_t)team->ranks;
	int rc;

	memcpy(row + bytes * (size_t)team->rank, from, bytes);
	rc = reduce(team, row, all, NEZHA_UINT8, NEZHA_BOR);
	if (rc == NEZHA_OK && team->rank == root)
		memcpy(to, row, all);
	return rc;
}

int nezha_sharp_exchange(struct nezha_team *team, enum nezha_sharp_kind kind, int root, void *from, void *to, size_t bytes)
{
	uint64_t what = (uint64_t)root << 32 | (uint32_t)bytes, mine[3] = { kind, what, ~what }, said[3];
	char *row = kind == NEZHA_SHARP_GATHER ? calloc((size_t)team->ranks, bytes + 1) : NULL;
	int rc;

	/* Without memory it is at the next vote that the others see it. */
	if (kind == NEZHA_SHARP_GATHER && !row)
		return NEZHA_ERR_NOMEM;
	memcpy(said, mine, sizeof said);
	rc = step(team, said);
	if (rc == NEZHA_OK && memcmp(said, mine, sizeof said))
		rc = NEZHA_ERR_PROTOCOL;
	if (rc == NEZHA_OK && bytes && kind == NEZHA_SHARP_BCAST)
		rc = bcast(team, root, from, bytes);
	if (rc == NEZHA_OK && bytes && kind == NEZHA_SHARP_GATHER)
		rc = gather(team, root, from, to, bytes, row);
	free(row);
	return rc;
}

int nezha_sharp_fold(struct nezha_team *team, enum nezha_op op, uint64_t *value)
{
	return reduce(team, value, 1, NEZHA_UINT64, op);
}

/* Goes around until no rank is in one of the library's calls any more: those fail on the way. */
bool nezha_sharp_vote(struct nezha_team *team, enum nezha_sharp_say say, int *first, char *why, size_t size)
{
	bool yes = say == NEZHA_SHARP_YES;
	uint64_t said[3], least = yes ? UINT64_MAX : (uint64_t)say << 32 | (uint32_t)team->rank;

	do {
		memset(said, 0, sizeof said);
		said[0] = NEZHA_SHARP_VOTE | (yes ? 0 : NO);
		if (step(team, said) != NEZHA_OK)
			return false;
	} while (said[0] & ~(uint64_t)(NEZHA_SHARP_VOTE | NO));
	if (!(said[0] & NO))
		return true;
	if (!first || nezha_sharp_fold(team, NEZHA_MIN, &least) != NEZHA_OK)
		return false;
	*first = (int)(least & INT32_MAX);
	bcast(team, *first, why, size);
	why[size - 1] = '\0';
	return false;
}
