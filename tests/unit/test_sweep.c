/* SPDX-License-Identifier: BSD-3-Clause
 * Which candidates nezha-tune's worker measures, and how often: with made-up times. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tuning/sweep.h"

#define MS 1e6
#define SETTLING 2      /* calls that take longer after those of another candidate */

static const char *const rails[] = { "tcp:10.77.0.0/24", "tcp:10.77.1.0/24" };
static const struct nezha_sweep_blocks blocks = { .count = 2, .bytes = { 65536, 32768 } };

enum { NATIVE, FIRST, SECOND, ALL, ALL_HALF, COUNT };

/* Sweeps one size whose calls take `ns[i]` under candidate i, and the first one 10 times as long.  Returns what it
 * took; counts calls. */
static double run(struct nezha_sweep *sweep, const double *ns, double budget, unsigned *calls)
{
	struct nezha_sweep_step step;
	bool warm[NEZHA_SWEEP_CANDIDATES] = { false };
	double spent = 0;

	memset(calls, 0, NEZHA_SWEEP_CANDIDATES * sizeof *calls);
	nezha_sweep_begin(sweep, &blocks, rails, 2);
	for (int steps = 0; nezha_sweep_next(sweep, spent, budget, &step); steps++) {
		double took = ns[step.candidate] * (warm[step.candidate] ? 1 : 10);

		assert_true(steps < 10000);
		assert_true(step.candidate < sweep->count && step.calls >= 1);
		warm[step.candidate] = true;
		calls[step.candidate] += step.calls;
		spent += took * (step.settle + step.calls);
		nezha_sweep_record(sweep, &step, took);
	}
	return spent;
}

static void lists_what_is_worth_trying(void **state)
{
	static const char *const rules[] = {
		"alg=native", "alg=ring,block=65536,rails=tcp:10.77.0.0/24",
		"alg=ring,block=65536,rails=tcp:10.77.1.0/24", "alg=ring,block=65536", "alg=ring,block=32768",
	};
	struct nezha_sweep *sweep = calloc(1, sizeof *sweep);

	(void)state;
	nezha_sweep_begin(sweep, &blocks, rails, 2);
	assert_int_equal(sweep->count, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_string_equal(sweep->candidate[i].rule, rules[i]);
	/* ... and what was found out besides, of this size only. */
	nezha_sweep_add(sweep, "alg=mix,block=65536,share=0.613,call=nonblocking");
	assert_int_equal(sweep->count, COUNT + 1);
	assert_string_equal(sweep->candidate[COUNT].rule, "alg=mix,block=65536,share=0.613,call=nonblocking");
	/* A rail that is the only one is all rails. */
	nezha_sweep_begin(sweep, &blocks, rails, 1);
	assert_int_equal(sweep->count, 3);
	assert_string_equal(sweep->candidate[1].rule, rules[ALL]);
	free(sweep);
}

static void all_are_measured_and_the_best_most(void **state)
{
	const double ns[COUNT] = { 0.3 * MS, 0.2 * MS, 0.21 * MS, 0.12 * MS, 0.1 * MS };
	struct nezha_sweep *sweep = calloc(1, sizeof *sweep);
	unsigned calls[NEZHA_SWEEP_CANDIDATES];
	double spent;

	(void)state;
	spent = run(sweep, ns, 300 * MS, calls);
	for (int i = 0; i < COUNT; i++) {
		assert_true(nezha_sweep_median(sweep, (size_t)i) == ns[i]);   /* the slow first call does not count */
		assert_true(calls[i] > 1);
	}
	assert_true(calls[ALL_HALF] > 20 * calls[NATIVE] / 10);
	assert_true(spent < 310 * MS);
	/* Small calls are timed many at a time. */
	assert_true(sweep->candidate[ALL_HALF].calls > 10 * sweep->candidate[ALL_HALF].count);
	free(sweep);
}

/* Long calls: one of each suffices to see which are hopeless, and the rest ends when the time is up. */
static void large_sizes_cost_little(void **state)
{
	const double ns[COUNT] = { 3000 * MS, 1900 * MS, 1900 * MS, 1000 * MS, 990 * MS };
	struct nezha_sweep *sweep = calloc(1, sizeof *sweep);
	unsigned calls[NEZHA_SWEEP_CANDIDATES];

	(void)state;
	for (int i = 0; i < COUNT; i++)
		sweep->candidate[i].losses = 0;
	nezha_sweep_begin(sweep, &blocks, rails, 2);
	run(sweep, ns, 1 * MS, calls);
	for (int i = NATIVE; i <= SECOND; i++)
		assert_int_equal(calls[i], 1);
	assert_int_equal(calls[ALL], 1);
	run(sweep, ns, 60000 * MS, calls);
	assert_in_range(calls[ALL], 3, 40);
	free(sweep);
}

/* What was far behind at two sizes is not tried at the next, but what came back is. */
static void losers_are_left_out(void **state)
{
	double ns[COUNT] = { 30 * MS, 18 * MS, 12 * MS, 10 * MS, 10 * MS };
	struct nezha_sweep *sweep = calloc(1, sizeof *sweep);
	unsigned calls[NEZHA_SWEEP_CANDIDATES];

	(void)state;
	run(sweep, ns, 500 * MS, calls);
	ns[FIRST] = 11 * MS;
	run(sweep, ns, 500 * MS, calls);
	assert_true(calls[NATIVE] && calls[FIRST]);
	ns[FIRST] = 18 * MS;
	assert_true(nezha_sweep_foresee(sweep, 2) > 2 * 20 * MS && nezha_sweep_foresee(sweep, 2) < 2 * 70 * MS);
	run(sweep, ns, 500 * MS, calls);
	assert_int_equal(calls[NATIVE], 0);
	assert_true(nezha_sweep_median(sweep, NATIVE) == 0);
	assert_true(calls[FIRST] && calls[SECOND] && calls[ALL]);
	free(sweep);
	/* Where a call takes little, all are tried at all sizes. */
	sweep = calloc(1, sizeof *sweep);
	for (int i = 0; i < COUNT; i++)
		ns[i] /= 10;
	for (int size = 0; size < 4; size++) {
		run(sweep, ns, 5 * MS, calls);
		assert_true(calls[NATIVE]);
	}
	free(sweep);
}

/* One disturbed sample does not change the median. */
static void outliers_do_not_count(void **state)
{
	struct nezha_sweep *sweep = calloc(1, sizeof *sweep);
	struct nezha_sweep_step step;
	unsigned samples = 0;

	(void)state;
	nezha_sweep_begin(sweep, &blocks, rails, 1);
	while (nezha_sweep_next(sweep, samples * MS, 90 * MS, &step)) {
		samples++;
		nezha_sweep_record(sweep, &step, step.candidate == 1 && samples % 7 == 0 ? 90 * MS : 1 * MS);
	}
	assert_true(nezha_sweep_median(sweep, 1) == 1 * MS);
	free(sweep);
}

/* A call of `usual` ns, now and then up to three times as long, and the first ones after another candidate's half as long again. */
static double short_call(unsigned *seed, double usual, unsigned since)
{
	double chance = (double)rand_r(seed) / RAND_MAX;

	return usual * (since < SETTLING ? 1.5 : 1) * (0.8 + 0.4 * chance + (chance > 0.9 ? 20 * (chance - 0.9) : 0));
}

/* What the sweep takes for the best where calls of `usual` ns are disturbed so. */
static size_t choice_among_disturbed(unsigned seed, const double *usual)
{
	struct nezha_sweep *sweep = calloc(1, sizeof *sweep);
	struct nezha_sweep_step step;
	double spent = 0;
	size_t best = 0;

	nezha_sweep_begin(sweep, &blocks, rails, 2);
	while (nezha_sweep_next(sweep, spent, 1000 * MS, &step)) {
		double sum = 0;

		for (unsigned i = 0; i < step.settle + step.calls; i++) {
			double ns = short_call(&seed, usual[step.candidate], i);

			spent += ns;
			sum += i < step.settle ? 0 : ns;
		}
		nezha_sweep_record(sweep, &step, sum / step.calls);
	}
	for (size_t i = 1; i < sweep->count; i++)
		if (nezha_sweep_median(sweep, i) < nezha_sweep_median(sweep, best))
			best = i;
	free(sweep);
	return best;
}

/* Of candidates that differ by a sixth the best is found, though single calls differ by more. */
static void short_calls_are_disturbed(void **state)
{
	const double usual[COUNT] = { 2.1 * MS, 2.2 * MS, 2.2 * MS, 1.8 * MS, 2.1 * MS };
	int right = 0;

	(void)state;
	for (unsigned seed = 1; seed <= 200; seed++)
		right += choice_among_disturbed(seed, usual) == ALL;
	assert_in_range(right, 190, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_what_is_worth_trying),
		cmocka_unit_test(all_are_measured_and_the_best_most),
		cmocka_unit_test(large_sizes_cost_little),
		cmocka_unit_test(losers_are_left_out),
		cmocka_unit_test(outliers_do_not_count),
		cmocka_unit_test(short_calls_are_disturbed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
