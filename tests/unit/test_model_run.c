/* SPDX-License-Identifier: BSD-3-Clause
 * Small classes, in which runs of calls count (tuning/model_run.h). */
#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/model_bed.h"
#include "tuning/model_known.h"

#define SMALL (16 * K)

static void test_median(void **state)
{
	struct nezha_model_run run = { .count = 3 };
	static const uint64_t ns[NEZHA_RUN_CALLS] = { 300, 100000, 100, 400 };

	(void)state;
	for (uint32_t i = 0; i < NEZHA_RUN_CALLS; i++)
		assert_int_equal(nezha_run_add(&run, i, ns[i], 10), i == NEZHA_RUN_CALLS - 1);
	assert_int_equal(nezha_run_time(&run, 10), 350);
	/* by the byte: vectors of a class differ */
	assert_int_equal(nezha_run_time(&run, 20), 700);
}

static void test_broken(void **state)
{
	struct nezha_model_run run = { 0 };

	(void)state;
	assert_false(nezha_run_add(&run, 1, 5, 1));
	assert_int_equal(run.count, 0);
	assert_false(nezha_run_add(&run, 0, 5, 1));
	assert_false(nezha_run_add(&run, 2, 5, 1));
	for (uint32_t i = 3; i < NEZHA_RUN_CALLS + 3; i++)
		assert_false(nezha_run_add(&run, i, 5, 1));
	assert_false(nezha_run_add(&run, UINT32_MAX, 5, 1));
	for (uint32_t i = 0; i < NEZHA_RUN_CALLS; i++)
		assert_int_equal(nezha_run_add(&run, i, 5, 1), i == NEZHA_RUN_CALLS - 1);
	assert_false(nezha_run_add(&run, NEZHA_RUN_CALLS, 5, 1));
}

/* What calls cost where two calls of either way pay for what the other has left behind, or live on it. */
struct wake {
	enum nezha_algorithm last, lives;    /* the latest call's; the one whose first calls are fast ones */
	int in_turn;
};

static enum nezha_algorithm call_in_wake(struct bed *bed, struct wake *wake, uint64_t native, uint64_t rails)
{
	struct nezha_choice choice = nezha_model_choose(&bed->model, SMALL, BLOCK);

	wake->in_turn = choice.alg == wake->last ? wake->in_turn + 1 : 1;
	wake->last = choice.alg;
	if (wake->in_turn <= 2) {
		native = wake->lives == NEZHA_ALG_NATIVE ? native / 2 : native * 2;
		rails = wake->lives == NEZHA_ALG_RING ? rails / 2 : rails * 2;
	}
	return call(bed, SMALL, native, rails);
}

/* In turns the library seems twice as fast as the rails; whoever goes on for some calls finds that it is not. */
static void test_wake(void **state)
{
	struct bed bed = { 0 };
	struct wake wake = { .last = NEZHA_ALG_COUNT, .lives = NEZHA_ALG_NATIVE };

	(void)state;
	for (int i = 0; i < 40; i++)
		call_in_wake(&bed, &wake, 600000, 400000);
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 200; i++)
		call_in_wake(&bed, &wake, 600000, 400000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
	assert_true(bed.calls[NEZHA_ALG_RING] >= 180);
}

/* The other way round: the rails seem to be faster in their first calls. */
static void test_wake_of_rails(void **state)
{
	struct bed bed = { 0 };
	struct wake wake = { .last = NEZHA_ALG_COUNT, .lives = NEZHA_ALG_RING };

	(void)state;
	for (int i = 0; i < 100; i++)
		call_in_wake(&bed, &wake, 400000, 600000);
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 200; i++)
		call_in_wake(&bed, &wake, 400000, 600000);
	assert_true(bed.calls[NEZHA_ALG_NATIVE] >= 180);
}

/* The first calls made the rails look more than twice as slow: when the next try has shown that they are not, the one after it is near. */
static void test_planned_by_the_latest(void **state)
{
	struct bed bed = { 0 };
	const struct nezha_model_class *class = &bed.model.classes[14];

	(void)state;
	for (int i = 0; i < 3; i++)
		call(&bed, SMALL, 300000, 720000);
	for (int i = 0; i < 20; i++)
		call(&bed, SMALL, 400000, 410000);
	assert_int_equal(class->best, NEZHA_ALG_NATIVE);
	assert_true(class->retry_at - class->calls < 100);
}

/* Of two ranks one leaves the library's calls long before the other: what the program waits for is the other one. */
static void test_the_last_rank_counts(void **state)
{
	static const uint64_t native[] = { 100000, 600000 }, rails[] = { 500000, 500000 };
	struct nezha_model models[2] = { 0 };

	(void)state;
	for (int i = 0; i < 60; i++)
		call_of_two(models, SMALL, native, rails);
	assert_int_equal(models[0].classes[14].best, NEZHA_ALG_RING);
	assert_memory_equal(models[0].classes, models[1].classes, sizeof models[0].classes);
}

/* A class of which every fourth call takes ten times as long. */
static void test_noise(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++)
		call(&bed, SMALL, i % 4 ? 600000 : 6000000, i % 4 == 2 ? 4000000 : 400000);
	memset(bed.calls, 0, sizeof bed.calls);
	for (int i = 0; i < 1000; i++)
		call(&bed, SMALL, i % 4 ? 600000 : 6000000, i % 4 == 2 ? 4000000 : 400000);
	assert_true(bed.calls[NEZHA_ALG_RING] >= 960);
}

/* The chosen way becomes slow for good: noticed by the next run of the rails', or when they are tried again. */
static void test_small_change(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		call(&bed, SMALL, 600000, 400000);
	for (int i = 0; i < 120; i++)
		call(&bed, SMALL, 600000, 2000000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_NATIVE);
	for (int i = 0; i < 6000; i++)
		call(&bed, SMALL, 600000, 400000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
}

/* A note makes a small call a fifth longer: once a class is old few calls carry one, and a change is noticed all the same. */
static void test_old_class(void **state)
{
	struct bed bed = { 0 };
	int notes;

	(void)state;
	for (int i = 0; i < 1000; i++)
		call(&bed, SMALL, 600000, 400000);
	notes = bed.notes;
	for (int i = 0; i < 4096; i++)
		call(&bed, SMALL, 600000, 400000);
	assert_in_range(bed.notes - notes, 4096 / 256 - 4, 4096 / 256 + 4 * 3);  /* of at most four tries three each */
}

/* When the change comes, from just after a run or a try to just before one, makes no great difference. */
static void test_change_in_old_class(void **state)
{
	int longest = 0;

	(void)state;
	for (int when = 4000; when < 8000; when += 23) {
		struct bed bed = { 0 };
		int late = 0;

		for (int i = 0; i < when; i++)
			call(&bed, SMALL, 600000, 400000);
		while (bed.model.classes[14].best != NEZHA_ALG_NATIVE && late < 2000) {
			call(&bed, SMALL, 600000, 2000000);
			late++;
		}
		longest = late > longest ? late : longest;
	}
	print_message("noticed after at most %d calls\n", longest);
	assert_true(longest <= 2 * 256 + 512 + 32);     /* two runs, the pause after them, the try */
}

/* Over 1,000 calls trying costs less than 2 %. */
static void test_small_budget(void **state)
{
	static const uint64_t native[] = {
		10, 20, 30, 36, 37, 38, 40, 50, 60, 80, 90, 100, 110, 120, 150, 200, 240, 270, 280, 290, 310, 500, 2000,
	};

	(void)state;
	for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
		struct bed bed = { 0 };

		for (int k = 0; k < 1000; k++)
			call(&bed, SMALL, native[i] * 10000, 1000000);
		/* the one call that has to find out is all that may cost more */
		assert_true(bed.spent <= bed.least * 102 / 100 + (native[i] < 100 ? 1000000 : native[i] * 10000));
	}
}

/* A run of the rails is slow for once, and the library's price is of long ago, when it was fast: nothing changes. */
static void test_one_slow_run(void **state)
{
	static const uint64_t slow[] = { 500000, 700000, 1000000 };

	(void)state;
	for (size_t s = 0; s < sizeof slow / sizeof slow[0]; s++) {
		struct bed bed = { 0 };

		for (int i = 0; i < 3000; i++) {
			/* the chosen way's run before its first try, or one of those from time to time */
			bool held_up = s == 1 ? i >= 5 && i < 11 : i >= 64 && i < 70;

			call(&bed, SMALL, i < 3 ? 380000 : 680000, held_up ? slow[s] : 360000);
			/* just before a try it is what the try is compared with */
			assert_true(i < 20 || s == 1 || bed.model.classes[14].best == NEZHA_ALG_RING);
		}
		assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
		assert_true(bed.calls[NEZHA_ALG_NATIVE] < 120);
	}
}

/* How many of the first `count` calls are the library's. */
static int library_calls(uint64_t native, uint64_t rails, int count)
{
	struct bed bed = { 0 };

	for (int i = 0; i < count; i++)
		call(&bed, SMALL, native, rails);
	return bed.calls[NEZHA_ALG_NATIVE];
}

/* The first try is as long as some programs' loops: it waits for more calls where the first run of the rails shows that it is dear. */
static void test_dear_first_try(void **state)
{
	(void)state;
	assert_true(library_calls(450000, 400000, 24) >= NEZHA_RUN_CALLS);
	assert_true(library_calls(750000, 400000, 70) <= 3);
	assert_true(library_calls(750000, 400000, 100) >= NEZHA_RUN_CALLS);
	/* its first calls had been slow, and so had those of the rails */
	for (int first = 3; first <= 5; first++) {
		struct bed bed = { 0 };

		for (int i = 0; i < 100; i++)
			call(&bed, SMALL, i < first ? 750000 : 250000, i < first ? 700000 : 400000);
		assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_NATIVE);
	}
}

/* The library, chosen by its slow first call, is so much faster then that the rails' first try would be dear: it ends with the call that
 * tells of the run before. */
static void test_dear_first_try_of_rails(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		call(&bed, SMALL, bed.calls[NEZHA_ALG_NATIVE] ? 20000 : 120000, 300000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_NATIVE);
	assert_in_range(bed.calls[NEZHA_ALG_RING], 1, 4);
}

/* The library is a little faster in its first 60 calls, and slower then: that is found out while it is news. */
static void test_young(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 160; i++)
		call(&bed, SMALL, i < 60 ? 400000 : 700000, 470000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
}

/* What a call of either way takes by how many of the same came before it in a row. */
static enum nezha_algorithm call_in_row(struct bed *bed, struct wake *wake, uint64_t (*native)(int), uint64_t (*rails)(int))
{
	struct nezha_choice choice = nezha_model_choose(&bed->model, SMALL, BLOCK);

	wake->in_turn = choice.alg == wake->last ? wake->in_turn + 1 : 1;
	wake->last = choice.alg;
	return call(bed, SMALL, native(wake->in_turn), rails(wake->in_turn));
}

static uint64_t always_400(int in_a_row)
{
	(void)in_a_row;
	return 400000;
}

static uint64_t always_410(int in_a_row)
{
	(void)in_a_row;
	return 410000;
}

static uint64_t fast_for_8(int in_a_row)
{
	return in_a_row <= 8 ? 340000 : 600000;
}

static uint64_t slower_by_and_by(int in_a_row)
{
	return in_a_row <= 6 ? 370000 : in_a_row <= 9 ? 420000 : in_a_row <= 20 ? 480000 : 600000;
}

/* One way is the faster one for longer than a try lasts, as in a large bucket of a shaper's: it is chosen now and then, not always. */
static void test_long_wake(void **state)
{
	struct bed library = { 0 }, rails = { 0 };
	struct wake wake = { .last = NEZHA_ALG_COUNT }, other = wake;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		call_in_row(&library, &wake, slower_by_and_by, always_410);
		call_in_row(&rails, &other, always_400, fast_for_8);
	}
	assert_true(library.calls[NEZHA_ALG_NATIVE] < 500);
	assert_true(rails.calls[NEZHA_ALG_RING] < 500);
}

/* The first call of one way takes some times as long as all others: one call is no proof. */
static void test_slow_first_call(void **state)
{
	(void)state;
	for (uint64_t first = 500; first <= 2000; first += 100) {
		struct bed bed = { 0 };

		for (int i = 0; i < 1000; i++)
			call(&bed, SMALL, 450000, i ? 360000 : first * 1000);
		assert_true(bed.calls[NEZHA_ALG_NATIVE] < 150);
		memset(&bed, 0, sizeof bed);
		for (int i = 0; i < 1000; i++)
			call(&bed, SMALL, bed.calls[NEZHA_ALG_NATIVE] ? 300000 : first * 1000, 450000);
		assert_true(bed.calls[NEZHA_ALG_RING] < 150);
	}
}

/* The library's first calls pass in what a shaper has saved up, some times as fast as all others: it is not left at that. */
static void test_fast_first_calls(void **state)
{
	(void)state;
	for (uint64_t first = 30; first <= 350; first += 5)
		for (int fast = 1; fast <= 4; fast++) {
			struct bed bed = { 0 };

			for (int i = 0; i < 1000; i++)
				call(&bed, SMALL, bed.calls[NEZHA_ALG_NATIVE] < fast ? first * 1000 : 350000, 160000);
			assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
			assert_true(bed.calls[NEZHA_ALG_NATIVE] < 40);
		}
}

/* The rails, once far faster, become far slower; what is known of the library is as dear: it is tried by the new price, not the old one. */
static void test_both_change(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		call(&bed, SMALL, 1500000, 200000);
	for (int i = 0; i < 300; i++)
		call(&bed, SMALL, 300000, 1500000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_NATIVE);
}

/* The rails are slow at times, never for long: that does not send calls to the library, far slower, each time. */
static void test_bursts(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 4000; i++)
		call(&bed, SMALL, 250000, i % 96 < 12 ? 300000 : 100000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
	assert_true(bed.calls[NEZHA_ALG_NATIVE] < 160);
}

/* What the library took long ago is not what it takes: a try is compared with the run just before. */
static void test_price_of_long_ago(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 25; i++)
		call(&bed, SMALL, 390000, 360000);
	for (int i = 0; i < 40; i++)
		call(&bed, SMALL, 700000, 360000);
	for (int i = 0; i < 600; i++)
		call(&bed, SMALL, 700000, 420000);
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
	assert_true(bed.calls[NEZHA_ALG_NATIVE] < 120);
}

/* Another small class sends calls over the rails in the middle of this one's tries: its notes must not end them. */
static void test_two_classes(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 2000; i++) {
		call(&bed, SMALL, i < 3 ? 380000 : 680000, i == 70 ? 700000 : 360000);
		call(&bed, 4 * SMALL, 1700000, 1000000);
	}
	assert_int_equal(bed.model.classes[14].best, NEZHA_ALG_RING);
	assert_int_equal(bed.model.classes[16].best, NEZHA_ALG_RING);
	assert_true(bed.calls[NEZHA_ALG_NATIVE] < 200);
}

/* A rail is lost in the middle of a try of the library, and back: that try is none, the next one is a whole one. */
static void test_lost_in_a_try(void **state)
{
	struct bed bed = { 0 };
	int in_a_row = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		call(&bed, SMALL, 600000, 400000);
	for (int i = 0; i < 2000 && bed.model.classes[14].tries < 3; i++)
		call(&bed, SMALL, 600000, 400000);
	assert_int_equal(bed.model.classes[14].tries, 3);
	bed.lost = true;
	/* another class brings the news */
	for (int i = 0; i < 40; i++)
		call(&bed, 4 * SMALL, 2000000, 1000000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(call(&bed, SMALL, 600000, 400000), NEZHA_ALG_RING);
	bed.lost = false;
	for (int i = 0; i < 40; i++)
		call(&bed, 4 * SMALL, 2000000, 1000000);
	while (in_a_row < 100 && call(&bed, SMALL, 600000, 400000) == NEZHA_ALG_NATIVE)
		in_a_row++;
	assert_int_equal(in_a_row, nezha_model_try_calls(14));
}

/* A rail is lost while the first try is made, so what it and the run before it took is dropped: later tries decide all the same. */
static void test_lost_in_first_try(void **state)
{
	for (int begin = 3; begin < 40; begin++) {
		struct bed bed = { 0 };

		(void)state;
		for (int i = 0; i < 6000; i++) {
			bed.lost = i >= begin && i < begin + 4;
			call(&bed, SMALL, i < 3 ? 420000 : 300000, i < 3 ? 430000 : 400000);
		}
		memset(bed.calls, 0, sizeof bed.calls);
		for (int i = 0; i < 1000; i++)
			call(&bed, SMALL, 300000, 400000);
		assert_true(bed.calls[NEZHA_ALG_NATIVE] > 950);
	}
}

/* Many small classes in turn share one note. */
static void test_classes_in_turn(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int i = 0; i < 200; i++)
		for (uint64_t bytes = 64; bytes <= 64 * K; bytes *= 2)
			call(&bed, bytes, bytes * 3 / 2 + 100, bytes + 100);
	for (int k = 10; k <= 16; k++)
		assert_int_equal(bed.model.classes[k].best, NEZHA_ALG_RING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median), cmocka_unit_test(test_broken), cmocka_unit_test(test_wake),
		cmocka_unit_test(test_wake_of_rails), cmocka_unit_test(test_noise), cmocka_unit_test(test_small_change),
		cmocka_unit_test(test_old_class), cmocka_unit_test(test_change_in_old_class),
		cmocka_unit_test(test_planned_by_the_latest), cmocka_unit_test(test_the_last_rank_counts),
		cmocka_unit_test(test_young), cmocka_unit_test(test_dear_first_try),
		cmocka_unit_test(test_dear_first_try_of_rails), cmocka_unit_test(test_long_wake), cmocka_unit_test(test_slow_first_call),
		cmocka_unit_test(test_fast_first_calls),
		cmocka_unit_test(test_both_change), cmocka_unit_test(test_bursts), cmocka_unit_test(test_one_slow_run), cmocka_unit_test(test_price_of_long_ago), cmocka_unit_test(test_two_classes),
		cmocka_unit_test(test_lost_in_a_try), cmocka_unit_test(test_lost_in_first_try), cmocka_unit_test(test_small_budget), cmocka_unit_test(test_classes_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
