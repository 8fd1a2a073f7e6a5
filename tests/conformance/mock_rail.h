/* SPDX-License-Identifier: BSD-3-Clause
 * A collective rail made of shared memory, with faults to order: proves that the engine's side of rail.h holds. */
#ifndef NEZHA_TESTS_MOCK_RAIL_H
#define NEZHA_TESTS_MOCK_RAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/rail.h"

enum mock_fault {
	MOCK_GOOD,
	MOCK_REFUSES,         /* post fails on every rank */
	MOCK_REFUSES_ONE,     /* ... on rank 1 only */
	MOCK_RETURNS_ALL,     /* every block comes back, on every rank */
	MOCK_RETURNS_SOME,    /* blocks come back on some ranks while others have the final */
	MOCK_SILENT,          /* one rank's progress never finishes anything: only cancel does */
	MOCK_CUTS,            /* rank 0 gets all back, the others hold on until they are asked; rank 1 then finds its left
	                       * neighbour's connections dead, once in each call */
	MOCK_LEAVES,          /* of those with a token: rank 1 has none in every other four calls */
	MOCK_FAULTS
};

#define MOCK_STAYS 8      /* MOCK_LEAVES: so many times rank 1's token is there when it is asked for, then not so many times */

struct mock_hub;

/* One per rank and team. */
struct mock_rail {
	struct mock_hub *hub;
	int rank;
	unsigned calls;       /* calls begun on this rank */
	unsigned op;          /* the team's number of the last one */
	unsigned asked;       /* how often its token was */
	uint32_t finals;      /* blocks that it has finished */
	uint32_t first, count;
	bool cut;             /* MOCK_CUTS: it has in this call */
	bool *open;           /* per block of the call: neither final nor returned yet */
};

struct mock_hub *mock_hub_create(int ranks, enum mock_fault fault);
void mock_hub_destroy(struct mock_hub *hub);
void mock_rail_init(struct mock_rail *rail, struct mock_hub *hub, int rank);
void mock_rail_end(struct mock_rail *rail);

extern const struct nezha_collective_ops mock_rail_ops, mock_token_ops;  /* the latter: the team says which blocks */

#endif
