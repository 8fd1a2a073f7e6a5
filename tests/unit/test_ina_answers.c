/* SPDX-License-Identifier: BSD-3-Clause
 * A rank's window towards an aggregator, answer by answer: which chunks are lost, what is asked for, and what says nothing about the
 * network. */
#include "tests/unit/unit.h"

#include <stdbool.h>

#include "rails/ina_window.h"

#define SLOTS 256

/* What a rank sends again when it looks: what is lost, else what is to be asked for.  At most 32. */
static uint32_t to_repeat(struct nezha_ina_window *window, uint32_t *seqs, uint64_t now)
{
	uint32_t count = nezha_ina_window_lost(window, seqs, 32, now);

	return count ? count : nezha_ina_window_asks(window, seqs, 32, now);
}

/* Sends `count` chunks for the first time, `apart` from each other, and answers the first of them after `trip`, so that one is known. */
static void send_some(struct nezha_ina_window *window, uint32_t count, uint64_t apart, uint64_t trip, uint64_t *now)
{
	nezha_ina_window_open(window, SLOTS);
	nezha_ina_window_begin(window, count, *now);
	for (uint32_t seq = 0; seq < count; seq++, *now += apart)
		nezha_ina_window_sent(window, seq, *now);
	*now += trip - count * apart;
	assert_true(nezha_ina_window_answered(window, 0, *now));
}

/* A rank that is late says nothing of losses: not all is sent again when its contribution comes. */
static void test_late_rank(void **state)
{
	struct nezha_ina_window window;
	uint32_t lost[32];
	uint64_t now = NEZHA_SEC;

	(void)state;
	nezha_ina_window_open(&window, SLOTS);
	nezha_ina_window_begin(&window, 50, now);
	while (nezha_ina_window_room(&window))
		nezha_ina_window_sent(&window, window.next, now);
	assert_int_equal(window.next, 50);
	now += NEZHA_INA_RTO;
	assert_int_equal(nezha_ina_window_asks(&window, lost, 32, now), 1);
	assert_int_equal(lost[0], 0);
	nezha_ina_window_sent(&window, 0, now);
	nezha_ina_window_waits(&window, 0);
	now += NEZHA_INA_RTO;
	assert_int_equal(nezha_ina_window_asks(&window, lost, 32, now), 1);
	nezha_ina_window_sent(&window, 0, now);
	now += 10 * NEZHA_MSEC;
	assert_true(nezha_ina_window_answered(&window, 0, now));
	assert_int_equal(nezha_ina_window_lost(&window, lost, 32, now), 0);
	assert_false(nezha_ina_window_answered(&window, 0, now));
	assert_false(nezha_ina_window_answered(&window, 50, now));
	for (uint32_t seq = 1; seq < 50; seq++)
		assert_true(nezha_ina_window_answered(&window, seq, now));
	assert_false(nezha_ina_window_busy(&window));
}

/* Three chunks are lost, by whichever rank.  That one of them is answered when it was sent again tells that all ranks had come as far as
 * its first sending, not that they have sent all that went before the second.  One that waits for others has time until it is the oldest. */
static void test_sent_again(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC;
	uint32_t lost[32];

	(void)state;
	send_some(&window, 60, 20 * NEZHA_USEC, 2 * NEZHA_MSEC, &now);
	for (uint32_t seq = 1; seq < 45; seq++)
		if (seq != 5 && seq != 15 && seq != 25)
			nezha_ina_window_answered(&window, seq, now);
	assert_int_equal(nezha_ina_window_lost(&window, lost, 32, now), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(lost[i], 5 + 10 * i);
		nezha_ina_window_sent(&window, lost[i], now);
	}
	now += NEZHA_MSEC;
	assert_true(nezha_ina_window_answered(&window, 15, now));
	assert_int_equal(nezha_ina_window_lost(&window, lost, 32, now), 0);
	nezha_ina_window_waits(&window, 25);
	now += 2 * window.smooth;
	assert_int_equal(nezha_ina_window_lost(&window, lost, 32, now), 1);
	assert_int_equal(lost[0], 5);
	window.newest = now;                                      /* one that was sent since has been answered: nobody is late */
	assert_int_equal(nezha_ina_window_lost(&window, lost, 2, now), 2);
	assert_int_equal(lost[1], 25);
	window.newest = NEZHA_SEC;
	assert_true(nezha_ina_window_answered(&window, 5, now));
	assert_int_equal(nezha_ina_window_lost(&window, lost, 32, now), 1);
	assert_int_equal(lost[0], 25);
}

/* What was sent again is so once more after a round trip and a bit, then after twice that, and so on, up to NEZHA_INA_RTO. */
static void test_pauses(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC, pause, before = 0;
	uint32_t lost[32];

	(void)state;
	send_some(&window, 60, 20 * NEZHA_USEC, 2 * NEZHA_MSEC, &now);
	for (uint32_t seq = 2; seq < 60; seq++)
		nezha_ina_window_answered(&window, seq, now);
	assert_int_equal(nezha_ina_window_lost(&window, lost, 32, now), 1);
	for (int i = 0; i < 8; i++, before = pause) {
		assert_int_equal(lost[0], 1);
		nezha_ina_window_sent(&window, 1, now);
		for (pause = 0; nezha_ina_window_lost(&window, lost, 32, now) == 0; pause += 100 * NEZHA_USEC)
			now += 100 * NEZHA_USEC;
		assert_in_range(pause, window.smooth > NEZHA_MSEC ? window.smooth : NEZHA_MSEC, NEZHA_INA_RTO);
		assert_true(pause == NEZHA_INA_RTO || pause > 3 * before / 2);
	}
	assert_true(before == NEZHA_INA_RTO);
}

/* The last chunks are lost, which no later one tells: the oldest is asked for after two round trips, not after NEZHA_INA_RTO, and when
 * its answer has come two are, and so on; while none comes, after pauses that double. */
static void test_tail(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC, began;
	uint32_t asked[32], count;

	(void)state;
	send_some(&window, 10, 20 * NEZHA_USEC, 2 * NEZHA_MSEC, &now);
	for (uint32_t seq = 1; seq < 5; seq++)
		nezha_ina_window_answered(&window, seq, now);
	began = now;
	while (!(count = nezha_ina_window_asks(&window, asked, 32, now)))
		now += 100 * NEZHA_USEC;
	assert_in_range(now - began, window.smooth, 3 * window.smooth);
	assert_int_equal(count, 1);
	assert_int_equal(asked[0], 5);
	nezha_ina_window_sent(&window, 5, now);
	assert_int_equal(nezha_ina_window_asks(&window, asked, 32, now + 3 * window.smooth), 0);
	now += window.smooth;
	assert_true(nezha_ina_window_answered(&window, 5, now));
	now += 2 * window.smooth;
	assert_int_equal(nezha_ina_window_asks(&window, asked, 32, now), 2);
	assert_int_equal(asked[0], 6);
	assert_int_equal(asked[1], 7);
	assert_int_equal(nezha_ina_window_asks(&window, asked, 32, now + 3 * window.smooth), 0);
	assert_int_equal(nezha_ina_window_asks(&window, asked, 32, now + 4 * window.smooth), 4);
	for (int i = 0; i < 100; i++, now += NEZHA_INA_RTO)
		assert_int_equal(nezha_ina_window_asks(&window, asked, 32, now + 4 * NEZHA_INA_RTO), 4);
	for (uint32_t seq = 6; seq < 10; seq++)
		assert_true(nezha_ina_window_answered(&window, seq, now));
	assert_int_equal(nezha_ina_window_asks(&window, asked, 32, now + NEZHA_SEC), 0);
}

/* A rank is 10 ms late, call for call: that is no loss and no measure of the round trip. */
static void test_late_calls(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC, trip;
	uint32_t seqs[32], sent = 0;

	(void)state;
	send_some(&window, 1, 0, 300 * NEZHA_USEC, &now);
	trip = window.smooth;
	for (int i = 0; i < 40; i++) {
		nezha_ina_window_begin(&window, 2, now);
		while (nezha_ina_window_room(&window))
			nezha_ina_window_sent(&window, window.next, now);
		for (int k = 0; k < 100; k++, now += 100 * NEZHA_USEC) {
			uint32_t count = to_repeat(&window, seqs, now);

			for (uint32_t j = 0; j < count; j++, sent++) {
				nezha_ina_window_sent(&window, seqs[j], now);
				nezha_ina_window_waits(&window, seqs[j]);
			}
		}
		while (window.first != window.end)
			assert_true(nezha_ina_window_answered(&window, window.first, now));
	}
	assert_true(window.room >= 64);
	assert_true(window.smooth < 2 * trip);
	assert_in_range(sent, 40, 40 * 6);
}

/* A rank stops in the middle of what was sent at once, one of it is lost, and in the end all is answered late: no measure. */
static void test_stop(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC, trip;
	uint32_t seqs[32];

	(void)state;
	send_some(&window, 1, 0, 300 * NEZHA_USEC, &now);
	trip = window.smooth;
	nezha_ina_window_begin(&window, 40, now);
	while (nezha_ina_window_room(&window))
		nezha_ina_window_sent(&window, window.next, now);
	now += trip;
	for (int i = 0; i < 10; i++)
		assert_true(nezha_ina_window_answered(&window, window.first, now));
	now += 3 * NEZHA_MSEC;
	assert_int_equal(nezha_ina_window_asks(&window, seqs, 32, now), 1);
	nezha_ina_window_sent(&window, seqs[0], now);
	nezha_ina_window_waits(&window, seqs[0]);
	now += 30 * NEZHA_MSEC;
	while (window.first != window.end)
		assert_true(nezha_ina_window_answered(&window, window.first, now));
	assert_true(window.smooth < 2 * trip);
}

/* In a queue of others, or on processors that are shared, trips are long for good: some chunks are on their way all the same. */
static void test_others_queue(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC;
	uint32_t seqs[32];

	(void)state;
	send_some(&window, 1, 0, 100 * NEZHA_USEC, &now);
	window.room = window.threshold = 4;
	for (int i = 0; i < 100; i++) {
		nezha_ina_window_begin(&window, 40, now);
		while (nezha_ina_window_busy(&window)) {
			uint32_t from = window.first;

			while (nezha_ina_window_room(&window))
				nezha_ina_window_sent(&window, window.next, now += 100 * NEZHA_USEC);
			now += 4 * NEZHA_MSEC;
			for (uint32_t seq = from + 1; seq != window.next; seq++)
				nezha_ina_window_answered(&window, seq, now);
			if (nezha_ina_window_lost(&window, seqs, 32, now))
				nezha_ina_window_sent(&window, from, now);
			nezha_ina_window_answered(&window, from, now + NEZHA_MSEC);
		}
	}
	assert_true(window.smooth > 3 * NEZHA_MSEC);
	assert_in_range(window.room, 19, 64);
}

/* Round trips grow from 0.3 to 5 ms, in calls of one or two chunks: that is measured, and no loss. */
static void test_longer_trips(void **state)
{
	struct nezha_ina_window window;
	uint32_t seqs[32];

	(void)state;
	for (uint32_t chunks = 1; chunks <= 2; chunks++) {
		uint64_t now = NEZHA_SEC, answer;

		send_some(&window, 1, 0, 300 * NEZHA_USEC, &now);
		for (int i = 0; i < 40; i++) {
			nezha_ina_window_begin(&window, chunks, now);
			while (nezha_ina_window_room(&window))
				nezha_ina_window_sent(&window, window.next, now);
			for (answer = now + 5 * NEZHA_MSEC; now < answer; now += 100 * NEZHA_USEC) {
				uint32_t count = to_repeat(&window, seqs, now);

				for (uint32_t k = 0; k < count; k++)
					nezha_ina_window_sent(&window, seqs[k], now);
			}
			while (window.first != window.end)
				nezha_ina_window_answered(&window, window.first, now);
		}
		assert_true(window.room >= 64);
		assert_in_range(window.smooth, 4 * NEZHA_MSEC, 6 * NEZHA_MSEC);
	}
}

/* A rank that gets nothing but what it asks for goes on asking. */
static void test_deaf(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC;
	uint32_t seqs[32], asked = 0;

	(void)state;
	send_some(&window, 1, 0, NEZHA_MSEC, &now);
	window.room = 8;
	nezha_ina_window_begin(&window, 400, now);
	for (int i = 0; i < 40 * 1000 && window.first != window.end; i++, now += 100 * NEZHA_USEC) {
		uint32_t count = to_repeat(&window, seqs, now);

		asked += count;
		while (nezha_ina_window_room(&window))
			nezha_ina_window_sent(&window, window.next, now);
		for (uint32_t k = 0; k < count; k++)
			nezha_ina_window_sent(&window, seqs[k], now);
		now += count ? NEZHA_MSEC : 0;
		for (uint32_t k = 0; k < count; k++)
			nezha_ina_window_answered(&window, seqs[k], now);
	}
	assert_false(nezha_ina_window_busy(&window));
	assert_in_range(asked, 400, 800);
}

/* Half of the chunks, which later ones have overtaken, are still missing from some rank when they are asked for: the network takes less. */
static void test_others_losses(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC;
	uint32_t seqs[32], count;

	(void)state;
	send_some(&window, 1, 0, NEZHA_MSEC, &now);
	for (int i = 0; i < 10; i++) {
		nezha_ina_window_begin(&window, 20, now);
		for (uint32_t k = 0; k < 20; k++, now += 50 * NEZHA_USEC)
			nezha_ina_window_sent(&window, window.next, now);
		for (uint32_t k = 1; k < 20; k += 2)
			nezha_ina_window_answered(&window, window.end - 20 + k, now);
		for (int k = 0; k < 2; k++, now += 2 * NEZHA_MSEC) {
			count = nezha_ina_window_lost(&window, seqs, 32, now);
			for (uint32_t j = 0; j < count; j++) {
				nezha_ina_window_sent(&window, seqs[j], now);
				nezha_ina_window_waits(&window, seqs[j]);
			}
		}
		while (window.first != window.end)
			nezha_ina_window_answered(&window, window.first, now);
	}
	assert_true(window.room < 20);
}

/* Nothing is answered, but the socket takes one more chunk now and then: the oldest is asked for all the same. */
static void test_trickle(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC;
	uint32_t seqs[32], count = 0;

	(void)state;
	send_some(&window, 1, 0, NEZHA_MSEC, &now);
	nezha_ina_window_begin(&window, 60, now);
	for (int k = 0; k < 60 && !count; k++, now += NEZHA_MSEC) {
		nezha_ina_window_sent(&window, window.next, now);
		count = nezha_ina_window_asks(&window, seqs, 32, now);
	}
	assert_int_equal(count, 1);
	assert_int_equal(seqs[0], 1);
}

/* Steady is what has long trips, much on the way and more to send. */
static void test_steady(void **state)
{
	struct nezha_ina_window window;
	uint64_t now = NEZHA_SEC;

	(void)state;
	nezha_ina_window_open(&window, SLOTS);
	nezha_ina_window_begin(&window, 200, now);
	while (nezha_ina_window_room(&window))
		nezha_ina_window_sent(&window, window.next, now);
	assert_false(nezha_ina_window_steady(&window, false));
	now += 5 * NEZHA_MSEC;
	for (uint32_t seq = 0; seq < 8; seq++)
		nezha_ina_window_answered(&window, seq, now);
	assert_false(nezha_ina_window_steady(&window, false));    /* too little is on the way */
	while (nezha_ina_window_room(&window))
		nezha_ina_window_sent(&window, window.next, now);
	assert_true(nezha_ina_window_steady(&window, false));
	window.smooth = 3500 * NEZHA_USEC;
	assert_false(nezha_ina_window_steady(&window, false));
	assert_true(nezha_ina_window_steady(&window, true));
	window.smooth = 2500 * NEZHA_USEC;
	assert_false(nezha_ina_window_steady(&window, true));
	window.smooth = 5 * NEZHA_MSEC;
	while (window.next != window.end)
		nezha_ina_window_sent(&window, window.next, now);
	assert_false(nezha_ina_window_steady(&window, true));     /* the last ones */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_rank),
		cmocka_unit_test(test_sent_again),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_late_calls),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_others_queue),
		cmocka_unit_test(test_longer_trips),
		cmocka_unit_test(test_deaf),
		cmocka_unit_test(test_others_losses),
		cmocka_unit_test(test_trickle),
		cmocka_unit_test(test_steady),
	};

	return cmocka_run_group_tests_name("ina_answers", tests, NULL, NULL);
}
