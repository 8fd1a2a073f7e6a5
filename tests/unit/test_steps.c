/* SPDX-License-Identifier: BSD-3-Clause
 * How soon calls of 256 KiB on four nodes are as fast as new rates of two rails allow, in virtual time: the link's dealing and the estimators
 * are the library's, of the world there are shapers with a burst, packets, the kernel's two of them at an interface, and late news.
 * By symmetry one link is the whole ring: what it delivers is what comes from the left.  No probes are sent. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/deal.h"
#include "rails/engine.h"
#include "rails/team.h"

#define MBIT (125000.0 * 0.96)  /* bytes per second, headers off */
#define RANKS 4
#define HOPS (2 * (RANKS - 1))
#define BYTES (256u << 10)
#define BLOCK (16u << 10)
#define BLOCKS (BYTES / BLOCK)
#define CHUNK (BLOCKS / RANKS)          /* blocks of a rank */
#define PACKET 12288u
#define PACKETS 1024u                   /* remembered of a path */
#define AT_INTERFACE 2u                 /* packets: TCP keeps the others in the socket */
#define SOCKET (128u << 10)
#define BURST 16384.0
#define ADMINISTRATION 0.07
#define LOOK (150 * NEZHA_USEC)
#define TICK (5 * NEZHA_USEC)
#define AFTER 14                        /* calls after a step, of which ... */
#define ALLOWED 5                       /* ... so many may it be until one takes ... */
#define WITHIN 1.05                     /* ... this times what they take when the rates are known */
#define STEPS 10                        /* in each direction */
#define SEEDS 5

struct packet {
	uint32_t bytes;
	struct nezha_tx *ends;          /* the block that it is the last one of; NULL: none */
	uint64_t arrives, told;         /* once it has left: when it, and when its acknowledgement arrives */
};

struct rail {
	double rate, tokens;            /* bytes per second; bytes that the shaper would pass at once */
	struct packet packets[PACKETS]; /* numbered from 0 on; the next of each kind: */
	uint32_t written, sent, left, arrived, acked;
	struct nezha_path_sample now;   /* its byte counts */
	uint64_t arrival, news;         /* the last ones */
};

static struct world {
	struct nezha_engine engine;
	struct nezha_link link;
	struct nezha_team team;
	struct nezha_tx tx[2 * BLOCKS];
	uint8_t state[BLOCKS];
	struct rail rails[2];
	uint64_t now;
	unsigned seed;
	double noise;                   /* of a host whose processors are busy; 1: an arrival 0 to 150 us late, news of it 0 to 600 us more */
	bool known;                     /* the estimators know the rates */
	int hop[2 * BLOCKS];            /* of each tx: its own hop */
	int delivered;                  /* of the call's CHUNK * HOPS */
} world;

static double random_part(void)
{
	return rand_r(&world.seed) / (double)RAND_MAX;
}

static uint64_t late(double microseconds)
{
	return (uint64_t)((30 + world.noise * microseconds) * (double)NEZHA_USEC);
}

/* The i-th block that the link sends on its hop, from 0 on. */
static struct nezha_tx *tx_of(int hop, int i)
{
	int behind = hop < RANKS - 1 ? hop + 1 : hop - (RANKS - 1);     /* how far this rank is right of the block's owner */
	int block = RANKS * i + (RANKS - behind) % RANKS;

	return &world.tx[2 * block + (hop >= RANKS - 1)];
}

static void begin_world(const double *mbits, double noise, unsigned seed, bool known)
{
	memset(&world, 0, sizeof world);
	world.seed = seed;
	world.noise = noise;
	world.known = known;
	world.now = NEZHA_SEC;
	world.engine.card.rail_count = 2;
	world.engine.config.policy = NEZHA_POLICY_ECF;
	world.link.engine = &world.engine;
	TAILQ_INIT(&world.link.queue);
	world.team = (struct nezha_team){ .engine = &world.engine, .right = &world.link, .ranks = RANKS };
	world.team.call = (struct nezha_call){ .team = &world.team, .active = true, .rails = UINT32_MAX, .tx = world.tx, .state = world.state };
	world.team.call.grid.blocks = BLOCKS;
	for (int hop = 0; hop < HOPS; hop++)
		for (int i = 0; i < (int)CHUNK; i++) {
			struct nezha_tx *tx = tx_of(hop, i);

			*tx = (struct nezha_tx){ .team = &world.team, .block = (uint32_t)(tx - world.tx) / 2, .length = BLOCK,
			                         .kind = hop < RANKS - 1 ? NEZHA_WIRE_PARTIAL : NEZHA_WIRE_FINAL };
			world.hop[tx - world.tx] = hop;
			assert_int_equal(nezha_call_hops_left(&world.team.call, tx), HOPS - 1 - hop);
		}
	for (int r = 0; r < 2; r++) {
		struct nezha_path *path = &world.link.paths[r];

		path->link = &world.link;
		path->rail = (uint8_t)r;
		path->up = true;
		world.rails[r].rate = mbits[r] * MBIT;
		nezha_estimator_init(&path->estimator, mbits[r] * MBIT);
		path->estimator.weight = 0.1;   /* it has been measured */
	}
}

static void write_block(int r, struct nezha_tx *tx)
{
	struct rail *rail = &world.rails[r];

	for (uint32_t left = tx->length, n; left; left -= n) {
		n = left < PACKET ? left : PACKET;
		assert_true(rail->written - rail->acked < PACKETS);
		rail->packets[rail->written++ % PACKETS] = (struct packet){ .bytes = n, .ends = n == left ? tx : NULL };
	}
	rail->now.written += tx->length;
	world.link.paths[r].written = rail->now.written;
}

static void leave(struct rail *rail)
{
	struct packet *packet = &rail->packets[rail->left++ % PACKETS];
	uint64_t arrival = world.now + late(150 * random_part()), news;

	rail->tokens -= packet->bytes;
	rail->now.left += packet->bytes;
	rail->arrival = packet->arrives = arrival > rail->arrival ? arrival : rail->arrival;
	news = packet->arrives + late(600 * random_part() * random_part());
	rail->news = packet->told = news > rail->news ? news : rail->news;
}

/* It has come to the right; as much has come from the left. */
static void deliver(struct nezha_tx *tx)
{
	int hop = world.hop[tx - world.tx] + 1;

	world.delivered++;
	tx->where = NEZHA_TX_IDLE;
	if (hop < HOPS)
		nezha_deal_block(&world.link, tx_of(hop, (int)(tx->block / RANKS)));
}

static void advance(struct rail *rail)
{
	const struct packet *packet;

	rail->tokens += rail->rate * TICK / NEZHA_SEC;
	if (rail->tokens > BURST)
		rail->tokens = BURST;
	while (rail->sent != rail->written && rail->sent - rail->left < AT_INTERFACE)
		rail->now.sent += rail->packets[rail->sent++ % PACKETS].bytes;
	while (rail->left != rail->sent && rail->tokens >= rail->packets[rail->left % PACKETS].bytes)
		leave(rail);
	while (rail->arrived != rail->left && (packet = &rail->packets[rail->arrived % PACKETS])->arrives <= world.now) {
		rail->arrived++;
		if (packet->ends)
			deliver(packet->ends);
	}
	while (rail->acked != rail->arrived && (packet = &rail->packets[rail->acked % PACKETS])->told <= world.now) {
		rail->now.acked += packet->bytes;
		rail->acked++;
	}
}

static void look(int r)
{
	struct nezha_path *path = &world.link.paths[r];
	struct nezha_path_sample sample = world.rails[r].now;
	uint64_t administration;

	if (world.now - path->last.time < LOOK || path->written == path->last.acked)
		return;
	sample.time = world.now;
	sample.rtt = 60;
	administration = (uint64_t)(ADMINISTRATION * (double)(sample.sent - sample.left));
	sample.left -= administration < sample.left ? administration : sample.left;
	sample.in_flight = sample.acked != sample.written;
	nezha_estimator_sample(&path->estimator, &sample);
	nezha_ack_delay_look(&path->ack_delay, &sample);
	path->last = sample;
	if (world.known) {
		path->estimator.rate = world.rails[r].rate;
		path->estimator.bounded = false;
		path->estimator.highs = 0;
	}
}

static bool has_room(const struct rail *rail)
{
	return rail->now.written - rail->now.left < SOCKET;
}

static void pump(void)
{
	bool again, other;

	for (int r = 0; r < 2; r++)
		world.link.paths[r].ready = has_room(&world.rails[r]);
	do {
		again = false;
		for (int r = 0; r < 2; r++) {
			struct nezha_path *path = &world.link.paths[r];
			struct nezha_tx *tx;

			while (path->ready && (tx = nezha_deal_next(path, &other))) {
				write_block(r, tx);
				path->ready = has_room(&world.rails[r]);
			}
			again = again || (path->ready && other);
		}
	} while (again);
}

static void turn(void)
{
	world.now += TICK;
	for (int r = 0; r < 2; r++)
		advance(&world.rails[r]);
}

/* ns that a call takes. */
static double call(void)
{
	uint64_t began = world.now, begins;

	world.delivered = 0;
	nezha_deal_anew(&world.link);
	world.team.expected = world.link.expected = (uint64_t)CHUNK * HOPS * BLOCK;
	for (int i = 0; i < (int)(2 * BLOCKS); i++)
		world.tx[i].counted = false;
	for (int i = 0; i < (int)CHUNK; i++)
		nezha_deal_block(&world.link, tx_of(0, i));
	while (world.delivered < (int)CHUNK * HOPS) {
		turn();
		for (int r = 0; r < 2; r++)
			look(r);
		pump();
		assert_true(world.now - began < NEZHA_SEC);
	}
	begins = world.now + 60 * NEZHA_USEC + (uint64_t)(60 * random_part()) * NEZHA_USEC;
	for (double took = (double)(world.now - began);; turn())
		if (world.now >= begins)
			return took;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
	double sorted[AFTER * STEPS];

	memcpy(sorted, values, (size_t)count * sizeof *sorted);
	qsort(sorted, (size_t)count, sizeof *sorted, compare);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static bool is_back(const double *calls, double figure)
{
	for (int i = 0; i < ALLOWED; i++)
		if (calls[i] <= WITHIN * figure)
			return median(calls + i, AFTER - i) <= WITHIN * figure;
	return false;
}

static const double even[2] = { 500, 500 };

/* Steps from 500+500 to `mbits` and back; calls[way][i * AFTER ...]: after the i-th one; way 0: to `mbits`. */
static void step_often(const double *mbits, double noise, unsigned seed, bool known, double calls[2][STEPS * AFTER])
{
	begin_world(even, noise, seed, known);
	for (int i = 0; i < 15; i++)
		call();
	for (int i = 0; i < 2 * STEPS; i++) {
		for (int r = 0; r < 2; r++)
			world.rails[r].rate = (i % 2 ? even : mbits)[r] * MBIT;
		for (int k = 0; k < AFTER; k++)
			calls[i % 2][i / 2 * AFTER + k] = call();
	}
}

/* Of SEEDS * STEPS steps in each direction, how many are not over within ALLOWED calls. */
static void count_late(const double *mbits, double noise, int late_steps[2])
{
	static double known[2][STEPS * AFTER], calls[2][STEPS * AFTER];

	late_steps[0] = late_steps[1] = 0;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		step_often(mbits, noise, seed, true, known);
		step_often(mbits, noise, seed, false, calls);
		for (int way = 0; way < 2; way++)
			for (int i = 0; i < STEPS; i++)
				late_steps[way] += !is_back(&calls[way][i * AFTER], median(known[way], STEPS * AFTER));
	}
}

static void check(double first, double second, double noise, int most)
{
	const double mbits[2] = { first, second };
	int late_steps[2];

	count_late(mbits, noise, late_steps);
	print_message("noise %.1f, of %d steps to %.0f+%.0f %d too late, back %d\n", noise, SEEDS * STEPS, first, second, late_steps[0], late_steps[1]);
	assert_true(late_steps[0] <= most && late_steps[1] <= most);
}

static void test_calm(void **state)
{
	(void)state;
	check(800, 200, 0.3, 1);
	check(500, 200, 0.3, 1);
}

static void test_busy(void **state)
{
	(void)state;
	check(800, 200, 1, 2);
	check(500, 200, 1, 2);
}

static void test_very_busy(void **state)
{
	(void)state;
	check(800, 200, 2, SEEDS * STEPS * 3 / 10);
	check(500, 200, 2, SEEDS * STEPS * 3 / 10);
}

/* Of ten blocks that are dealt out at once, how many the first of two paths gets, of which no more is known than a bound. */
static uint64_t dealt_to_bounded(enum nezha_policy_kind policy, double away)
{
	struct nezha_path *path = &world.link.paths[0];

	begin_world(even, 0, 1, false);
	world.engine.config.policy = policy;
	path->estimator.bounded = path->estimator.doubt = true;
	world.rails[0].now = (struct nezha_path_sample){ .written = BLOCK, .sent = BLOCK, .left = BLOCK, .acked = BLOCK };
	path->written = BLOCK;
	path->last = path->estimator.last = world.rails[0].now;
	path->ack_delay.away = away;
	world.team.expected = world.link.expected = (uint64_t)CHUNK * HOPS * BLOCK;
	for (int i = 0; i < 10; i++)
		nezha_deal_block(&world.link, tx_of(i / (int)CHUNK, i % (int)CHUNK));
	pump();
	assert_true(TAILQ_EMPTY(&world.link.queue));
	return path->written / BLOCK - 1;
}

/* It gets more than it is known to be worth, unless it would not show at the host that that was wrong. */
static void test_deals_by_hope(void **state)
{
	(void)state;
	assert_int_equal(dealt_to_bounded(NEZHA_POLICY_ECF, 0), 6);
	assert_int_equal(dealt_to_bounded(NEZHA_POLICY_ECF, 1), 5);
	assert_int_equal(dealt_to_bounded(NEZHA_POLICY_SLICE, 0), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calm),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_very_busy),
		cmocka_unit_test(test_deals_by_hope),
	};

	return cmocka_run_group_tests_name("steps of the rates", tests, NULL, NULL);
}
