/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/hierarchy.h"

#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/nodecall.h"
#include "rails/pace.h"
#include "rails/pieces.h"
#include "rails/place.h"
#include "tuning/log.h"
#include "tuning/pause.h"
#include "tuning/status.h"

#define SHARED_MOST (512ull << 20)      /* bytes that a process makes for all its communicators */
#define WORK_MOST (40 * NEZHA_USEC)     /* moves between two turns on the rails: a socket's unsent bytes last so long at 25 Gbit/s */
/* So many bytes of a gradual piece are folded before what has to become final, and so many blocks for each node: with more the rails
 * would not get the processors, with less they would run dry. */
#define AHEAD (1536u << 10)
#define AHEAD_BLOCKS 2
_Static_assert(AHEAD >= 2 * NEZHA_GRANT_MOST && AHEAD_BLOCKS >= 2, "what struct nezha_way wants");
#define GONE_AFTER NEZHA_SEC            /* without a move: whether the processes of the other ranks still live */

#define NO_SHARED_MEMORY "no memory can be shared with the ranks of the node"
#define TEXT_OF(macro) TEXT(macro)
#define TEXT(value) #value
#define TOO_MANY_RANKS "more than " TEXT_OF(NEZHA_NODE_RANKS_MAX) " ranks of a node do not share memory"

struct nezha_hierarchy {
	struct nezha_engine *engine;
	struct nezha_place place;
	struct nezha_node *node;            /* NULL: there is one rank on this node */
	struct nezha_team *ring;            /* NULL: no carrier */
	uint64_t sent[NEZHA_STATS_MAX];     /* in the last call */
	uint64_t looked;                    /* ns: when it was seen who lives, outside of calls */
	struct nezha_pace pace;             /* of MPI's progress, between turns on the rails */
	bool broken;
};

/* One allreduce of it. */
struct whole {
	struct nezha_hierarchy *hierarchy;
	const struct nezha_way *way;
	enum nezha_type type;
	enum nezha_op op;
	const char *sendbuf;
	char *recvbuf;
	struct nezha_pieces pieces;
	struct nezha_nodecall local;
	uint64_t done;                      /* bytes of this carrier's piece that were reduced */
	uint64_t moved, looked;             /* ns: since when there is no move, 0: there was one; when it was seen who lives */
	uint64_t pause;                     /* ns: how long to sleep, and between two looks at MPI, while there is no move */
};

/* ---- opening ---- */

/* Counts what this process makes; false: it is enough. */
static bool take_memory(struct nezha_engine *engine, size_t bytes)
{
	bool fits;

	nezha_fairlock_take(&engine->lock);
	fits = bytes && engine->shared_memory + bytes <= SHARED_MOST;
	if (fits)
		engine->shared_memory += bytes;
	nezha_fairlock_give(&engine->lock);
	return fits;
}

static void give_memory_back(struct nezha_engine *engine, size_t bytes)
{
	nezha_fairlock_take(&engine->lock);
	engine->shared_memory -= bytes;
	nezha_fairlock_give(&engine->lock);
}

static int make_node(struct nezha_hierarchy *h, struct nezha_node_offer *offer)
{
	uint32_t cell = nezha_node_cell(h->place.ranks, h->place.carriers);
	size_t length;
	int status;

	if (!cell) {
		nezha_lack_note(h->engine->config.lack, TOO_MANY_RANKS, 0);
		nezha_info("%d ranks of a communicator are on this node: more than %d do not share memory", h->place.ranks,
		           NEZHA_NODE_RANKS_MAX);
		return NEZHA_ERR_UNSUPPORTED;
	}
	length = nezha_node_length(h->place.ranks, h->place.carriers, cell);
	if (!take_memory(h->engine, length)) {
		nezha_lack_note(h->engine->config.lack, NO_SHARED_MEMORY, ENOMEM);
		nezha_info("no more memory is shared: %llu MiB are for communicators with several ranks on a node",
		           (unsigned long long)(SHARED_MOST >> 20));
		return NEZHA_ERR_NOMEM;
	}
	status = nezha_node_make(h->place.ranks, h->place.carriers, cell, offer, &h->node);
	if (status != NEZHA_OK) {
		nezha_lack_note(h->engine->config.lack, NO_SHARED_MEMORY, errno);
		give_memory_back(h->engine, length);
	}
	return status;
}

int nezha_hierarchy_create(struct nezha_engine *engine, const int *node, int ranks, int nodes, int rank,
                           struct nezha_hierarchy **out, struct nezha_node_offer *offer)
{
	struct nezha_hierarchy *h = calloc(1, sizeof *h);
	int status = NEZHA_ERR_NOMEM;

	memset(offer, 0, sizeof *offer);
	if (!h)
		return status;
	h->engine = engine;
	status = nezha_place_make(node, ranks, nodes, rank, &h->place);
	if (status == NEZHA_OK && h->place.ranks > 1 && !h->place.local)
		status = make_node(h, offer);
	if (status != NEZHA_OK) {
		nezha_hierarchy_destroy(h);
		return status;
	}
	*out = h;
	return NEZHA_OK;
}

int nezha_hierarchy_host(const struct nezha_hierarchy *hierarchy)
{
	return hierarchy->place.here[0];
}

int nezha_hierarchy_leader(const struct nezha_hierarchy *hierarchy)
{
	return hierarchy->place.ring[0];
}

static bool is_carrier(const struct nezha_hierarchy *h)
{
	return h->place.local < h->place.carriers;
}

/* The ring of this carrier's index. */
static int create_ring(struct nezha_hierarchy *h, const struct nezha_card *cards, uint64_t id)
{
	struct nezha_card *members = malloc((size_t)h->place.nodes * sizeof *members);
	int status;

	if (!members) {
		nezha_lack_note(h->engine->config.lack, "a ring's memory", ENOMEM);
		return NEZHA_ERR_NOMEM;
	}
	for (int k = 0; k < h->place.nodes; k++)
		members[k] = cards[h->place.ring[k]];
	status = nezha_team_create(h->engine, members, h->place.nodes, h->place.position, id, &h->ring);
	free(members);
	return status;
}

void nezha_hierarchy_connect(struct nezha_hierarchy *h, const struct nezha_card *cards,
                             const struct nezha_node_offer *offer, uint64_t id, double timeout_s, uint32_t *rails_ok)
{
	const struct nezha_place *place = &h->place;

	*rails_ok = 0;
	if (place->ranks > 1 && place->local &&
	    nezha_node_join(offer, place->ranks, place->carriers, nezha_node_cell(place->ranks, place->carriers),
	                    place->local, &h->node) != NEZHA_OK) {
		nezha_lack_note(h->engine->config.lack, NO_SHARED_MEMORY, errno);
		return;
	}
	if (!is_carrier(h))
		*rails_ok = UINT32_MAX;
	else if (create_ring(h, cards, id) == NEZHA_OK)
		nezha_team_connect(h->ring, timeout_s, rails_ok);
}

void nezha_hierarchy_activate(struct nezha_hierarchy *h, uint32_t rails)
{
	if (h->node)
		nezha_node_seal(h->node);
	if (h->ring)
		nezha_team_activate(h->ring, rails);
}

struct nezha_team *nezha_hierarchy_ring(const struct nezha_hierarchy *h)
{
	return h->ring;
}

void nezha_hierarchy_destroy(struct nezha_hierarchy *h)
{
	if (!h)
		return;
	nezha_team_destroy(h->ring);
	if (h->node && !h->place.local)
		give_memory_back(h->engine, h->node->length);
	nezha_node_free(h->node);
	nezha_place_free(&h->place);
	free(h);
}

uint64_t nezha_hierarchy_last_bytes(const struct nezha_hierarchy *h, size_t rail)
{
	return rail < NEZHA_STATS_MAX ? h->sent[rail] : 0;
}

void nezha_hierarchy_give_up(struct nezha_hierarchy *h)
{
	if (h->node)
		nezha_node_fail(h->node);
	if (h->ring)
		nezha_team_give_up(h->ring);
}

/* ---- waiting within the node ---- */

/* True: it got time. */
static bool progress_mpi(struct whole *w, uint64_t now, uint64_t pause)
{
	const struct nezha_engine_config *config = &w->hierarchy->engine->config;

	if (!config->progress || !nezha_pace_is_due(&w->hierarchy->pace, now, pause))
		return false;
	config->progress(config->progress_context);
	nezha_pace_done(&w->hierarchy->pace, nezha_now());
	return true;
}

static int find_gone(const struct nezha_hierarchy *h)
{
	int gone = nezha_node_gone(h->node);

	if (gone < 0)
		return NEZHA_OK;
	nezha_error("the process of rank %d of a communicator, on this node, is gone", h->place.here[gone]);
	return NEZHA_ERR_UNREACHABLE;
}

/* Nobody waits for a process that has died. */
static int look_who_lives(struct whole *w, uint64_t now)
{
	if (now - w->moved < GONE_AFTER || now - w->looked < GONE_AFTER)
		return NEZHA_OK;
	w->looked = now;
	return find_gone(w->hierarchy);
}

int nezha_hierarchy_attend(struct nezha_hierarchy *h)
{
	int status = h->broken || (h->node && atomic_load(h->node->failed)) ? NEZHA_ERR_UNREACHABLE : NEZHA_OK;

	if (status == NEZHA_OK && h->node && nezha_now() - h->looked >= GONE_AFTER) {
		h->looked = nezha_now();
		status = find_gone(h);
	}
	if (status == NEZHA_OK && h->ring)
		status = nezha_team_attend(h->ring);
	if (status != NEZHA_OK && !h->broken)
		nezha_hierarchy_give_up(h);
	h->broken = status != NEZHA_OK;
	return status;
}

/* One move, or a sleep until there may be one. */
static int move_or_wait(struct whole *w)
{
	bool moved = nezha_nodecall_move(&w->local) || nezha_nodecall_wait(&w->local, w->pause);
	uint64_t now = nezha_now();

	if (moved) {
		w->moved = 0;
		w->pause = NEZHA_PACE_OFTEN;
		progress_mpi(w, now, NEZHA_PACE_SELDOM);
		return NEZHA_OK;
	}
	if (atomic_load(w->hierarchy->node->failed))
		return NEZHA_ERR_UNREACHABLE;
	if (!w->moved)
		w->moved = now;
	if (progress_mpi(w, now, w->pause))
		w->pause = nezha_pause_longer(w->pause, NEZHA_PACE_OFTEN, NEZHA_PACE_SELDOM);
	return look_who_lives(w, now);
}

/* ---- the call ---- */

/* For WORK_MOST. */
static int make_moves(struct whole *w)
{
	uint64_t since = nezha_now();

	if (atomic_load(w->hierarchy->node->failed))
		return NEZHA_ERR_UNREACHABLE;
	if (!nezha_nodecall_move(&w->local)) {
		w->moved = w->moved ? w->moved : since;
		return look_who_lives(w, since);
	}
	w->moved = 0;
	do
		if (nezha_now() - since >= WORK_MOST)
			return NEZHA_INPROGRESS;
	while (nezha_nodecall_move(&w->local));
	return NEZHA_OK;
}

static uint64_t ahead(const struct nezha_pieces *pieces)
{
	uint64_t blocks = AHEAD_BLOCKS * pieces->unit;

	return blocks > AHEAD ? blocks : AHEAD;
}

/* While a batch is on the rails: what is already final of it goes to the others, and more is folded. */
static int work(void *context, uint64_t final, uint64_t *ready)
{
	struct whole *w = context;
	int status;

	nezha_nodecall_final(&w->local, w->done + final);
	if (w->pieces.gradual)
		nezha_nodecall_hold(&w->local, w->done + final + ahead(&w->pieces));
	status = make_moves(w);
	*ready = nezha_nodecall_folded(&w->local) - w->done;
	return status;
}

/* The note goes around once, in the first ring, with what the node's ranks have put in. */
static int reduce_batch(struct whole *w, struct nezha_range batch, bool noted)
{
	struct nezha_hierarchy *h = w->hierarchy;
	const char *from = h->node ? w->recvbuf : w->sendbuf;
	struct nezha_way way = *w->way;
	uint64_t note[NEZHA_NOTE_VALUES];
	int status;

	way.block = w->pieces.block;
	if (!noted)
		way.note = NULL;
	way.gradual = w->pieces.gradual;
	way.ready = h->node ? nezha_nodecall_folded(&w->local) - w->done : batch.length;
	if (h->node) {
		way.work = work;
		way.context = w;
		if (noted)
			nezha_nodecall_note(&w->local, way.note = note);
	}
	status = nezha_allreduce(h->ring, from + batch.begin, w->recvbuf + batch.begin,
	                         batch.length / nezha_type_size(w->type), w->type, w->op, &way);
	if (h->node)
		nezha_nodecall_hold(&w->local, UINT64_MAX);    /* empty cells are still to be folded */
	for (size_t r = 0; r < NEZHA_STATS_MAX; r++)
		h->sent[r] += nezha_team_last_bytes(h->ring, r);
	if (h->node && noted && status == NEZHA_OK)
		nezha_nodecall_tell_note(&w->local, note);
	return status;
}

static int await_folded(struct whole *w, uint64_t bytes)
{
	int status = NEZHA_OK;

	while (w->hierarchy->node && status == NEZHA_OK && nezha_nodecall_folded(&w->local) < bytes)
		status = move_or_wait(w);
	return status;
}

/* A carrier's piece, batch by batch. */
static int carry(struct whole *w)
{
	int c = w->hierarchy->place.local;
	uint64_t length = nezha_pieces_piece(&w->pieces, c).length;

	while (w->done < length) {
		struct nezha_range batch = nezha_pieces_batch(&w->pieces, c, w->done);
		int status = await_folded(w, w->done + nezha_pieces_first(&w->pieces, batch));

		if (status == NEZHA_OK)
			status = reduce_batch(w, batch, w->way->note && !c && !w->done);
		if (status != NEZHA_OK)
			return status;
		w->done += batch.length;
		if (w->hierarchy->node)
			nezha_nodecall_final(&w->local, w->done);
	}
	return NEZHA_OK;
}

/* With others on this node. */
static int run_shared(struct whole *w)
{
	struct nezha_node *node = w->hierarchy->node;
	int status = NEZHA_OK;

	nezha_nodecall_begin(&w->local, node, &w->pieces, nezha_reduce_kernel(w->type, w->op),
	                     (uint32_t)nezha_type_size(w->type), w->sendbuf, w->recvbuf, w->way->note);
	if (w->local.carrier)
		status = carry(w);
	while (status == NEZHA_OK && !nezha_nodecall_over(&w->local))
		status = move_or_wait(w);
	if (status != NEZHA_OK) {
		nezha_hierarchy_give_up(w->hierarchy);
		return status;
	}
	nezha_nodecall_end(&w->local);
	if (w->way->note)
		nezha_nodecall_hear_note(&w->local, w->way->note);
	return NEZHA_OK;
}

/* A collective rail takes what is there when the call begins.  Whether there may be one is the same on all ranks. */
static bool is_gradual(const struct nezha_hierarchy *h)
{
	return !h->engine->config.aggregator_count && !h->engine->config.sharp.wanted;
}

int nezha_hierarchy_allreduce(struct nezha_hierarchy *h, const void *sendbuf, void *recvbuf, uint64_t count,
                              enum nezha_type type, enum nezha_op op, const struct nezha_way *way)
{
	struct whole w = {
		.hierarchy = h, .way = way, .type = type, .op = op, .sendbuf = sendbuf, .recvbuf = recvbuf,
		.pause = NEZHA_PACE_OFTEN,
	};
	int status;

	if (h->broken)
		return NEZHA_ERR_PROTOCOL;
	memset(h->sent, 0, sizeof h->sent);
	nezha_pieces_make(count * nezha_type_size(type), h->place.carriers, h->place.nodes, way->block,
	                  h->node ? h->node->cell : NEZHA_BLOCK_MIN, is_gradual(h), &w.pieces);
	nezha_pace_begin(&h->pace, nezha_now());
	status = h->node ? run_shared(&w) : carry(&w);
	nezha_pace_end(&h->pace, nezha_now());
	h->broken = status != NEZHA_OK;
	return status;
}
