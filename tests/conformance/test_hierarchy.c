/* SPDX-License-Identifier: BSD-3-Clause
 * Several ranks on a node, over real connections: results are compared bit for bit with the order that hierarchy.h
 * promises.  The ranks are threads; which of them share a "node" is the test's choice. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rails/hierarchy.h"
#include "rails/link.h"
#include "rails/node.h"
#include "rails/pieces.h"
#include "rails/reduce.h"
#include "tests/conformance/world.h"
#include "tuning/grid.h"
#include "tuning/status.h"

/* Where the ranks are, and what they show each other when a hierarchy is opened. */
struct layout {
	int number, ranks, nodes;
	int node[WORLD_MOST];
	bool long_blocks;               /* to be tried, too */
	bool batches;                   /* an aggregator is named, which does not answer: calls are not gradual */
	struct nezha_node_offer offers[WORLD_MOST];
	uint32_t masks[WORLD_MOST];
};

static struct nezha_hierarchy *open_hierarchy(struct member *member, struct layout *layout, uint64_t id)
{
	struct nezha_hierarchy *hierarchy = NULL;
	uint32_t agreed = UINT32_MAX;
	int rank = member->rank;

	EXPECT(member, nezha_hierarchy_create(member->engine, layout->node, layout->ranks, layout->nodes, rank, &hierarchy,
	                                      &layout->offers[rank]) == NEZHA_OK);
	world_barrier(member);
	nezha_hierarchy_connect(hierarchy, member->world->cards, &layout->offers[nezha_hierarchy_host(hierarchy)], id, 10,
	                        &layout->masks[rank]);
	world_barrier(member);
	for (int r = 0; r < layout->ranks; r++)
		agreed &= layout->masks[r];
	EXPECT(member, agreed != 0);
	nezha_hierarchy_activate(hierarchy, agreed);
	world_barrier(member);
	return hierarchy;
}

/* ---- the promised order ---- */

/* sums[k] of node k: its ranks' contributions in their order. */
static void sum_nodes(const struct layout *layout, enum nezha_type type, enum nezha_op op, uint64_t count, unsigned seed,
                      char *sums[WORLD_MOST])
{
	char *one = malloc(count * 8);
	bool begun[WORLD_MOST] = { false };

	for (int r = 0; r < layout->ranks; r++) {
		char *sum = sums[layout->node[r]];

		world_fill(begun[layout->node[r]] ? one : sum, type, count, r, seed);
		if (begun[layout->node[r]])
			nezha_reduce_kernel(type, op)(sum, sum, one, count);
		begun[layout->node[r]] = true;
	}
	free(one);
}

/* The ring's order, for one piece, whether it goes in batches or not: the nodes are in order[]. */
static void fold_piece(char *out, char *const sums[WORLD_MOST], const int *order, int nodes, struct nezha_range piece,
                       uint32_t block, enum nezha_type type, enum nezha_op op)
{
	struct nezha_grid grid;

	if (nezha_grid_make(piece.length, block, &grid) != NEZHA_OK)
		abort();
	for (uint32_t b = 0; b < grid.blocks; b++) {
		uint64_t at = piece.begin + nezha_grid_offset(&grid, b);
		uint32_t length = nezha_grid_length(&grid, b);
		int start = (int)(b % (uint32_t)nodes) + 1;

		memcpy(out + at, sums[order[start % nodes]] + at, length);
		for (int k = 1; k < nodes; k++)
			nezha_reduce_kernel(type, op)(out + at, out + at, sums[order[(start + k) % nodes]] + at,
			                              length / nezha_type_size(type));
	}
}

static int count_carriers(const struct layout *layout)
{
	int carriers = layout->ranks;

	for (int k = 0; k < layout->nodes; k++) {
		int here = 0;

		for (int r = 0; r < layout->ranks; r++)
			here += layout->node[r] == k;
		if (here < carriers)
			carriers = here;
	}
	return carriers;
}

static void reference(const struct layout *layout, void *out, enum nezha_type type, enum nezha_op op, uint64_t count,
                      uint32_t block, unsigned seed)
{
	char *sums[WORLD_MOST];
	int order[WORLD_MOST], nodes = 0;
	bool seen[WORLD_MOST] = { false };
	struct nezha_pieces pieces;

	for (int k = 0; k < layout->nodes; k++)
		sums[k] = malloc(count * 8);
	sum_nodes(layout, type, op, count, seed, sums);
	for (int r = 0; r < layout->ranks; r++) {
		if (!seen[layout->node[r]])
			order[nodes++] = layout->node[r];
		seen[layout->node[r]] = true;
	}
	nezha_pieces_make(count * nezha_type_size(type), count_carriers(layout), nodes, block, NEZHA_BLOCK_MIN, true, &pieces);
	for (int c = 0; c < pieces.count; c++) {
		struct nezha_range piece = nezha_pieces_piece(&pieces, c);

		if (piece.length)
			fold_piece(out, sums, order, nodes, piece, pieces.block, type, op);
	}
	for (int k = 0; k < layout->nodes; k++)
		free(sums[k]);
}

/* ---- calls ---- */

static void check_call(struct member *member, const struct layout *layout, struct nezha_hierarchy *hierarchy,
                       enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, bool in_place)
{
	size_t bytes = count * nezha_type_size(type);
	unsigned seed = (unsigned)(count * 31 + type * 7 + op);
	char *send = malloc(bytes), *recv = malloc(bytes), *wanted = malloc(bytes);
	uint64_t note[NEZHA_NOTE_VALUES];
	bool noted = count % 2;

	for (int i = 0; i < NEZHA_NOTE_VALUES; i++)
		note[i] = count * 100 + (uint64_t)((member->rank * 5 + i) % layout->ranks);
	world_fill(send, type, count, member->rank, seed);
	memset(recv, 0xa5, bytes);
	if (in_place)
		memcpy(recv, send, bytes);
	EXPECT(member, nezha_hierarchy_allreduce(hierarchy, in_place ? recv : send, recv, count, type, op,
	                                         &(struct nezha_way){ .block = block, .note = noted ? note : NULL }) == NEZHA_OK);
	for (int i = 0; noted && i < NEZHA_NOTE_VALUES; i++) {
		uint64_t least = UINT64_MAX;

		for (int r = 0; r < layout->ranks; r++)
			if (count * 100 + (uint64_t)((r * 5 + i) % layout->ranks) < least)
				least = count * 100 + (uint64_t)((r * 5 + i) % layout->ranks);
		EXPECT(member, note[i] == least);
	}
	reference(layout, wanted, type, op, count, block, seed);
	EXPECT(member, !memcmp(recv, wanted, bytes));
	free(send);
	free(recv);
	free(wanted);
}

static void pause_a_little(unsigned *random)
{
	struct timespec t = { 0, rand_r(random) % 3 ? 0 : rand_r(random) % 3000000 };

	if (t.tv_nsec)
		nanosleep(&t, NULL);
}

static void long_vectors(struct member *member, struct layout *layout, struct nezha_hierarchy *hierarchy)
{
	/* so many blocks that the pieces have shorter ones */
	check_call(member, layout, hierarchy, NEZHA_FLOAT32, NEZHA_SUM, 3000007, 128u << 10, true);
	/* a block is more than what is folded at once */
	if (layout->long_blocks)
		check_call(member, layout, hierarchy, NEZHA_FLOAT32, NEZHA_SUM, 3000007, NEZHA_BLOCK_MAX, false);
}

static void all_types_and_counts(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 2, 7, 1021, 1024, 4097, 65537, 300007, 1 << 20 };
	struct layout *layout = argument;
	struct nezha_hierarchy *hierarchy = open_hierarchy(member, layout, 2);
	unsigned random = (unsigned)member->rank;

	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type) && world_due(type + op))
				check_call(member, layout, hierarchy, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		if (!world_due((int)i))
			continue;
		pause_a_little(&random);
		check_call(member, layout, hierarchy, NEZHA_FLOAT32, NEZHA_SUM, counts[i], 8192, false);
		check_call(member, layout, hierarchy, NEZHA_FLOAT64, NEZHA_SUM, counts[i], 65536, true);
	}
	if (world_due(layout->number))
		long_vectors(member, layout, hierarchy);
	nezha_hierarchy_destroy(hierarchy);
}

static void test_layouts(void **state)
{
	struct layout layouts[] = {
		/* first, so that NEZHA_TEST_EVERY leaves it in, long blocks and all */
		{ .ranks = 5, .nodes = 2, .node = { 0, 1, 1, 1, 1 }, .long_blocks = true },
		{ .ranks = 8, .nodes = 4, .node = { 0, 0, 1, 1, 2, 2, 3, 3 } },
		{ .ranks = 8, .nodes = 2, .node = { 1, 1, 1, 1, 0, 0, 0, 0 } },
		{ .ranks = 7, .nodes = 3, .node = { 2, 0, 1, 2, 0, 1, 0 } },
		{ .ranks = 6, .nodes = 3, .node = { 0, 0, 1, 1, 2, 2 }, .batches = true },
	};
	const struct nezha_ina_address nowhere = { .address.s_addr = htonl(INADDR_LOOPBACK), .port = 9 };

	(void)state;
	alarm(300);     /* a rank that waits for ever would hang all */
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		layouts[i].number = (int)i;
		assert_int_equal(world_run_with(layouts[i].ranks, 2, NEZHA_POLICY_ECF, &nowhere, layouts[i].batches, all_types_and_counts,
		                                &layouts[i]), 0);
	}
	alarm(0);
}

/* ---- several communicators at once ---- */

struct lane {
	struct member *member;
	const struct layout *layout;
	struct nezha_hierarchy *hierarchy;
	int number;
	pthread_t thread;
};

static void *run_lane(void *argument)
{
	struct lane *lane = argument;
	unsigned random = (unsigned)(lane->member->rank * 10 + lane->number);

	for (int i = 0; i < 12; i++) {
		pause_a_little(&random);
		check_call(lane->member, lane->layout, lane->hierarchy, NEZHA_FLOAT32, NEZHA_SUM,
		           1 + (uint64_t)(i * 37 + lane->number * 11) % 50 * 3001, 8192, i % 2);
	}
	return NULL;
}

static void run_lanes(struct member *member, void *argument)
{
	struct layout *layout = argument;
	struct lane lanes[3];

	for (int i = 0; i < 3; i++)
		lanes[i] = (struct lane){ member, layout, open_hierarchy(member, layout, 2 + (uint64_t)i), i, 0 };
	for (int i = 0; i < 3; i++)
		if (pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]))
			abort();
	for (int i = 0; i < 3; i++) {
		pthread_join(lanes[i].thread, NULL);
		nezha_hierarchy_destroy(lanes[i].hierarchy);
	}
}

static void test_lanes(void **state)
{
	struct layout layout = { .ranks = 6, .nodes = 3, .node = { 0, 0, 1, 1, 2, 2 } };

	(void)state;
	assert_int_equal(world_run(layout.ranks, 2, NEZHA_POLICY_ECF, run_lanes, &layout), 0);
}

/* ---- connections that break ---- */

static void calls_under_cuts(struct member *member, void *argument)
{
	struct layout *layout = argument;
	struct nezha_hierarchy *hierarchy = open_hierarchy(member, layout, 2);
	struct nezha_team *ring = nezha_hierarchy_ring(hierarchy);

	for (int i = 0; i < 20; i++) {
		/* Before the call, so that it is hit in the middle: the others are not in it yet. */
		if (ring && (member->rank + i) % 3 == 0) {
			nezha_fairlock_take(&member->engine->lock);
			int fd = ring->right->paths[i % 2].end.fd;

			if (fd >= 0)
				shutdown(fd, SHUT_RDWR);
			nezha_fairlock_give(&member->engine->lock);
		}
		check_call(member, layout, hierarchy, NEZHA_FLOAT64, NEZHA_SUM, 100003 + (uint64_t)i * 8191, 16384, i % 2);
	}
	nezha_hierarchy_destroy(hierarchy);
}

static void test_cuts(void **state)
{
	struct layout layout = { .ranks = 6, .nodes = 3, .node = { 0, 1, 2, 0, 1, 2 } };
	uint64_t before = atomic_load(&world_lost);

	(void)state;
	assert_int_equal(world_run(layout.ranks, 2, NEZHA_POLICY_ECF, calls_under_cuts, &layout), 0);
	assert_true(atomic_load(&world_lost) > before);
}

/* ---- a rank that cannot go on ---- */

/* On the first node one carrier's ring is broken, while the other one is on the rails and waits for a node that never comes. */
static void one_gives_up(struct member *member, void *argument)
{
	struct layout *layout = argument;
	struct nezha_hierarchy *hierarchy = open_hierarchy(member, layout, 2);
	const uint64_t count = 65536;
	float *data = calloc(count, sizeof *data);

	if (member->rank == 1)
		nezha_hierarchy_ring(hierarchy)->broken = true;
	if (layout->node[member->rank] == 0) {
		const struct nezha_way way = { .block = 8192 };

		EXPECT(member, nezha_hierarchy_allreduce(hierarchy, data, data, count, NEZHA_FLOAT32, NEZHA_SUM, &way) < 0);
		EXPECT(member, nezha_hierarchy_allreduce(hierarchy, data, data, count, NEZHA_FLOAT32, NEZHA_SUM, &way) ==
		               NEZHA_ERR_PROTOCOL);
	}
	world_barrier(member);
	nezha_hierarchy_destroy(hierarchy);
	free(data);
}

static void test_one_gives_up(void **state)
{
	struct layout layout = { .ranks = 4, .nodes = 2, .node = { 0, 0, 1, 1 } };

	(void)state;
	alarm(60);      /* a rank that waits for ever would hang all */
	assert_int_equal(world_run(layout.ranks, 2, NEZHA_POLICY_ECF, one_gives_up, &layout), 0);
	alarm(0);
}

/* An error of the program's, which has to be told and to end. */
static void unlike_counts(struct member *member, void *argument)
{
	struct layout *layout = argument;
	struct nezha_hierarchy *hierarchy = open_hierarchy(member, layout, 2);
	const uint64_t most = 200000;
	float *data = calloc(most, sizeof *data);

	if (layout->node[member->rank] == 0)
		EXPECT(member, nezha_hierarchy_allreduce(hierarchy, data, data, member->rank ? most : 1000, NEZHA_FLOAT32,
		                                         NEZHA_SUM, &(struct nezha_way){ .block = 8192 }) < 0);
	world_barrier(member);
	nezha_hierarchy_destroy(hierarchy);
	free(data);
}

static void test_unlike_counts(void **state)
{
	struct layout layout = { .ranks = 5, .nodes = 2, .node = { 0, 0, 1, 1, 0 } };

	(void)state;
	alarm(60);
	assert_int_equal(world_run(layout.ranks, 2, NEZHA_POLICY_ECF, unlike_counts, &layout), 0);
	alarm(0);
}

/* ---- too many ranks on a node ---- */

/* `here` ranks on this node and one on another: what is told of that, NULL if they can share memory. */
static const char *told_of(struct member *member, int here)
{
	int node[NEZHA_NODE_RANKS_MAX + 2] = { 0 };
	struct nezha_lack lack = { .what = NULL };
	struct nezha_hierarchy *hierarchy = NULL;
	struct nezha_node_offer offer;
	int status;

	node[here] = 1;
	member->engine->config.lack = &lack;
	status = nezha_hierarchy_create(member->engine, node, here + 1, 2, 0, &hierarchy, &offer);
	member->engine->config.lack = NULL;
	EXPECT(member, (status == NEZHA_OK) == !lack.what && !lack.error);
	nezha_hierarchy_destroy(hierarchy);
	return lack.what;
}

static void many_on_a_node(struct member *member, void *argument)
{
	const char *told = told_of(member, NEZHA_NODE_RANKS_MAX + 1);

	(void)argument;
	EXPECT(member, told && !strcmp(told, "more than 256 ranks of a node do not share memory"));
	EXPECT(member, !told_of(member, NEZHA_NODE_RANKS_MAX));
}

static void test_many_on_a_node(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, many_on_a_node, NULL), 0);
}

/* ---- all the memory that a process may share ---- */

#define SHARED_MOST (512ull << 20)       /* bytes, as rails/hierarchy.c has it */
#define HERE 32                          /* ranks on this node: some 11 MiB for each hierarchy, of which next to nothing is touched */
#define MANY 128                         /* hierarchies: more than there is memory for */
#define NO_SHARED_MEMORY "no memory can be shared with the ranks of the node"

/* HERE ranks on this node and one on another, seen by rank `rank`: the outcome, and what is told of it. */
struct shared {
	int status;
	struct nezha_hierarchy *hierarchy;
	struct nezha_node_offer offer;
	struct nezha_lack lack;
};

static void share(struct member *member, int rank, struct shared *out)
{
	const int node[HERE + 1] = { [HERE] = 1 };

	*out = (struct shared){ .status = NEZHA_OK };
	member->engine->config.lack = &out->lack;
	out->status = nezha_hierarchy_create(member->engine, node, HERE + 1, 2, rank, &out->hierarchy, &out->offer);
	member->engine->config.lack = NULL;
}

/* The node's first rank says in its introduction that it failed, and why. */
static void expect_refused(struct member *member, int error)
{
	uint64_t before = member->engine->shared_memory;
	struct shared refused;

	share(member, 0, &refused);
	EXPECT(member, refused.status != NEZHA_OK && !refused.hierarchy && !refused.offer.pid);
	EXPECT(member, refused.lack.what && !strcmp(refused.lack.what, NO_SHARED_MEMORY));
	EXPECT(member, refused.lack.error == error);
	EXPECT(member, member->engine->shared_memory == before);
}

/* Another rank of the node, which makes no memory, has no rails without what the first one would have offered. */
static void expect_no_rails(struct member *member)
{
	const struct nezha_node_offer none = { .pid = 0 };
	uint32_t rails = UINT32_MAX;
	struct shared other;

	share(member, 1, &other);
	EXPECT(member, other.status == NEZHA_OK && !other.lack.what);
	member->engine->config.lack = &other.lack;
	nezha_hierarchy_connect(other.hierarchy, member->world->cards, &none, 2, 10, &rails);
	member->engine->config.lack = NULL;
	EXPECT(member, !rails && other.lack.what && !strcmp(other.lack.what, NO_SHARED_MEMORY));
	nezha_hierarchy_destroy(other.hierarchy);
}

static void shares_all(struct member *member, void *argument)
{
	struct nezha_engine *engine = member->engine;
	struct shared made[MANY];
	uint64_t each;
	int count = 0;

	(void)argument;
	do
		share(member, 0, &made[count]);
	while (made[count].status == NEZHA_OK && ++count < MANY);
	EXPECT(member, count > 1 && count < MANY && made[count].status == NEZHA_ERR_NOMEM);
	each = engine->shared_memory / (uint64_t)(count ? count : 1);
	EXPECT(member, engine->shared_memory <= SHARED_MOST && engine->shared_memory + each > SHARED_MOST);
	expect_refused(member, ENOMEM);
	expect_no_rails(member);
	nezha_hierarchy_destroy(made[0].hierarchy);
	share(member, 0, &made[0]);
	EXPECT(member, made[0].status == NEZHA_OK && made[0].offer.pid && !made[0].lack.what);
	expect_refused(member, ENOMEM);
	for (int i = 0; i < count; i++)
		nezha_hierarchy_destroy(made[i].hierarchy);
	EXPECT(member, engine->shared_memory == 0);
}

/* The kernel gives none: nothing is counted. */
static void shares_nothing(struct member *member, void *argument)
{
	struct rlimit all, little;

	(void)argument;
	EXPECT(member, !getrlimit(RLIMIT_FSIZE, &all));
	little = all;
	little.rlim_cur = 1 << 20;
	EXPECT(member, !setrlimit(RLIMIT_FSIZE, &little));
	expect_refused(member, EFBIG);
	EXPECT(member, !setrlimit(RLIMIT_FSIZE, &all));
	EXPECT(member, member->engine->shared_memory == 0);
}

static void test_shared_memory(void **state)
{
	(void)state;
	assert_int_equal(world_run(1, 1, NEZHA_POLICY_ECF, shares_all, NULL), 0);
	assert_int_equal(world_run(1, 1, NEZHA_POLICY_ECF, shares_nothing, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_one_gives_up),
		cmocka_unit_test(test_unlike_counts),
		cmocka_unit_test(test_many_on_a_node),
		cmocka_unit_test(test_shared_memory),
	};

	return cmocka_run_group_tests_name("hierarchy", tests, NULL, NULL);
}
