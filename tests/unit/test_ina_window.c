/* SPDX-License-Identifier: BSD-3-Clause
 * A rank's window towards an aggregator, over a network made up here: a link of one chunk in so many ns with a queue of so many
 * chunks before it, which may lose. */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rails/ina_window.h"

#define SLOTS 256
#define TRIP (200 * NEZHA_USEC)          /* without any queue */
#define EACH (24 * NEZHA_USEC)           /* 1500 bytes at 500 Mbit/s */
#define FLIGHT_MOST 4096

struct net {
	struct nezha_ina_window window;
	uint64_t now, free;              /* when the link has sent all it has */
	uint32_t queue;                  /* chunks that fit before it */
	int loss;                        /* per cent */
	struct { uint32_t seq; uint64_t at; } flight[FLIGHT_MOST];
	uint32_t head, tail;
	uint64_t sent, dropped;
};

static uint32_t seed;

static bool happens(int percent)
{
	seed = seed * 1664525u + 1013904223u;
	return (int)((seed >> 8) % 100) < percent;
}

static void send_one(struct net *net, uint32_t seq)
{
	uint64_t begin = net->free > net->now ? net->free : net->now;

	net->sent++;
	nezha_ina_window_sent(&net->window, seq, net->now);
	if ((begin - net->now) / EACH >= net->queue || happens(net->loss)) {
		net->dropped++;
		return;
	}
	net->free = begin + EACH;
	assert_true(net->head - net->tail < FLIGHT_MOST);
	net->flight[net->head % FLIGHT_MOST].seq = seq;
	net->flight[net->head++ % FLIGHT_MOST].at = net->free + TRIP;
}

static void step(struct net *net)
{
	uint32_t lost[32], count;

	while (net->tail != net->head && net->flight[net->tail % FLIGHT_MOST].at <= net->now)
		nezha_ina_window_answered(&net->window, net->flight[net->tail++ % FLIGHT_MOST].seq, net->now);
	count = nezha_ina_window_lost(&net->window, lost, 32, net->now);
	for (uint32_t i = 0; i < count; i++)
		send_one(net, lost[i]);
	while (nezha_ina_window_room(&net->window)) {
		assert_true(net->window.next - net->window.first < SLOTS);
		send_one(net, net->window.next);
	}
	count = nezha_ina_window_asks(&net->window, lost, 32, net->now);
	for (uint32_t i = 0; i < count; i++)
		send_one(net, lost[i]);
}

/* How long `chunks` take, in ns. */
static uint64_t run(struct net *net, uint32_t chunks)
{
	uint64_t began = net->now;

	nezha_ina_window_begin(&net->window, chunks, net->now);
	while (nezha_ina_window_busy(&net->window)) {
		step(net);
		net->now += 10 * NEZHA_USEC;
		assert_true(net->now - began < 60 * NEZHA_SEC);
	}
	return net->now - began;
}

static struct net *make(uint32_t queue, int loss)
{
	struct net *net = calloc(1, sizeof *net);

	nezha_ina_window_open(&net->window, SLOTS);
	net->queue = queue;
	net->loss = loss;
	net->now = NEZHA_SEC;
	return net;
}

static void test_full_rate(void **state)
{
	struct net *net = make(170, 0);

	(void)state;
	assert_true(run(net, 20000) < 20000 * EACH * 102 / 100);
	assert_true(net->dropped < 200);
	assert_true(run(net, 1) < TRIP + EACH + 20 * NEZHA_USEC);
	free(net);
}

/* A shallow queue: what is too much is not sent again and again. */
static void test_shallow_queue(void **state)
{
	struct net *net = make(20, 0);

	(void)state;
	assert_true(run(net, 20000) < 20000 * EACH * 11 / 10);
	assert_true(net->dropped < net->sent / 8);
	free(net);
}

static void test_bad_link(void **state)
{
	struct net *net = make(170, 1), *bad = make(170, 8);

	(void)state;
	assert_true(run(net, 20000) < 20000 * EACH * 105 / 100);
	assert_true(net->sent < 20000 * 105 / 100);
	assert_true(run(bad, 20000) < 20000 * EACH * 115 / 100);
	assert_true(bad->sent < 20000 * 112 / 100);
	free(net);
	free(bad);
}

/* Nothing comes back at all: the oldest is asked for again, and not more often than every 10 ms. */
static void test_silence(void **state)
{
	struct net *net = make(170, 100);
	uint64_t first;

	(void)state;
	nezha_ina_window_begin(&net->window, 1000, net->now);
	step(net);
	first = net->sent;
	assert_true(first > 0 && first <= SLOTS);
	for (int i = 0; i < 1000; i++) {
		net->now += 100 * NEZHA_USEC;
		step(net);
	}
	assert_in_range(net->sent - first, 9, 10);
	free(net);
}

/* A call all of which goes out at once, and much of it is lost, by a queue that is shallow: soon mended, and the next call is more careful. */
static void test_burst(void **state)
{
	struct net *net = make(20, 0);
	uint64_t dropped;

	(void)state;
	run(net, 1);
	for (int i = 0; i < 3; i++) {
		dropped = net->dropped;
		assert_true(run(net, 64) < 25 * NEZHA_MSEC);
	}
	assert_true(net->dropped - dropped < 20);
	free(net);
}

/* Numbers wrap. */
static void test_wrap(void **state)
{
	struct net *net = make(170, 3);

	(void)state;
	net->window.next = UINT32_MAX - 500;
	run(net, 2000);
	assert_int_equal(net->window.first, 1499);
	free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_rate),
		cmocka_unit_test(test_shallow_queue),
		cmocka_unit_test(test_bad_link),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_wrap),
	};

	return cmocka_run_group_tests_name("ina_window", tests, NULL, NULL);
}
