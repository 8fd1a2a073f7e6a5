/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <math.h>

#include "rails/clock.h"
#include "rails/departures.h"

#define PACKET 12288u
#define LONGEST 5e-3
#define LOOK (130 * NEZHA_USEC)

/* An interface that lets one packet go each ms, looked at every 130 us. */
struct bed {
	struct nezha_departures departures;
	struct nezha_path_sample last;
	bool counts;
};

static void begin(struct bed *bed)
{
	*bed = (struct bed){ .last = { .time = NEZHA_SEC }, .counts = true };
}

/* `gone` of `sent` bytes are found to have left, 130 us after the last look. */
static void look(struct bed *bed, uint64_t sent, uint64_t gone)
{
	struct nezha_path_sample sample = {
		.time = bed->last.time + LOOK, .written = sent, .sent = sent, .left = gone, .in_flight = true,
	};

	nezha_departures_add(&bed->departures, &bed->last, &sample, bed->counts, LONGEST);
	bed->last = sample;
}

/* Not looked at for `pause` ns, then `packets` are written and leave, one a ms, and those that wait are told with their
 * administration.  The last look finds all acknowledged; late: the last packet is not yet known to have left. */
static void call(struct bed *bed, int packets, uint64_t pause, bool late)
{
	uint64_t before = bed->last.sent, sent = before + (uint64_t)packets * PACKET, begun = bed->last.time + pause;
	struct nezha_path_sample sample = { .time = begun, .written = sent, .sent = sent, .acked = before };
	uint64_t gone;

	do {
		gone = before + (sample.time - begun) / NEZHA_MSEC * PACKET;
		sample.left = gone - (sent - gone) / 16;
		nezha_departures_add(&bed->departures, &bed->last, &sample, true, LONGEST);
		bed->last = sample;
		sample.time += LOOK;
	} while (gone + (late ? PACKET : 0) < sent);
	bed->last.acked = sent;
}

/* All that was sent so far has arrived. */
static void begin_idle(struct bed *bed)
{
	begin(bed);
	bed->last.written = bed->last.sent = bed->last.acked = bed->last.left = 1 << 20;
}

static double rate(const struct bed *bed)
{
	return bed->departures.bytes / bed->departures.time;
}

/* Calls that are busy for 4 ms, and all together for 240: only the stretches count, and from departure to departure. */
static void test_put_together(void **state)
{
	struct bed bed;

	(void)state;
	begin_idle(&bed);
	for (int i = 0; i < 60; i++)
		call(&bed, 4, 4 * NEZHA_MSEC, false);
	assert_true(bed.departures.time > 0.06 && bed.departures.time < 0.24);
	assert_true(fabs(rate(&bed) / (PACKET * 1000.0) - 1) < 0.1);
}

/* The interface tells late that the last of it has left: after a pause that is no work of 4 ms. */
static void test_late_completion(void **state)
{
	struct bed bed;

	(void)state;
	begin_idle(&bed);
	for (int i = 0; i < 60; i++)
		call(&bed, 4, 4 * NEZHA_MSEC, true);
	assert_true(fabs(rate(&bed) / (PACKET * 1000.0) - 1) < 0.1);
}

/* Of a path that hardly ever has anything waiting, the odd stretches are not put together. */
static void test_old_stretches(void **state)
{
	struct bed bed;

	(void)state;
	begin_idle(&bed);
	call(&bed, 4, 0, false);
	assert_true(bed.departures.time > 0);
	for (int i = 0; i < 400; i++)
		call(&bed, 1, 4 * NEZHA_MSEC, false);
	assert_true(bed.departures.time == 0 && bed.departures.bytes == 0);
}

/* What was written at one look and had left by the next may have left at once: nothing is known of its rate. */
static void test_deaf_to_what_did_not_wait(void **state)
{
	uint64_t bytes = 0;
	struct bed bed;

	(void)state;
	begin(&bed);
	for (int i = 0; i < 100; i++) {
		look(&bed, bytes + 40000, bytes);
		bytes += 40000;
		look(&bed, bytes, bytes);
	}
	assert_true(bed.departures.bytes == 0 && bed.departures.time == 0);
}

/* What TCP's window keeps in the socket is not the interface's: only what was sent. */
static void test_deaf_to_the_window(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	for (uint64_t i = 1; i < 100; i++) {
		struct nezha_path_sample sample = {
			.time = bed.last.time + LOOK, .written = 10 << 20, .sent = i * 20000, .left = i * 20000, .in_flight = true,
		};

		nezha_departures_add(&bed.departures, &bed.last, &sample, true, LONGEST);
		bed.last = sample;
	}
	assert_true(bed.departures.bytes == 0 && bed.departures.time == 0);
}

/* A transport that does not tell says 0. */
static void test_untold(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	for (uint64_t i = 1; i < 100; i++) {
		struct nezha_path_sample sample = {
			.time = bed.last.time + LOOK, .written = 10 << 20, .sent = 10 << 20, .acked = i * 20000, .in_flight = true,
		};

		nezha_departures_add(&bed.departures, &bed.last, &sample, true, LONGEST);
		bed.last = sample;
	}
	assert_true(bed.departures.bytes == 0 && bed.departures.time == 0);
}

/* As packets are made of it, less of what waits seems to have left; that is neither a departure nor counted twice. */
static void test_administration(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	look(&bed, 1 << 20, 0);
	look(&bed, 1 << 20, 10000);
	look(&bed, 1 << 20, 20000);
	look(&bed, 1 << 20, 19000);
	look(&bed, 1 << 20, 30000);
	assert_true(bed.departures.bytes == 20000);
	assert_true(fabs(bed.departures.time - 390e-6) < 1e-9);
}

static void test_deaf_to_a_stall(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	look(&bed, 1 << 20, 0);
	look(&bed, 1 << 20, 10000);
	look(&bed, 1 << 20, 20000);
	for (int i = 0; i < 40; i++)
		look(&bed, 1 << 20, 20000);
	look(&bed, 1 << 20, 30000);
	look(&bed, 1 << 20, 40000);
	assert_true(bed.departures.bytes == 20000);
	assert_true(fabs(bed.departures.time - 260e-6) < 1e-9);
}

/* An interval that does not count breaks a stretch. */
static void test_what_does_not_count(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	look(&bed, 1 << 20, 0);
	look(&bed, 1 << 20, 10000);
	bed.counts = false;
	look(&bed, 1 << 20, 500000);
	bed.counts = true;
	look(&bed, 1 << 20, 510000);
	assert_true(bed.departures.bytes == 0);
	look(&bed, 1 << 20, 520000);
	assert_true(bed.departures.bytes == 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_together),
		cmocka_unit_test(test_late_completion),
		cmocka_unit_test(test_old_stretches),
		cmocka_unit_test(test_deaf_to_what_did_not_wait),
		cmocka_unit_test(test_deaf_to_the_window),
		cmocka_unit_test(test_untold),
		cmocka_unit_test(test_administration),
		cmocka_unit_test(test_deaf_to_a_stall),
		cmocka_unit_test(test_what_does_not_count),
	};

	return cmocka_run_group_tests_name("departures", tests, NULL, NULL);
}
