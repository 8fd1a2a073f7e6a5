/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune's decisions: what is told is taken in, and given measurements become given rules. */
#include "tests/unit/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/measured.h"
#include "tuning/plan.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"

#define K UINT64_C(1024)
#define M (K * K)
#define EMPTY "{\"version\": 1, \"collectives\": {\"allreduce\": []}}"
#define RING(block) "alg=ring,block=" block
#define ALONE(block) RING(block) ",rails=tcp:10.77.1.0/24"

/* Takes in lines that are all in order. */
static void take(struct nezha_measured *measured, const char *lines)
{
	char *copy = strdup(lines), *rest;
	enum nezha_measured_kind kind;
	uint64_t bytes;

	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (nezha_measured_take(measured, line, &kind, &bytes) != NEZHA_OK)
			fail_msg("refused: %s", line);
	free(copy);
}

/* The decision of `table` as text, "ring 64K" or so. */
static struct nezha_plan decide(const struct nezha_table *table, int ranks, uint64_t bytes)
{
	struct nezha_plan plan;

	nezha_plan_make(table, &(struct nezha_scale){ ranks, ranks, 1 }, bytes, &plan);
	return plan;
}

/* Puts what was measured into the table. */
static void put(struct nezha_table *table, const struct nezha_measured *measured)
{
	struct nezha_rule_group group;

	assert_int_equal(nezha_choose_rules(measured, &group), NEZHA_OK);
	assert_int_equal(nezha_scales_put(table, &group), NEZHA_OK);
}

static void chooses_the_cheapest(void **state)
{
	static const struct {
		const char *times, *chosen;
	} cases[] = {
		{ "time 65536 1000 1 alg=native\ntime 65536 900 1 " RING("16K"), RING("16K") },
		{ "time 65536 900 1 " RING("16K") "\ntime 65536 1000 1 alg=native", RING("16K") },
		{ "time 65536 1000 1 alg=native\ntime 65536 1100 1 " RING("16K"), "alg=native" },
		/* native wins ties within 2 %, and only these */
		{ "time 65536 1020 1 alg=native\ntime 65536 1000 1 " RING("16K"), "alg=native" },
		{ "time 65536 1021 1 alg=native\ntime 65536 1000 1 " RING("16K"), RING("16K") },
		{ "time 65536 1010 1 " RING("8K") "\ntime 65536 1000 1 " RING("16K"), RING("16K") },
		{ "time 65536 700 1 " ALONE("16K") "\ntime 65536 800 1 " RING("16K"), ALONE("16K") },
		{ "time 65536 5 1 " RING("4K"), RING("4K") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_measured measured = { .count = 0 };
		const struct nezha_measured_time *choice;
		struct nezha_rule wanted;
		char *error;

		take(&measured, cases[i].times);
		take(&measured, "size 65536");
		choice = nezha_choose(nezha_measured_find(&measured, 65536));
		assert_int_equal(nezha_rule_parse(cases[i].chosen, &wanted, &error), NEZHA_OK);
		if (choice->rule.alg != wanted.alg || choice->rule.block != wanted.block ||
		    !nezha_rail_set_equal(&choice->rule.rails, &wanted.rails))
			fail_msg("case %zu: not %s", i, cases[i].chosen);
	}
	assert_null(nezha_choose(&(struct nezha_measured_size){ .count = 0 }));
}

static const char scale_4[] =
	"job 4 4 1\n"
	"mpi Open MPI 4.1.4\nhost a host\ntopology 2 rails\nrails tcp:10.77.0.0/24,tcp:10.77.1.0/24\n"
	"time 16384 100 64 alg=native\ntime 16384 120 64 " RING("16K") "\nsize 16384\n"
	"time 65536 400 64 alg=native\ntime 65536 300 64 " RING("16K") "\nsize 65536\n"
	"time 131072 900 9 alg=native\ntime 131072 500 9 " RING("16K") "\ntime 131072 510 9 " RING("32K")
	"\nsize 131072\n"
	"time 1048576 9000 5 " RING("64K") "\ntime 1048576 8000 5 " ALONE("64K") "\nsize 1048576\n"
	"time 4194304 30000 3 " RING("64K") "\ntime 4194304 50000 3 " ALONE("64K") "\nsize 4194304\n"
	"time 8388608 30000 3 " RING("128K") "\n";

static void decides_as_measured(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t block;        /* 0: native */
		bool alone;
	} cases[] = {
		{ 1, 0, false }, { 16 * K, 0, false },
		/* borders: geometric means, in whole 4 KiB */
		{ 32 * K, 0, false }, { 32 * K + 1, 16 * K, false },
		{ 64 * K, 16 * K, false }, { 128 * K, 16 * K, false },
		{ 360 * K, 16 * K, false }, { 360 * K + 1, 64 * K, true },
		{ M, 64 * K, true }, { 2 * M, 64 * K, true }, { 2 * M + 1, 64 * K, false },
		{ 4 * M, 64 * K, false }, { 8 * M, 64 * K, false }, { 4096 * M, 64 * K, false },
	};
	struct nezha_measured *measured = calloc(1, sizeof *measured);
	struct nezha_table *table = parse(EMPTY);

	(void)state;
	take(measured, scale_4);
	put(table, measured);
	assert_int_equal(table->group_count, 1);
	assert_int_equal(table->groups[0].rule_count, 4);   /* neighbours with the same choice are one */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_plan plan = decide(table, 4, cases[i].bytes);

		if (plan.block != cases[i].block || !plan.rails != !cases[i].alone)
			fail_msg("%llu bytes: block %u, %s", (unsigned long long)cases[i].bytes, plan.block,
			         plan.rails ? "alone" : "all rails");
	}
	assert_int_equal(decide(table, 4, 1).reason, NEZHA_REASON_SMALL);
	nezha_table_free(table);
	free(measured);
}

/* Below the smallest size nothing is known: native. */
static void smaller_is_native(void **state)
{
	struct nezha_measured *measured = calloc(1, sizeof *measured);
	struct nezha_table *table = parse(EMPTY);

	(void)state;
	take(measured, "job 2 2 1\ntime 4096 5 1 " RING("4K") "\nsize 4096");
	put(table, measured);
	assert_int_equal(decide(table, 2, 4095).alg, NEZHA_ALG_NATIVE);
	assert_int_equal(decide(table, 2, 4095).reason, NEZHA_REASON_SMALL);
	assert_int_equal(decide(table, 2, 4096).block, 4096);
	nezha_table_free(table);
	free(measured);
}

static struct nezha_measured *made_up(int ranks, const char *block)
{
	struct nezha_measured *measured = calloc(1, sizeof *measured);
	char lines[200];

	snprintf(lines, sizeof lines, "job %d %d 1\ntime 65536 5 1 alg=ring,block=%s\nsize 65536", ranks, ranks, block);
	take(measured, lines);
	return measured;
}

/* Scales share out all numbers of ranks, in whatever order they come; other groups stay, and stay behind. */
static void scales_are_joined(void **state)
{
	static const struct {
		int ranks;
		uint32_t block;
	} cases[] = {
		{ 2, 8 * K }, { 3, 16 * K }, { 4, 16 * K }, { 5, 16 * K }, { 6, 32 * K }, { 8, 32 * K }, { 1000, 32 * K },
	};
	static const int orders[][3] = { { 2, 4, 8 }, { 8, 4, 2 }, { 4, 8, 2 } };

	(void)state;
	for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
		struct nezha_table *table = parse("{\"version\": 1, \"comment\": \"mine\", \"collectives\": "
		                                  "{\"allreduce\": [{\"ppn_min\": 2, \"rules\": [{\"alg\": "
		                                  "\"ring\", \"block\": \"1M\"}]}]}}"), *again;
		struct nezha_plan plan;
		char *text, *text_again;

		for (int i = 0; i < 3; i++) {
			int ranks = orders[o][i];
			struct nezha_measured *measured = made_up(ranks, ranks == 2 ? "8K" : ranks == 4 ? "1M" : "32K");

			assert_null(nezha_scales_find(table, ranks, 1));
			put(table, measured);
			assert_non_null(nezha_scales_find(table, ranks, 1));
			assert_null(nezha_scales_find(table, ranks, 2));
			free(measured);
		}
		/* Measured again: replaced. */
		struct nezha_measured *measured = made_up(4, "16K");
		put(table, measured);
		free(measured);
		assert_int_equal(table->group_count, 4);
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			assert_int_equal(decide(table, cases[i].ranks, 65536).block, cases[i].block);
		nezha_plan_make(table, &(struct nezha_scale){ 4, 2, 2 }, 65536, &plan);
		assert_int_equal(plan.block, M);
		nezha_plan_make(table, &(struct nezha_scale){ 4, 1, 4 }, 65536, &plan);
		assert_int_equal(plan.block, M);
		text = nezha_table_print(table);
		again = parse(text);
		text_again = nezha_table_print(again);
		assert_string_equal(text, text_again);
		free(text);
		free(text_again);
		nezha_table_free(again);
		nezha_table_free(table);
	}
}

/* With several ranks on a node the nearest number of them decides, then that of the ranks; one on a node is apart. */
static void shared_nodes_have_scales_of_their_own(void **state)
{
	static const struct nezha_scale measured_at[] = { { 16, 4, 4 }, { 4, 4, 1 }, { 8, 4, 2 }, { 4, 2, 2 } };
	static const char *const block[] = { "256K", "8K", "64K", "32K" };
	static const struct {
		struct nezha_scale scale;
		uint32_t block;        /* 0: native */
	} cases[] = {
		{ { 4, 4, 1 }, 8 * K }, { { 100, 100, 1 }, 8 * K },
		{ { 4, 2, 2 }, 32 * K }, { { 5, 3, 2 }, 32 * K }, { { 6, 3, 2 }, 64 * K }, { { 100, 50, 2 }, 64 * K },
		{ { 6, 2, 3 }, 256 * K }, { { 16, 4, 4 }, 256 * K }, { { 512, 2, 256 }, 256 * K },
		{ { 4, 1, 4 }, 0 },
	};
	struct nezha_table *table = parse(EMPTY), *again;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof measured_at / sizeof *measured_at; i++) {
		struct nezha_measured *measured = calloc(1, sizeof *measured);
		char lines[200];

		snprintf(lines, sizeof lines, "job %d %d %d\ntime 65536 5 1 alg=ring,block=%s\nsize 65536",
		         measured_at[i].ranks, measured_at[i].nodes, measured_at[i].ppn, block[i]);
		take(measured, lines);
		put(table, measured);
		free(measured);
	}
	text = nezha_table_print(table);
	again = parse(text);
	free(text);
	assert_int_equal(again->group_count, 4);
	assert_true(nezha_scales_find(again, 16, 4) && !nezha_scales_find(again, 16, 1));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_plan plan;

		nezha_plan_make(again, &cases[i].scale, 65536, &plan);
		if (plan.block != cases[i].block)
			fail_msg("%d ranks, %d on a node: block %u", cases[i].scale.ranks, cases[i].scale.ppn, plan.block);
	}
	nezha_table_free(again);
	nezha_table_free(table);
}

static void a_full_table_takes_no_more(void **state)
{
	struct nezha_table *table = parse(EMPTY);
	struct nezha_rule_group group;
	struct nezha_measured *measured;

	(void)state;
	for (int ranks = 2; ranks < 2 + NEZHA_TABLE_GROUPS; ranks++) {
		measured = made_up(ranks, "8K");
		put(table, measured);
		free(measured);
	}
	measured = made_up(1000, "8K");
	assert_int_equal(nezha_choose_rules(measured, &group), NEZHA_OK);
	assert_int_equal(nezha_scales_put(table, &group), NEZHA_ERR_INVALID);
	free(group.rules);
	free(measured);
	measured = made_up(7, "16K");          /* in place of another is room */
	put(table, measured);
	free(measured);
	assert_int_equal(decide(table, 7, 65536).block, 16 * K);
	nezha_table_free(table);
}

static void takes_in_what_is_told(void **state)
{
	struct nezha_measured *measured = calloc(1, sizeof *measured);

	(void)state;
	take(measured, scale_4);
	assert_int_equal(measured->scale.ranks, 4);
	assert_string_equal(measured->where.mpi, "Open MPI 4.1.4");
	assert_string_equal(measured->where.rails, "tcp:10.77.0.0/24,tcp:10.77.1.0/24");
	assert_int_equal(measured->count, 6);
	assert_non_null(nezha_measured_find(measured, 4 * M));
	assert_null(nezha_measured_find(measured, 8 * M));
	assert_null(nezha_measured_find(measured, 2 * M));
	/* A next job begins anew where the last one was stopped, in any order. */
	take(measured, "job 4 4 1\ntime 8388608 20000 3 " RING("256K") "\nsize 8388608\ntime 32768 7 1 alg=native\n"
	               "size 32768");
	assert_int_equal(nezha_measured_find(measured, 8 * M)->count, 1);
	assert_int_equal(nezha_measured_find(measured, 8 * M)->time[0].rule.block, 256 * K);
	assert_int_equal(measured->size[1].bytes, 32 * K);
	free(measured);
}

/* What one job finds in 64 KiB under two plans, in ns. */
static void take_a_job(struct nezha_measured *measured, double native, double rails)
{
	char lines[200];

	snprintf(lines, sizeof lines, "job 4 4 1\ntime 65536 %.0f 10 alg=native\ntime 65536 %.0f 20 " RING("16K") "\nsize 65536", native,
	         rails);
	take(measured, lines);
}

static void takes_ns(const struct nezha_measured_size *size, size_t candidate, double ns)
{
	if (size->time[candidate].ns < ns * 0.999 || size->time[candidate].ns > ns * 1.001)
		fail_msg("candidate %zu takes %.1f ns, not %.1f", candidate, size->time[candidate].ns, ns);
}

/* Jobs that have measured the same size: what makes one slow makes all its plans slow; one that did not finish does not count. */
static void jobs_are_joined(void **state)
{
	struct nezha_measured *measured = calloc(1, sizeof *measured);
	const struct nezha_measured_size *size;
	enum nezha_measured_kind kind;
	uint64_t bytes;

	(void)state;
	take_a_job(measured, 1000, 900);
	size = nezha_measured_find(measured, 64 * K);
	assert_int_equal(nezha_choose(size)->rule.alg, NEZHA_ALG_RING);
	take_a_job(measured, 800, 960);
	assert_int_equal(size->jobs, 2);
	takes_ns(size, 0, 900);
	takes_ns(size, 1, 900 * 1.05);         /* 0.9 and 1.2 times as long */
	take(measured, "job 4 4 1\ntime 65536 2000 10 alg=native\ntime 65536 1 1 " ALONE("16K"));
	assert_int_equal(size->count, 3);
	take_a_job(measured, 2000, 2200);      /* the one before was stopped */
	assert_int_equal(size->count, 2);
	assert_int_equal(size->jobs, 3);
	takes_ns(size, 0, 1000);
	takes_ns(size, 1, 1100);
	assert_int_equal(nezha_choose(size)->rule.alg, NEZHA_ALG_NATIVE);
	/* one that fell behind in a job is not told by it */
	take(measured, "job 4 4 1\ntime 65536 700 10 alg=native\nsize 65536");
	assert_int_equal(size->jobs, 4);
	takes_ns(size, 0, 900);
	takes_ns(size, 1, 990);
	assert_int_equal(nezha_measured_take(measured, "size 65536", &kind, &bytes), NEZHA_ERR_INVALID);
	take_a_job(measured, 700, 770);
	take(measured, "job 4 4 1");
	assert_int_equal(size->jobs, 5);
	assert_int_equal(nezha_measured_take(measured, "time 65536 1 1 alg=native", &kind, &bytes), NEZHA_ERR_INVALID);   /* a sixth job */
	assert_int_equal(nezha_measured_take(measured, "size 65536", &kind, &bytes), NEZHA_ERR_INVALID);
	/* without the library there is nothing to compare with */
	take(measured, "time 131072 500 1 " RING("16K") "\nsize 131072\njob 4 4 1\ntime 131072 700 1 " RING("16K") "\nsize 131072");
	takes_ns(nezha_measured_find(measured, 128 * K), 0, 600);
	free(measured);
}

/* One more job decides where short calls differ little, the less the more jobs there were. */
static void close_ones_want_another_job(void **state)
{
	static const struct {
		double native, rails;
		int jobs;              /* that are wanted in all */
	} cases[] = {
		{ 100e3, 134e3, 2 }, { 134e3, 100e3, 2 }, { 100e3, 136e3, 1 }, { 136e3, 100e3, 1 }, { 100e3, 122e3, 3 }, { 100e3, 119e3, 4 },
		{ 100e3, 104e3, NEZHA_MEASURED_JOBS }, { 100e3, 100e3, NEZHA_MEASURED_JOBS }, { 4.9e6, 5e6, NEZHA_MEASURED_JOBS },
		{ 5e6, 5e6, 1 }, { 50e6, 50e6, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_measured *measured = calloc(1, sizeof *measured);
		int jobs = 0;

		do {
			take_a_job(measured, cases[i].native, cases[i].rails);
			jobs++;
		} while (nezha_choice_is_close(nezha_measured_find(measured, 64 * K)));
		if (jobs != cases[i].jobs)
			fail_msg("case %zu: %d jobs, not %d", i, jobs, cases[i].jobs);
		free(measured);
	}
	/* nothing to compare with */
	struct nezha_measured *alone = made_up(4, "16K");
	assert_false(nezha_choice_is_close(nezha_measured_find(alone, 64 * K)));
	free(alone);
}

static void refuses_what_makes_no_sense(void **state)
{
	static const char *const lines[] = {
		"", " ", "jobs", "job", "job 1 1 1", "job 4", "job 4 4 1 1", "job 4 0 1", "at", "at 0", "at x", "at 5 6",
		"size 77", "time 65536", "time 65536 5", "time 65536 5 1", "time 65536 nan 1 alg=native",
		"time 65536 -5 1 alg=native", "time 65536 0 1 alg=native", "time 65536 5 1 alg=rung", "averyveryverylongword 1",
	};
	struct nezha_measured *measured = calloc(1, sizeof *measured);
	enum nezha_measured_kind kind;
	uint64_t bytes;
	char line[64];

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (nezha_measured_take(measured, lines[i], &kind, &bytes) != NEZHA_ERR_INVALID)
			fail_msg("accepted: %s", lines[i]);
	/* More sizes, or more candidates, than there may be. */
	for (int i = 1; i <= NEZHA_SWEEP_CANDIDATES; i++) {
		snprintf(line, sizeof line, "time 4 5 1 alg=ring,block=%dK", 4 * i);
		take(measured, line);
		assert_int_equal(nezha_measured_take(measured, line, &kind, &bytes), NEZHA_ERR_INVALID);   /* twice by one job */
	}
	assert_int_equal(nezha_measured_take(measured, "time 4 5 1 alg=native", &kind, &bytes), NEZHA_ERR_INVALID);
	for (int i = 1; i < NEZHA_MEASURED_SIZES; i++) {
		snprintf(line, sizeof line, "time %d 5 1 alg=native", 4 + 4 * i);
		take(measured, line);
	}
	assert_int_equal(nezha_measured_take(measured, "time 4000 5 1 alg=native", &kind, &bytes), NEZHA_ERR_INVALID);
	free(measured);
}

static void fingerprints_are_compared(void **state)
{
	struct nezha_table *table = parse("{\"version\": 1, \"mpi\": \"A 1\", \"topology\": \"t\", \"collectives\": "
	                                  "{\"allreduce\": []}}");
	struct nezha_fingerprint here = { .mpi = "A 1", .host = "h", .topology = "t", .rails = "r" };
	char text[200] = "";

	(void)state;
	/* What the table does not tell is not compared. */
	assert_false(nezha_fingerprint_differs(table, &here, text, sizeof text));
	strcpy(here.topology, "u");
	assert_true(nezha_fingerprint_differs(table, &here, text, sizeof text));
	assert_string_equal(text, "topology is \"t\" there, \"u\" here");
	strcpy(here.mpi, "B 2");
	assert_true(nezha_fingerprint_differs(table, &here, text, sizeof text));
	assert_string_equal(text, "mpi is \"A 1\" there, \"B 2\" here; topology is \"t\" there, \"u\" here");
	assert_true(nezha_fingerprint_differs(table, &here, text, 20));
	strcpy(here.mpi, "");                  /* not known here */
	assert_true(nezha_fingerprint_differs(table, &here, text, sizeof text));
	assert_string_equal(text, "topology is \"t\" there, \"u\" here");
	assert_int_equal(nezha_fingerprint_put(&here, table), NEZHA_OK);
	assert_false(nezha_fingerprint_differs(table, &here, text, sizeof text));
	nezha_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_the_cheapest),
		cmocka_unit_test(decides_as_measured),
		cmocka_unit_test(smaller_is_native),
		cmocka_unit_test(scales_are_joined),
		cmocka_unit_test(shared_nodes_have_scales_of_their_own),
		cmocka_unit_test(a_full_table_takes_no_more),
		cmocka_unit_test(takes_in_what_is_told),
		cmocka_unit_test(jobs_are_joined),
		cmocka_unit_test(close_ones_want_another_job),
		cmocka_unit_test(refuses_what_makes_no_sense),
		cmocka_unit_test(fingerprints_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
