/* SPDX-License-Identifier: BSD-3-Clause
 * The ranks of a node: who carries what, how a vector is cut, and what passes through shared memory, with threads as ranks. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rails/nodecall.h"
#include "rails/place.h"
#include "tuning/grid.h"
#include "tuning/status.h"

#define RANKS_MAX 6
#define CELL (4u << 10)
#define COUNT_MOST 60000

/* ---- places ---- */

static void check_place(const int *node, int ranks, int nodes, int rank, int carriers, int local, const int *ring,
                        int position)
{
	struct nezha_place place;
	int here = 0;

	assert_int_equal(nezha_place_make(node, ranks, nodes, rank, &place), NEZHA_OK);
	assert_int_equal(place.nodes, nodes);
	assert_int_equal(place.carriers, carriers);
	assert_int_equal(place.local, local);
	assert_int_equal(place.position, position);
	for (int i = 0; i < ranks; i++)
		if (node[i] == node[rank])
			assert_int_equal(place.here[here++], i);
	assert_int_equal(place.ranks, here);
	assert_memory_equal(place.ring, ring, (size_t)nodes * sizeof *ring);
	nezha_place_free(&place);
}

static void places(void **state)
{
	const int pairs[] = { 0, 0, 1, 1 }, turns[] = { 1, 0, 1, 0 }, unequal[] = { 2, 0, 2, 1, 0, 2, 0 };

	(void)state;
	check_place(pairs, 4, 2, 0, 2, 0, (int[]){ 0, 2 }, 0);
	check_place(pairs, 4, 2, 1, 2, 1, (int[]){ 1, 3 }, 0);
	check_place(pairs, 4, 2, 3, 2, 1, (int[]){ 1, 3 }, 1);
	check_place(turns, 4, 2, 1, 2, 0, (int[]){ 0, 1 }, 1);
	check_place(turns, 4, 2, 2, 2, 1, (int[]){ 2, 3 }, 0);
	/* One rank on a node leaves one carrier on each; the others are in no ring, and get the first one. */
	check_place(unequal, 7, 3, 0, 1, 0, (int[]){ 0, 1, 3 }, 0);
	check_place(unequal, 7, 3, 5, 1, 2, (int[]){ 0, 1, 3 }, 0);
	check_place(unequal, 7, 3, 3, 1, 0, (int[]){ 0, 1, 3 }, 2);
}

/* ---- pieces ---- */

/* Pieces, their cells and their batches cover the vector, each of them in order and without a gap. */
static void check_pieces(uint64_t bytes, int carriers, int nodes, uint32_t block, uint32_t cell, bool gradual)
{
	struct nezha_pieces p;
	uint64_t at = 0;

	nezha_pieces_make(bytes, carriers, nodes, block, cell, gradual, &p);
	assert_in_range(p.count, 1, carriers);
	assert_true(nezha_block_fits(p.block) && p.block <= block);
	if (p.count > 1)
		assert_true(bytes >= (uint64_t)p.count * (uint64_t)nodes * block);
	for (int c = 0; c < p.count; c++) {
		struct nezha_range piece = nezha_pieces_piece(&p, c);
		uint64_t cells = 0, done = 0;

		assert_int_equal(piece.begin, at);
		for (uint32_t j = 0; j < p.cells; j++) {
			struct nezha_range r = nezha_pieces_cell(&p, c, j);

			assert_true(r.length <= cell);
			assert_int_equal(r.begin, at + cells);
			cells += r.length;
		}
		assert_int_equal(cells, piece.length);
		while (done < piece.length) {
			struct nezha_range r = nezha_pieces_batch(&p, c, done);

			assert_int_equal(r.begin, at + done);
			assert_true(r.length > 0);
			assert_in_range(nezha_pieces_first(&p, r), 1, r.length);
			assert_true(gradual ? r.length == piece.length : nezha_pieces_first(&p, r) == r.length);
			assert_true(done + r.length == piece.length || r.length % ((uint64_t)nodes * p.block) == 0);
			done += r.length;
		}
		assert_int_equal(done, piece.length);
		at += piece.length;
	}
	assert_int_equal(at, bytes);
	assert_true(nezha_pieces_piece(&p, 0).length > 0);
}

static void pieces(void **state)
{
	static const uint64_t bytes[] = {
		1, 8, 4095, 4096, 4097, 65536, 65537, 100003, 262144, 1 << 20, (1 << 20) + 8, 5000000, 16 << 20,
		(16 << 20) - 4, (uint64_t)3 << 30,
	};

	(void)state;
	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
		for (int carriers = 1; carriers <= 64; carriers = 2 * carriers + carriers / 3)
			for (int nodes = 2; nodes <= 40; nodes += 19)
				for (uint32_t block = NEZHA_BLOCK_MIN; block <= NEZHA_BLOCK_MAX; block *= 8)
					for (int gradual = 0; gradual < 2; gradual++)
						check_pieces(bytes[i], carriers, nodes, block, (64u << 10) / (carriers > 8 ? 16 : 1), gradual);
}

static uint32_t block_of(uint64_t bytes, uint32_t block)
{
	struct nezha_pieces p;

	nezha_pieces_make(bytes, 4, 4, block, 64u << 10, true, &p);
	return p.block;
}

/* Long pieces have shorter blocks, if those that the plan has are long enough. */
static void short_blocks(void **state)
{
	(void)state;
	assert_int_equal(block_of(16 << 20, 128u << 10), 60u << 10);
	assert_int_equal(block_of((16 << 20) - 65536, 128u << 10), 128u << 10);
	assert_int_equal(block_of(64 << 20, 256u << 10), 124u << 10);
	assert_int_equal(block_of(64 << 20, 64u << 10), 64u << 10);
	assert_int_equal(block_of(64 << 20, 132u << 10), 132u << 10);
}

/* ---- shared memory ---- */

static void sizes(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= NEZHA_NODE_RANKS_MAX; ranks = ranks * 3 / 2 + 1)
		for (int carriers = 1; carriers <= ranks; carriers += ranks / 2) {
			uint32_t cell = nezha_node_cell(ranks, carriers);
			size_t length = nezha_node_length(ranks, carriers, cell);

			assert_true(nezha_block_fits(cell));
			assert_true(length <= (17u << 20));
		}
	assert_int_equal(nezha_node_cell(NEZHA_NODE_RANKS_MAX + 1, 1), 0);
}

static void joins_what_was_meant(void **state)
{
	struct nezha_node_offer offer, other;
	struct nezha_node *maker, *stranger, *joined;

	(void)state;
	assert_int_equal(nezha_node_make(2, 1, CELL, &offer, &maker), NEZHA_OK);
	assert_int_equal(nezha_node_make(2, 1, CELL, &other, &stranger), NEZHA_OK);
	assert_int_equal(nezha_node_join(&offer, 2, 1, CELL, 1, &joined), NEZHA_OK);
	maker->rank[0].in = 42;
	assert_int_equal(joined->rank[0].in, 42);
	nezha_node_free(joined);
	/* Another one's memory, memory of another form, none. */
	other.fd = offer.fd;
	assert_int_not_equal(nezha_node_join(&other, 2, 1, CELL, 1, &joined), NEZHA_OK);
	assert_int_not_equal(nezha_node_join(&offer, 3, 1, CELL, 1, &joined), NEZHA_OK);
	assert_int_not_equal(nezha_node_join(&offer, 2, 2, CELL, 1, &joined), NEZHA_OK);
	nezha_node_seal(maker);
	assert_int_not_equal(nezha_node_join(&offer, 2, 1, CELL, 1, &joined), NEZHA_OK);
	nezha_node_free(maker);
	nezha_node_free(stranger);
}

/* A rank whose process has died is found; a child that was forked has no part in the memory. */
static void finds_the_dead(void **state)
{
	struct nezha_node_offer offer;
	struct nezha_node *node, *joined;
	pid_t child;

	(void)state;
	assert_int_equal(nezha_node_make(2, 1, CELL, &offer, &node), NEZHA_OK);
	assert_int_equal(nezha_node_gone(node), -1);
	child = fork();
	if (!child)
		_exit(nezha_node_join(&offer, 2, 1, CELL, 1, &joined) != NEZHA_OK);
	int status = -1;

	/* also while nobody has waited for it */
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(nezha_node_gone(node), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(nezha_node_gone(node), 1);
	nezha_node_free(node);
}

/* ---- calls ---- */

struct world {
	int ranks, carriers;
	uint32_t cell;
	struct nezha_node_offer offer;
	pthread_barrier_t barrier;
	int rounds;
	unsigned seed;
};

struct rank {
	struct world *world;
	int local;
	pthread_t thread;
	unsigned random;
	int failures;
};

static void fill(void *buffer, enum nezha_type type, uint64_t count, int rank, unsigned seed)
{
	size_t size = nezha_type_size(type);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)(rank + 1) * 0xc2b2ae3d27d4eb4full ^ seed;

		h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
		if (type == NEZHA_FLOAT32)
			((float *)buffer)[i] = (float)(h >> 40) / (float)(1 << (h & 15));
		else if (type == NEZHA_FLOAT64)
			((double *)buffer)[i] = (double)(h >> 40) / (double)(1 << (h & 15));
		else
			memcpy((char *)buffer + i * size, &h, size);
	}
}

static void pause_a_little(struct rank *rank)
{
	struct timespec t = { 0, rand_r(&rank->random) % 4 ? 0 : rand_r(&rank->random) % 200000 };

	if (t.tv_nsec)
		nanosleep(&t, NULL);
}

static void expect(struct rank *rank, bool holds, const char *what)
{
	if (holds)
		return;
	rank->failures++;
	fprintf(stderr, "rank %d: %s\n", rank->local, what);
}

static atomic_uint held;        /* how often a carrier had folded what it was to */

/* As a ring would that has just begun, or is over: the last cells of a short piece are empty, and folded like others. */
static void hold_back(struct nezha_nodecall *call)
{
	bool over = call->final == nezha_pieces_piece(call->pieces, call->node->local).length;

	nezha_nodecall_hold(call, over ? UINT64_MAX : call->final + 2 * call->pieces->cell);
	if (!over && nezha_nodecall_folded(call) == call->ahead)
		atomic_fetch_add(&held, 1);
}

/* There are no other nodes: what is folded is final. */
static bool drive(struct rank *rank, struct nezha_nodecall *call)
{
	bool noted = false;

	while (!nezha_nodecall_over(call)) {
		if (rand_r(&rank->random) % 64 == 0)
			pause_a_little(rank);
		expect(rank, nezha_nodecall_folded(call) <= call->ahead, "more is folded than is to be");
		if (call->pieces->gradual && call->carrier)
			hold_back(call);
		if (call->carrier && nezha_nodecall_folded(call) > call->final && rand_r(&rank->random) % 4 == 0) {
			if (!call->node->local && !noted) {
				uint64_t note[NEZHA_NOTE_VALUES];

				nezha_nodecall_note(call, note);
				pause_a_little(rank);
				nezha_nodecall_final(call, nezha_nodecall_folded(call));
				while (rand_r(&rank->random) % 3 && nezha_nodecall_move(call))
					;
				nezha_nodecall_tell_note(call, note);
				noted = true;
			}
			nezha_nodecall_final(call, nezha_nodecall_folded(call));
		}
		if (!nezha_nodecall_move(call))
			nezha_nodecall_wait(call, 1000000);
		if (atomic_load(call->node->failed))
			return false;
	}
	nezha_nodecall_end(call);
	return true;
}

static void one_call(struct rank *rank, struct nezha_node *node, int round, char *buffers[4])
{
	struct world *world = rank->world;
	unsigned draw = world->seed + (unsigned)round;
	uint64_t count = (uint64_t)rand_r(&draw) % (round % 3 ? COUNT_MOST : 300) + 1;
	enum nezha_type type = (enum nezha_type)(round % NEZHA_TYPE_COUNT);
	enum nezha_op op = (enum nezha_op)(round / NEZHA_TYPE_COUNT % NEZHA_OP_COUNT);
	size_t size = nezha_type_size(type);
	char *send = buffers[0], *receive = buffers[1], *wanted = buffers[2], *other = buffers[3];
	uint64_t note[NEZHA_NOTE_VALUES] = { (uint64_t)(1000 * round + rank->local), (uint64_t)(5000 - rank->local) };
	struct nezha_pieces pieces;
	struct nezha_nodecall call;
	bool in_place = round % 2;

	if (!nezha_op_fits(op, type))
		op = NEZHA_SUM;
	fill(send, type, count, rank->local, draw);
	memset(receive, 0xa5, count * size);
	if (in_place)
		memcpy(receive, send, count * size);
	nezha_pieces_make(count * size, world->carriers, 2, NEZHA_BLOCK_MIN, node->cell, round % 4 < 2, &pieces);
	nezha_nodecall_begin(&call, node, &pieces, nezha_reduce_kernel(type, op), (uint32_t)size,
	                     in_place ? receive : send, receive, note);
	expect(rank, drive(rank, &call), "the call does not end well");
	nezha_nodecall_hear_note(&call, note);
	expect(rank, note[0] == (uint64_t)(1000 * round) && note[1] == (uint64_t)(5001 - world->ranks), "other note");
	fill(wanted, type, count, 0, draw);
	for (int r = 1; r < world->ranks; r++) {
		fill(other, type, count, r, draw);
		nezha_reduce_kernel(type, op)(wanted, wanted, other, count);
	}
	expect(rank, !memcmp(receive, wanted, count * size), "other bits than those of the promised order");
}

static void *run_rank(void *argument)
{
	struct rank *rank = argument;
	struct world *world = rank->world;
	struct nezha_node *node = NULL;
	char *buffers[4];

	for (int i = 0; i < 4; i++)
		buffers[i] = malloc(COUNT_MOST * 8);
	if (!rank->local)
		expect(rank, !nezha_node_make(world->ranks, world->carriers, world->cell, &world->offer, &node), "make");
	pthread_barrier_wait(&world->barrier);
	if (rank->local)
		expect(rank, !nezha_node_join(&world->offer, world->ranks, world->carriers, world->cell, rank->local, &node), "join");
	pthread_barrier_wait(&world->barrier);
	if (node)
		nezha_node_seal(node);
	for (int round = 0; node && round < world->rounds; round++) {
		pause_a_little(rank);
		one_call(rank, node, round, buffers);
	}
	nezha_node_free(node);    /* at once: the others may still be reading what this one has put out */
	for (int i = 0; i < 4; i++)
		free(buffers[i]);
	return NULL;
}

static void run_world(int ranks, int carriers, uint32_t cell, int rounds)
{
	struct world world = {
		.ranks = ranks, .carriers = carriers, .cell = cell, .rounds = rounds, .seed = (unsigned)(ranks * 10 + carriers),
	};
	struct rank members[RANKS_MAX];

	pthread_barrier_init(&world.barrier, NULL, (unsigned)ranks);
	for (int r = 0; r < ranks; r++) {
		members[r] = (struct rank){ .world = &world, .local = r, .random = (unsigned)r };
		assert_int_equal(pthread_create(&members[r].thread, NULL, run_rank, &members[r]), 0);
	}
	for (int r = 0; r < ranks; r++) {
		pthread_join(members[r].thread, NULL);
		assert_int_equal(members[r].failures, 0);
	}
	pthread_barrier_destroy(&world.barrier);
}

static void folds_in_order(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (int carriers = 1; carriers <= ranks; carriers++) {
			run_world(ranks, carriers, CELL, carriers == 1 || carriers == ranks ? 100 : 30);
			run_world(ranks, carriers, 5 * CELL, 30);    /* folded in several parts, the last one shorter */
		}
	assert_true(atomic_load(&held) > 0);
}

static void *wait_for_ever(void *argument)
{
	static char buffer[64];
	struct nezha_node *node = argument;
	struct nezha_pieces pieces;
	struct nezha_nodecall call;

	nezha_pieces_make(sizeof buffer, 1, 2, NEZHA_BLOCK_MIN, CELL, false, &pieces);
	nezha_nodecall_begin(&call, node, &pieces, nezha_reduce_kernel(NEZHA_INT8, NEZHA_SUM), 1, buffer, buffer, NULL);
	while (!atomic_load(node->failed))
		nezha_nodecall_wait(&call, 3600000000000ull);
	return NULL;
}

/* A failure ends the sleep of those who wait. */
static void fails_for_all(void **state)
{
	struct timespec moment = { 0, 20000000 };
	struct nezha_node_offer offer;
	struct nezha_node *node, *joined;
	pthread_t thread;

	(void)state;
	assert_int_equal(nezha_node_make(2, 1, CELL, &offer, &node), NEZHA_OK);
	assert_int_equal(nezha_node_join(&offer, 2, 1, CELL, 1, &joined), NEZHA_OK);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, node), 0);
	nanosleep(&moment, NULL);
	nezha_node_fail(joined);
	pthread_join(thread, NULL);
	nezha_node_free(joined);
	nezha_node_free(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(pieces),
		cmocka_unit_test(short_blocks),
		cmocka_unit_test(sizes),
		cmocka_unit_test(joins_what_was_meant),
		cmocka_unit_test(finds_the_dead),
		cmocka_unit_test(folds_in_order),
		cmocka_unit_test(fails_for_all),
	};

	return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
