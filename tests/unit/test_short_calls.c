/* SPDX-License-Identifier: BSD-3-Clause
 * What the estimator learns from calls of 256 KiB, in which no run comes about: a rail gets six portions, one for each step of
 * the ring, in packets of 12 KiB.  They leave through a shaper with a burst of 16 KiB, and are acknowledged up to 1 ms later.  What
 * waits is told with its administration, as by the kernel. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "rails/clock.h"
#include "rails/estimator.h"

#define MBIT 125000.0
#define PACKET 12288u
#define PACKETS 64
#define STEP_TIME (550 * NEZHA_USEC)
#define LOOK (200 * NEZHA_USEC)
#define ADMINISTRATION 0.07

struct path {
	struct nezha_estimator estimator;
	double rate;                            /* of the shaper, bytes per second */
	bool tells;                             /* what has left the host */
	double local;                           /* the shaper is a switch's, and the host's own interface so many times as fast; 0: it is the host's */
	unsigned seed;
	uint64_t now;
	uint64_t free;                          /* when the shaper has passed what it was given, burst and all */
	uint64_t written, base;
	uint64_t interface;                     /* when the host's own interface has sent what it was given */
	uint64_t leaves[PACKETS], acked[PACKETS];
	int packets;                            /* of this call */
};

static void begin(struct path *path, double rate)
{
	*path = (struct path){ .rate = rate, .now = NEZHA_SEC, .tells = true, .seed = 5 };
	nezha_estimator_init(&path->estimator, 10000 * MBIT);
}

static void write_packet(struct path *path)
{
	uint64_t takes = (uint64_t)(PACKET / path->rate * NEZHA_SEC), burst = (uint64_t)(16384 / path->rate * NEZHA_SEC);
	uint64_t late = (100 + (unsigned)rand_r(&path->seed) % 900) * NEZHA_USEC, i = (uint64_t)path->packets++;

	assert_true(i < PACKETS);
	path->free = (path->free > path->now ? path->free : path->now) + takes;
	path->leaves[i] = path->free > path->now + burst ? path->free - burst : path->now;
	path->acked[i] = path->leaves[i] + late;
	if (path->local > 0) {
		path->interface = (path->interface > path->now ? path->interface : path->now) + (uint64_t)((double)takes / path->local);
		path->leaves[i] = path->interface;
	}
	if (i && path->acked[i] < path->acked[i - 1])
		path->acked[i] = path->acked[i - 1];
	path->written += PACKET;
}

static uint64_t passed(const struct path *path, const uint64_t *times)
{
	uint64_t bytes = path->base;

	for (int i = 0; i < path->packets && times[i] <= path->now; i++)
		bytes += PACKET;
	return bytes;
}

static void look(struct path *path)
{
	struct nezha_path_sample sample = {
		.time = path->now, .written = path->written, .sent = path->written, .rtt = 50,
		.acked = passed(path, path->acked),
	};
	uint64_t administration;

	sample.left = passed(path, path->leaves);
	administration = (uint64_t)(ADMINISTRATION * (double)(path->written - sample.left));
	sample.left = path->tells && administration < sample.left ? sample.left - administration : 0;
	sample.in_flight = sample.acked != sample.written;
	nezha_estimator_sample(&path->estimator, &sample);
	assert_true(isfinite(path->estimator.rate) && path->estimator.rate > 0);
}

/* A call that gives the path `packets` in six portions. */
static void call(struct path *path, int packets)
{
	uint64_t begun = path->now;

	path->base = path->written;
	path->packets = 0;
	path->free = path->free > path->now ? path->free : path->now;
	for (int step = 0; step < 6 || path->acked[path->packets - 1] > path->now; step++) {
		for (int i = packets * step / 6; step < 6 && i < packets * (step + 1) / 6; i++)
			write_packet(path);
		for (uint64_t end = begun + (uint64_t)(step + 1) * STEP_TIME; path->now < end; path->now += LOOK)
			look(path);
	}
	look(path);
	path->now += 50 * NEZHA_USEC;
}

/* A path that has been measured at `rate`, by long calls. */
static void settle(struct path *path, double rate)
{
	begin(path, rate);
	for (int i = 0; i < 40; i++)
		call(path, PACKETS);
	assert_false(nezha_estimator_is_new(&path->estimator));
	assert_true(fabs(path->estimator.rate / rate - 1) < 0.05);
}

static int calls_until_near(struct path *path, int packets, double part, int most)
{
	for (int calls = 1; calls <= most; calls++) {
		call(path, packets);
		if (fabs(path->estimator.rate / path->rate - 1) < part)
			return calls;
	}
	return most + 1;
}

/* The rail gets 108 KiB in each call, which it can pass in 4.5 ms, some 3 of them with more to come. */
static void test_finds_a_fall(void **state)
{
	struct path path;

	(void)state;
	settle(&path, 470 * MBIT);
	path.rate = 190 * MBIT;
	assert_in_range(calls_until_near(&path, 9, 0.2, 20), 2, 4);
	assert_false(path.estimator.doubt);
}

/* Where the transport does not tell what has left the host nothing wrong is believed. */
static void test_untold(void **state)
{
	struct path path;

	(void)state;
	settle(&path, 470 * MBIT);
	path.tells = false;
	path.rate = 190 * MBIT;
	for (int i = 0; i < 20; i++) {
		call(&path, 9);
		assert_true(path.estimator.rate > 170 * MBIT && path.estimator.rate < 500 * MBIT);
	}
}

/* 28 KiB in each step, drained before the next one: what was delivered in calls tells, whether or not what has left is told. */
static void test_finds_a_rise(void **state)
{
	struct path path;

	(void)state;
	for (int tells = 0; tells < 2; tells++) {
		settle(&path, 190 * MBIT);
		path.tells = tells;
		path.rate = 470 * MBIT;
		for (int i = 0; i < 3; i++)
			call(&path, 14);
		assert_true(path.estimator.rate > 280 * MBIT && path.estimator.rate < 1.1 * 470 * MBIT);
		assert_true(path.estimator.doubt != (path.estimator.rate > 0.85 * 470 * MBIT));
	}
}

/* What is known but for a lower bound has little waiting: half a window of it tells more, at once. */
static void test_measures_what_is_bounded(void **state)
{
	struct path path;

	(void)state;
	settle(&path, 190 * MBIT);
	path.rate = 470 * MBIT;
	for (int i = 0; i < 10 && !path.estimator.bounded; i++)
		call(&path, 14);
	assert_true(path.estimator.bounded);
	for (int i = 0; i < 3; i++)
		call(&path, 16);
	assert_false(path.estimator.bounded);
	assert_true(fabs(path.estimator.rate / path.rate - 1) < 0.15);
}

/* A rail that is given its part, by what is hoped of it, of calls of 384 KiB beside another of 470 Mbit, and a little more than it seems
 * worth, as one that runs dry is.  Returns after how many calls it is known. */
static int calls_until_known(struct path *path, int most)
{
	for (int calls = 1; calls <= most; calls++) {
		double hoped = nezha_estimator_hoped(&path->estimator);

		call(path, (int)fmax(11, lround(32 * hoped / (hoped + 470 * MBIT))));
		if (!path->estimator.bounded && fabs(path->estimator.rate / path->rate - 1) < 0.15)
			return calls;
	}
	return most + 1;
}

/* What a path is given bounds what it is seen to deliver: more than that is hoped of it, until it is measured. */
static void test_hopes_for_more(void **state)
{
	struct path path;

	(void)state;
	settle(&path, 190 * MBIT);
	assert_true(nezha_estimator_hoped(&path.estimator) == path.estimator.rate);
	path.rate = 470 * MBIT;
	assert_in_range(calls_until_known(&path, 40), 2, 8);
	assert_true(nezha_estimator_hoped(&path.estimator) < 1.15 * path.rate);

	settle(&path, 190 * MBIT);
	path.tells = false;
	path.rate = 470 * MBIT;
	for (int i = 0; i < 5; i++) {
		call(&path, 14);
		assert_true(nezha_estimator_hoped(&path.estimator) == path.estimator.rate);
	}
	assert_true(path.estimator.bounded);
}

static bool hopes(const struct nezha_estimator *estimator)
{
	return nezha_estimator_hoped(estimator) > 1.3 * estimator->rate;
}

/* A single bound is hoped for at once, but not for ever; what is bounded, until its doubt is settled, by a new connection as well. */
static void test_hope_ends(void **state)
{
	struct path path;
	struct nezha_estimator later;

	(void)state;
	settle(&path, 190 * MBIT);
	path.rate = 470 * MBIT;
	for (int i = 0; i < 10 && !path.estimator.highs; i++)
		call(&path, 12);
	assert_int_equal(path.estimator.highs, 1);
	assert_false(path.estimator.bounded);
	assert_true(hopes(&path.estimator));
	later = path.estimator;
	later.last.written += 2 << 20;
	assert_false(hopes(&later));

	for (int i = 0; i < 10 && !path.estimator.bounded; i++)
		call(&path, 12);
	assert_true(path.estimator.bounded && hopes(&path.estimator));
	later = path.estimator;
	later.doubt = false;    /* by a probe, which told nothing */
	later.highs = 0;
	assert_false(hopes(&later));
	later = path.estimator;
	nezha_estimator_restart(&later);
	assert_true(later.bounded && later.doubt);
	later.last.left = 1;
	assert_true(hopes(&later));
}

/* Late acknowledgements and pauses do not move what is right. */
static void test_steady(void **state)
{
	const int packets[] = { 2, 6, 12, 18, 24 };
	struct path path;

	(void)state;
	for (size_t k = 0; k < sizeof packets / sizeof *packets; k++) {
		settle(&path, 470 * MBIT);
		for (int i = 0; i < 500; i++) {
			call(&path, packets[k]);
			assert_true(fabs(path.estimator.rate / path.rate - 1) < 0.12);
		}
	}
}

/* What a switch holds back leaves the host at the speed of its own interface: that is not the path's. */
static void test_held_back_afar(void **state)
{
	struct path path;

	(void)state;
	settle(&path, 190 * MBIT);
	path.local = 50;
	for (int i = 0; i < 100; i++) {
		call(&path, 9);
		assert_true(fabs(path.estimator.rate / path.rate - 1) < 0.15);
	}
}

/* Where the host's own interface is hardly faster than the switch long calls set right what short ones may have found. */
static void test_held_back_nearby(void **state)
{
	struct path path;

	(void)state;
	settle(&path, 330 * MBIT);
	path.local = 1.4;
	for (int i = 0; i < 20; i++)
		call(&path, 14);
	for (int i = 0; i < 20; i++) {
		call(&path, PACKETS);
		assert_true(i < 2 || fabs(path.estimator.rate / path.rate - 1) < 0.1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_a_fall),
		cmocka_unit_test(test_untold),
		cmocka_unit_test(test_finds_a_rise),
		cmocka_unit_test(test_measures_what_is_bounded),
		cmocka_unit_test(test_hopes_for_more),
		cmocka_unit_test(test_hope_ends),
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_held_back_afar),
		cmocka_unit_test(test_held_back_nearby),
	};

	return cmocka_run_group_tests_name("estimator, short calls", tests, NULL, NULL);
}
