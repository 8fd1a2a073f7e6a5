/* SPDX-License-Identifier: BSD-3-Clause
 * The estimator, fed by a simulated path: a shaper with a burst of 16 KiB, a round trip of 100 us. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "rails/clock.h"
#include "rails/estimator.h"

#define STEP (20 * NEZHA_USEC)
#define MBIT 125000.0

struct path {
	struct nezha_estimator estimator;
	double rate;                  /* bytes per second, the truth */
	double tokens, acked;
	uint64_t now, looked;
	uint64_t written, shut;
	uint64_t look_every;          /* ns */
	uint32_t rtt;                 /* us */
	bool stalled;                 /* nothing passes */
	bool tells;                   /* what has left the host: all that was acknowledged */
	uint64_t dip;                 /* ns: when the path is half as fast, for 6 ms; 0: never */
};

static void begin(struct path *path, double rate, double seed)
{
	*path = (struct path){ .rate = rate, .now = NEZHA_SEC, .look_every = 200 * NEZHA_USEC, .rtt = 100, .tokens = 16384 };
	nezha_estimator_init(&path->estimator, seed);
}

static void look(struct path *path)
{
	double unacked = (double)path->written - path->acked, window = 65536;
	struct nezha_path_sample sample = {
		.time = path->now, .written = path->written, .acked = (uint64_t)path->acked,
		.sent = (uint64_t)(path->acked + fmin(unacked, window)), .shut = path->shut, .rtt = path->rtt,
		.in_flight = unacked > 0,
	};

	sample.left = path->tells ? sample.acked : 0;
	path->looked = path->now;
	nezha_estimator_sample(&path->estimator, &sample);
	assert_true(isfinite(path->estimator.rate) && path->estimator.rate > 0);
}

/* Lets `time` ns pass; looks now and then. */
static void pass(struct path *path, uint64_t time)
{
	for (uint64_t end = path->now + time; path->now < end; path->now += STEP) {
		bool dips = path->now >= path->dip && path->now < path->dip + 6 * NEZHA_MSEC;
		double passes = path->rate / (dips ? 2 : 1) * STEP / NEZHA_SEC;

		path->tokens = fmin(path->tokens + passes, fmax(16384, passes));
		if (!path->stalled) {
			double can = fmin((double)path->written - path->acked, path->tokens);

			path->acked += can;
			path->tokens -= can;
		}
		if (path->now - path->looked >= path->look_every)
			look(path);
	}
}

static void write_bytes(struct path *path, uint64_t bytes)
{
	look(path);
	path->written += bytes;
}

/* Keeps the path backlogged while `bytes` pass. */
static void stream(struct path *path, uint64_t bytes)
{
	while (bytes) {
		uint64_t piece = bytes < 16384 ? bytes : 16384;

		while ((double)path->written - path->acked > fmax(131072, path->rate / 500))
			pass(path, 100 * NEZHA_USEC);
		write_bytes(path, piece);
		bytes -= piece;
	}
	for (int i = 0; i < 100000 && (double)path->written - path->acked >= 1; i++)
		pass(path, 100 * NEZHA_USEC);
	path->acked = (double)path->written;
	pass(path, NEZHA_MSEC);
}

static void assert_near(const struct path *path, double part)
{
	double off = path->estimator.rate / path->rate - 1;

	if (fabs(off) > part)
		fail_msg("the estimate is %.1f Mbit, the truth %.1f", path->estimator.rate / MBIT, path->rate / MBIT);
}

static void test_seed_is_corrected(void **state)
{
	const double truth[] = { 5, 100, 500, 900, 8000 };
	struct path path;

	(void)state;
	for (size_t i = 0; i < sizeof truth / sizeof truth[0]; i++) {
		begin(&path, truth[i] * MBIT, 10000 * MBIT);
		stream(&path, (uint64_t)(truth[i] * MBIT * 0.04) + 131072);
		assert_near(&path, 0.15);
	}
}

static void test_steps_while_busy(void **state)
{
	const double to[] = { 50, 200, 900 };
	struct path path;

	(void)state;
	for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
		begin(&path, 450 * MBIT, 450 * MBIT);
		stream(&path, 4 << 20);
		assert_near(&path, 0.05);
		path.rate = to[i] * MBIT;
		stream(&path, (uint64_t)(path.rate * 0.06));   /* five calls of 12 ms */
		assert_near(&path, 0.12);
	}
}

/* What is believed to be slower gets less to carry, perhaps too little to be measured: it is doubted until a further window
 * says the same. */
static void test_doubts_a_fall(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 450 * MBIT, 450 * MBIT);
	stream(&path, 4 << 20);
	assert_false(path.estimator.doubt);
	path.rate = 225 * MBIT;
	stream(&path, (uint64_t)(path.rate * 19e-3));
	assert_near(&path, 0.1);
	assert_true(path.estimator.doubt);
	stream(&path, (uint64_t)(path.rate * 22e-3));
	assert_false(path.estimator.doubt);
}

/* A single window that is far off, or several that are short, say nothing yet. */
static void test_short_dips(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 450 * MBIT, 450 * MBIT);
	stream(&path, 4 << 20);
	for (int i = 0; i < 2; i++) {
		path.rate = 225 * MBIT;
		stream(&path, (uint64_t)(path.rate * 6e-3));
		path.rate = 450 * MBIT;
		assert_near(&path, 0.05);
	}
}

/* Nor does one in a long call where it is told what leaves the host: the run has told more. */
static void test_dip_in_a_long_call(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 450 * MBIT, 450 * MBIT);
	path.tells = true;
	stream(&path, 4 << 20);
	for (int i = 0; i < 20; i++) {
		path.dip = path.now + (uint64_t)(20 + i) * NEZHA_MSEC;
		stream(&path, 4 << 20);
		assert_near(&path, 0.05);
		assert_false(path.estimator.doubt);
	}
}

/* The rail became nine times faster, but its share keeps it starved, with bursts of 96 KiB only: that raises a doubt,
 * and the probe that the link then sends settles it. */
static void test_doubts_when_starved(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 100 * MBIT, 100 * MBIT);
	stream(&path, 1 << 20);
	assert_false(path.estimator.doubt);
	path.rate = 900 * MBIT;
	for (int i = 0; i < 4; i++) {
		stream(&path, 98304);
		pass(&path, 3 * NEZHA_MSEC);
	}
	assert_true(path.estimator.doubt);
	for (int i = 0; i < 4; i++)
		stream(&path, 2 << 20);
	assert_near(&path, 0.15);
	assert_false(path.estimator.doubt);
}

/* Acknowledgements that come late by up to 2 ms make short busy periods look slow; that must not lower the rate. */
static void test_late_acknowledgements(void **state)
{
	unsigned seed = 3;
	struct path path;
	uint64_t late;

	(void)state;
	begin(&path, 500 * MBIT, 500 * MBIT);
	stream(&path, 4 << 20);
	for (int i = 0; i < 500; i++) {
		write_bytes(&path, 65536);
		late = (unsigned)rand_r(&seed) % 2000 * NEZHA_USEC;
		path.stalled = true;
		pass(&path, late);
		path.stalled = false;
		path.acked = fmin((double)path.written, path.acked + path.rate * (double)late / NEZHA_SEC);
		pass(&path, 2 * NEZHA_MSEC);
	}
	assert_near(&path, 0.2);
}

/* Single blocks that fit the free burst must not be taken for speed, nor their waiting for slowness. */
static void test_deaf_to_bursts_and_starvation(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 100 * MBIT, 100 * MBIT);
	stream(&path, 1 << 20);
	for (int i = 0; i < 200; i++) {
		stream(&path, 16384);
		pass(&path, 5 * NEZHA_MSEC);
	}
	assert_near(&path, 0.1);
}

static void test_deaf_to_a_stall(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 400 * MBIT, 400 * MBIT);
	stream(&path, 4 << 20);
	write_bytes(&path, 1 << 20);
	pass(&path, 2 * NEZHA_MSEC);
	path.stalled = true;
	pass(&path, 45 * NEZHA_MSEC);
	path.stalled = false;
	stream(&path, 4 << 20);
	assert_near(&path, 0.1);
}

static void test_deaf_to_a_shut_window(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 400 * MBIT, 400 * MBIT);
	stream(&path, 4 << 20);
	path.stalled = true;              /* the receiver does not read */
	write_bytes(&path, 1 << 20);
	for (int i = 0; i < 2000; i++) {
		path.shut += 1000;
		pass(&path, NEZHA_MSEC);
	}
	path.stalled = false;
	path.shut += 1000;
	pass(&path, NEZHA_MSEC);
	assert_near(&path, 0.1);
}

static void test_restart_keeps_the_rate(void **state)
{
	struct path path;
	double before;

	(void)state;
	begin(&path, 400 * MBIT, 1000 * MBIT);
	stream(&path, 4 << 20);
	before = path.estimator.rate;
	nezha_estimator_restart(&path.estimator);
	assert_true(path.estimator.rate == before);
	path.written = 0;
	path.acked = 0;
	path.rate = 100 * MBIT;
	stream(&path, 1 << 20);
	assert_near(&path, 0.15);
}

/* TCP's own window grows at first, and with it what the path delivers: the first estimate is new until it is steady. */
static void test_rises_at_first(void **state)
{
	const double part[] = { 0.4, 0.42, 0.5, 0.6, 0.75, 0.9 };
	struct path path;

	(void)state;
	begin(&path, 500 * MBIT, 10000 * MBIT);
	for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
		path.rate = part[i] * 500 * MBIT;
		stream(&path, (uint64_t)(path.rate * 12e-3));
		assert_true(nezha_estimator_is_new(&path.estimator));
	}
	path.rate = 500 * MBIT;
	stream(&path, (uint64_t)(path.rate * 60e-3));
	assert_near(&path, 0.05);
	assert_false(nezha_estimator_is_new(&path.estimator));
}

/* In a new estimate a slow window is taken for a disturbance, most of them slow are not. */
static void test_slow_windows_of_a_new_estimate(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 500 * MBIT, 10000 * MBIT);
	stream(&path, (uint64_t)(path.rate * 12e-3));
	path.rate = 250 * MBIT;
	stream(&path, (uint64_t)(path.rate * 12e-3));
	path.rate = 500 * MBIT;
	stream(&path, (uint64_t)(path.rate * 25e-3));
	assert_near(&path, 0.05);
	path.rate = 250 * MBIT;
	stream(&path, (uint64_t)(path.rate * 200e-3));
	assert_near(&path, 0.05);
}

/* With a seed that is far too high the path never seems to hold enough to be busy; but some of it is not even sent. */
static void test_long_round_trip(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 500 * MBIT, 10000 * MBIT);
	path.rtt = 200;
	stream(&path, (uint64_t)(path.rate * 45e-3));
	assert_true(path.estimator.measured > 2);
	assert_near(&path, 0.05);
}

/* Never measured, it takes what was surely delivered for the rate, and wants to be probed. */
static void test_bound_is_no_measurement(void **state)
{
	struct path path;

	(void)state;
	begin(&path, 500 * MBIT, 10000 * MBIT);
	path.look_every = NEZHA_SEC;
	for (int i = 0; i < 2; i++) {
		write_bytes(&path, 98304);
		pass(&path, 2 * NEZHA_MSEC);
		path.acked = (double)path.written;
		look(&path);
	}
	assert_in_range((uint64_t)(path.estimator.rate / MBIT), 200, 500);
	assert_true(path.estimator.doubt);
	assert_int_equal(path.estimator.measured, 0);
}

/* Packets of 16 KiB at 100 Mbit, in calls so short that only a few of them pass: windows end at acknowledgements. */
static void test_large_packets_of_a_slow_path(void **state)
{
	const uint64_t packet = 16384, every = (uint64_t)(16384 / (100 * MBIT) * NEZHA_SEC);
	struct nezha_estimator estimator;
	struct nezha_path_sample sample = { .time = NEZHA_SEC, .rtt = 10 };

	(void)state;
	nezha_estimator_init(&estimator, 100 * MBIT);
	for (int call = 0; call < 200; call++) {
		uint64_t begin = sample.time, acked = sample.acked;

		nezha_estimator_sample(&estimator, &sample);
		sample.written += 10 * packet;
		while (sample.acked < sample.written) {
			sample.time += 200 * NEZHA_USEC;
			sample.acked = acked + (sample.time - begin) / every * packet;
			sample.sent = sample.written;
			nezha_estimator_sample(&estimator, &sample);
		}
		sample.time += 3 * NEZHA_MSEC;
	}
	assert_in_range((uint64_t)(estimator.rate / MBIT), 93, 107);
}

/* Looks that come late and in lumps, as on a host with more ranks than cores. */
static void test_lumpy_looks(void **state)
{
	unsigned seed = 7;
	struct path path;

	(void)state;
	begin(&path, 500 * MBIT, 10000 * MBIT);
	for (int i = 0; i < 50; i++) {
		path.look_every = (100 + (unsigned)rand_r(&seed) % 2000) * NEZHA_USEC;
		stream(&path, 1 << 19);
	}
	assert_near(&path, 0.15);
}

/* A path that gets a block now and then, is not looked at while it has none, and only some time after the next one
 * began: its pauses are not slowness, even if it passed the last block sooner than believed. */
static void test_pauses(void **state)
{
	const uint64_t block = 1 << 19, buffer = 330000;
	const double rate = 500 * MBIT;
	struct nezha_path_sample sample = { .time = NEZHA_SEC, .rtt = 100 };
	struct nezha_estimator estimator;

	(void)state;
	nezha_estimator_init(&estimator, 0.96 * rate);
	for (int i = 0; i < 100; i++) {
		uint64_t begun = sample.time + 8 * NEZHA_MSEC, before = sample.acked;

		sample.time = begun + NEZHA_MSEC;
		while (sample.acked < before + block) {
			uint64_t passed = 16384 + (uint64_t)(rate * (double)(sample.time - begun) / NEZHA_SEC);

			sample.acked = before + (passed < block ? passed : block);
			sample.written = passed + buffer < block ? before + passed + buffer : before + block;
			sample.sent = sample.written;
			nezha_estimator_sample(&estimator, &sample);
			sample.time += 300 * NEZHA_USEC;
		}
		assert_in_range((uint64_t)(estimator.rate / MBIT), 450, 550);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seed_is_corrected),
		cmocka_unit_test(test_steps_while_busy),
		cmocka_unit_test(test_doubts_a_fall),
		cmocka_unit_test(test_short_dips),
		cmocka_unit_test(test_dip_in_a_long_call),
		cmocka_unit_test(test_doubts_when_starved),
		cmocka_unit_test(test_late_acknowledgements),
		cmocka_unit_test(test_deaf_to_bursts_and_starvation),
		cmocka_unit_test(test_deaf_to_a_stall),
		cmocka_unit_test(test_deaf_to_a_shut_window),
		cmocka_unit_test(test_restart_keeps_the_rate),
		cmocka_unit_test(test_rises_at_first),
		cmocka_unit_test(test_slow_windows_of_a_new_estimate),
		cmocka_unit_test(test_long_round_trip),
		cmocka_unit_test(test_bound_is_no_measurement),
		cmocka_unit_test(test_large_packets_of_a_slow_path),
		cmocka_unit_test(test_lumpy_looks),
		cmocka_unit_test(test_pauses),
	};

	return cmocka_run_group_tests_name("estimator", tests, NULL, NULL);
}
