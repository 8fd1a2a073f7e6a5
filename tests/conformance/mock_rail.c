/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/mock_rail.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rails/call.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

/* What the ranks have contributed to one call; two calls at a time can be under way. */
struct board {
	unsigned call;                       /* number of the call in the team */
	int posted;                          /* ranks that have contributed */
	char *input[WORLD_MOST];             /* copies of the whole vectors */
};

struct mock_hub {
	pthread_mutex_t lock;
	int ranks;
	enum mock_fault fault;
	struct board boards[2];
};

struct mock_hub *mock_hub_create(int ranks, enum mock_fault fault)
{
	struct mock_hub *hub = calloc(1, sizeof *hub);

	pthread_mutex_init(&hub->lock, NULL);
	hub->ranks = ranks;
	hub->fault = fault;
	return hub;
}

static void clear(struct board *board)
{
	for (int k = 0; k < WORLD_MOST; k++)
		free(board->input[k]);
	memset(board, 0, sizeof *board);
}

void mock_hub_destroy(struct mock_hub *hub)
{
	clear(&hub->boards[0]);
	clear(&hub->boards[1]);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

void mock_rail_init(struct mock_rail *rail, struct mock_hub *hub, int rank)
{
	*rail = (struct mock_rail){ .hub = hub, .rank = rank };
}

void mock_rail_end(struct mock_rail *rail)
{
	free(rail->open);
}

static struct board *board_of(struct mock_rail *rail)
{
	struct board *board = &rail->hub->boards[rail->op % 2];

	if (board->call != rail->op) {
		clear(board);
		board->call = rail->op;
	}
	return board;
}

static int post(void *state, struct nezha_call *call, uint32_t first, uint32_t count)
{
	struct mock_rail *rail = state;
	struct mock_hub *hub = rail->hub;
	struct board *board;

	rail->calls++;
	rail->op = call->op;
	rail->count = 0;
	rail->cut = false;
	if (hub->fault == MOCK_REFUSES || (hub->fault == MOCK_REFUSES_ONE && rail->rank == 1))
		return NEZHA_ERR_UNSUPPORTED;
	rail->first = first;
	rail->count = count;
	rail->open = realloc(rail->open, count);
	memset(rail->open, true, count);
	pthread_mutex_lock(&hub->lock);
	board = board_of(rail);
	board->input[rail->rank] = malloc(call->grid.bytes);
	memcpy(board->input[rail->rank], call->sendbuf, call->grid.bytes);
	board->posted++;
	pthread_mutex_unlock(&hub->lock);
	return NEZHA_OK;
}

/* The ring's own fold order, so that the bits are the ring's. */
static void reduce(struct mock_rail *rail, struct board *board, struct nezha_call *call, uint32_t b)
{
	uint64_t at = nezha_grid_offset(&call->grid, b);
	uint32_t length = nezha_grid_length(&call->grid, b);
	int n = rail->hub->ranks, start = (int)(b % (uint32_t)n) + 1;
	char *out = call->recvbuf + at;

	memcpy(out, board->input[start % n] + at, length);
	for (int k = 1; k < n; k++)
		call->kernel(out, out, board->input[(start + k) % n] + at, length / call->element);
}

static bool gives_back(const struct mock_rail *rail, uint32_t b)
{
	switch (rail->hub->fault) {
	case MOCK_RETURNS_ALL:
		return true;
	case MOCK_CUTS:
		return rail->rank == 0;
	case MOCK_RETURNS_SOME:
		return (b + (unsigned)rail->rank) % 3 == 0 || b % 5 == 4;
	default:
		return false;
	}
}

static void settle(struct mock_rail *rail, struct nezha_call *call, uint32_t b, bool final)
{
	rail->open[b - rail->first] = false;
	rail->finals += final;
	if (final)
		nezha_call_final(call, b);
	else
		nezha_call_return(call, b);
}

static void progress(void *state, struct nezha_call *call)
{
	struct mock_rail *rail = state;
	bool complete;

	if (!rail->count || (rail->hub->fault == MOCK_SILENT && rail->rank == 0) ||
	    (rail->hub->fault == MOCK_CUTS && rail->rank != 0))
		return;
	pthread_mutex_lock(&rail->hub->lock);
	complete = board_of(rail)->posted == rail->hub->ranks;
	pthread_mutex_unlock(&rail->hub->lock);
	for (uint32_t b = rail->first; b < rail->first + rail->count; b++) {
		if (!rail->open[b - rail->first])
			continue;
		if (gives_back(rail, b)) {
			settle(rail, call, b, false);
		} else if (complete && !(rail->hub->fault == MOCK_SILENT && rail->rank == 1)) {
			reduce(rail, board_of(rail), call, b);
			settle(rail, call, b, true);
		} else if (rail->hub->fault == MOCK_SILENT && rail->rank == 1) {
			settle(rail, call, b, false);
		}
	}
}

/* As if what a returned block is asked for with had shown all connections to be dead. */
static void cut(struct nezha_inlink *left)
{
	for (int r = 0; r < NEZHA_RAILS_MAX; r++)
		if (left->paths[r].up)
			nezha_inlink_path_fail(&left->paths[r], "the mock rail says so");
}

static void cancel(void *state, struct nezha_call *call, uint32_t b)
{
	struct mock_rail *rail = state;

	if (rail->hub->fault == MOCK_CUTS && rail->rank == 1 && !rail->cut) {
		rail->cut = true;
		cut(call->team->left);
	}
	if (b - rail->first < rail->count && rail->open[b - rail->first])
		settle(rail, call, b, false);
}

static bool finish(void *state, struct nezha_call *call)
{
	struct mock_rail *rail = state;

	(void)call;
	rail->count = 0;
	return rail->hub->fault == MOCK_GOOD;
}

/* All ranks ask equally often. */
static uint64_t token(void *state)
{
	struct mock_rail *rail = state;

	return rail->hub->fault == MOCK_LEAVES && rail->rank == 1 && rail->asked++ / MOCK_STAYS % 2 ? 0 : 4711;
}

const struct nezha_collective_ops mock_token_ops = {
	.name = "mock", .token = token, .post = post, .progress = progress, .cancel = cancel, .finish = finish,
};

const struct nezha_collective_ops mock_rail_ops = {
	.name = "mock", .post = post, .progress = progress, .cancel = cancel, .finish = finish,
};
