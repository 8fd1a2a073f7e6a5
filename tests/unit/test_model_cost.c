/* SPDX-License-Identifier: BSD-3-Clause
 * What the decision, and trying the other ways again (tuning/model_plan.h), cost of 1,000 calls where the times do not change: after the
 * decision's calls no more than 2 % of the time, however far apart the library and the rails are. */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <math.h>

#include "tests/unit/model_bed.h"

#define CALLS 1000
#define DECISION 5                   /* its calls, and what follows at once */
#define RATIOS 41                    /* library to rails: from 1/20 to 20, as far apart from each other */
#define FARTHEST 20
#define RAILS 10000000               /* ns */

/* What was spent beyond the cheaper way's time, per cent of that; and at which ratio. */
struct cost {
	double percent, ratio;
};

static double percent(uint64_t spent, uint64_t least)
{
	return 100 * ((double)spent / (double)least - 1);
}

static double ratio_of(int i)
{
	return pow(FARTHEST, 2.0 * i / (RATIOS - 1) - 1);
}

static void keep_greater(struct cost *most, double now, double ratio)
{
	if (now > most->percent)
		*most = (struct cost){ now, ratio };
}

/* The greatest costs of all ratios, with and without the decision. */
static void measure(uint64_t bytes, bool one_network, struct cost *with, struct cost *without)
{
	*with = *without = (struct cost){ -100, 0 };
	for (int i = 0; i < RATIOS; i++) {
		struct bed bed = { .one_network = one_network, .busy = one_network };
		uint64_t native = (uint64_t)(RAILS * ratio_of(i)), spent = 0, least = 0;

		for (int k = 0; k < CALLS; k++) {
			if (k == DECISION) {
				spent = bed.spent;
				least = bed.least;
			}
			call(&bed, bytes, native, RAILS);
		}
		keep_greater(with, percent(bed.spent, bed.least), ratio_of(i));
		keep_greater(without, percent(bed.spent - spent, bed.least - least), ratio_of(i));
	}
}

/* Where the library has a network of its own a mix saves more than trying costs, unless one of few blocks gives the rails one too many. */
static const struct {
	uint64_t bytes;
	bool one_network;
} rows[] = {
	{ 16 * K, true },
	{ 128 * K, true },
	{ M, true },
	{ M, false },
};

static void test_cost(void **state)
{
	bool held = true;

	(void)state;
	print_message("greatest cost of %d calls, per cent (library's time : rails')\n"
	              "     KiB  networks       all calls   after %d calls\n", CALLS, DECISION);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct cost with, without;

		measure(rows[i].bytes, rows[i].one_network, &with, &without);
		print_message("%8" PRIu64 "  %8s  %6.2f (%5.2f)  %6.2f (%5.2f)\n", rows[i].bytes / K, rows[i].one_network ? "one" : "two",
		              with.percent, with.ratio, without.percent, without.ratio);
		held = held && without.percent <= 2;
	}
	assert_true(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests_name("model_cost", tests, NULL, NULL);
}
