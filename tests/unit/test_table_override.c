/* SPDX-License-Identifier: BSD-3-Clause
 * NEZHA_TUNE: one rule before those of a table. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/parse.h"
#include "tuning/plan.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"

static void override_goes_first_everywhere(void **state)
{
	static const struct nezha_scale scales[] = {
		{ 4, 4, 1 }, { 8, 4, 2 }, { 3, 1, 3 }, { 1000, 500, 2 }
	};
	struct nezha_table *table;
	struct nezha_plan before, plan;
	char *error = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
		assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
		assert_int_equal(nezha_table_override(table, "alg=ring,block=8K,min=10,max=1M", &error),
		                 NEZHA_OK);
		nezha_plan_make(table, &scales[i], 10, &plan);
		assert_int_equal(plan.alg, NEZHA_ALG_RING);
		assert_int_equal(plan.block, 8192);
		assert_int_equal(plan.reason, NEZHA_REASON_TUNE);
		nezha_plan_make(table, &scales[i], 1 << 20, &plan);
		assert_int_equal(plan.block, 8192);
		assert_int_equal(nezha_plan_native_below(table, &scales[i]), 10);
		nezha_table_free(table);

		/* Outside of its range nothing has changed. */
		assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
		nezha_plan_make(table, &scales[i], (1 << 20) + 1, &before);
		assert_int_equal(nezha_table_override(table, "alg=ring,block=8K,min=10,max=1M", &error),
		                 NEZHA_OK);
		nezha_plan_make(table, &scales[i], (1 << 20) + 1, &plan);
		assert_true(nezha_plan_equal(&plan, &before));
		nezha_table_free(table);
	}
	/* A scale that no group of the table fits. */
	table = parse("{\"version\": 1, \"collectives\": {\"allreduce\": [{\"comm_size_max\": 4, \"rules\": "
	              "[]}]}}");
	assert_int_equal(nezha_table_override(table, "alg=ring", &error), NEZHA_OK);
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
		nezha_plan_make(table, &scales[i], 1, &plan);
		assert_int_equal(plan.block, NEZHA_BLOCK_DEFAULT);
	}
	/* The last one given goes before those before it. */
	assert_int_equal(nezha_table_override(table, "max=inf,alg=native", &error), NEZHA_OK);
	nezha_plan_make(table, &scales[0], 1 << 30, &plan);
	assert_int_equal(plan.alg, NEZHA_ALG_NATIVE);
	assert_int_equal(plan.reason, NEZHA_REASON_TUNE);
	nezha_table_free(table);
}

/* Where blocks are not given they stay as they were. */
static void override_keeps_the_blocks(void **state)
{
	static const struct nezha_scale scales[] = { { 4, 4, 1 }, { 8, 4, 2 } };
	struct nezha_table *builtin, *table;
	struct nezha_plan before, plan;
	char *error = NULL;

	(void)state;
	assert_int_equal(nezha_table_builtin(&builtin), NEZHA_OK);
	assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
	assert_int_equal(nezha_table_override(table, "alg=ring,min=100,max=4M,rails=tcp:10.1.0.0/16", &error), NEZHA_OK);
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
		uint64_t from = nezha_plan_native_below(builtin, &scales[i]);

		for (uint64_t bytes = 100; bytes <= 4 << 20; bytes += bytes / 3) {
			nezha_plan_make(builtin, &scales[i], bytes > from ? bytes : from, &before);
			nezha_plan_make(table, &scales[i], bytes, &plan);
			assert_int_equal(plan.alg, NEZHA_ALG_RING);
			assert_int_equal(plan.block, before.block);
			assert_int_equal(plan.rails->count, 1);
		}
		for (uint64_t bytes = 1; bytes <= 64 << 20; bytes = bytes < 100 ? bytes + 1 : bytes + (4 << 20)) {
			nezha_plan_make(builtin, &scales[i], bytes, &before);
			nezha_plan_make(table, &scales[i], bytes, &plan);
			assert_true((bytes >= 100 && bytes <= 4 << 20) || nezha_plan_equal(&plan, &before));
		}
	}
	/* Between and beyond the group's rings, too. */
	nezha_table_free(table);
	table = parse("{\"version\": 1, \"collectives\": {\"allreduce\": [{\"rules\": [{\"msg_size_max\": 9, \"alg\": \"native\"}, "
	              "{\"msg_size_max\": 99, \"alg\": \"ring\", \"block\": \"4K\"}, "
	              "{\"msg_size_min\": 200, \"msg_size_max\": 299, \"alg\": \"ring\", \"block\": \"8K\"}]}]}}");
	assert_int_equal(nezha_table_override(table, "alg=ring", &error), NEZHA_OK);
	for (uint64_t bytes = 1; bytes < 400; bytes++) {
		nezha_plan_make(table, &scales[0], bytes, &plan);
		assert_int_equal(plan.block, bytes >= 200 && bytes < 300 ? 8192 : 4096);
	}
	nezha_table_free(table);
	nezha_table_free(builtin);
}

static void override_refuses_what_is_wrong(void **state)
{
#define SHARE(text) \
		{ "alg=mix,share=" text, "\"share=" text "\": allowed is share= the MPI library's part, from 0.001 to 0.999" }
	static const struct {
		const char *tune, *message;
	} cases[] = {
		{ "", "\"\": allowed is alg=, block=, rails=, share=, call=, min= and max=, separated by commas" },
		{ "ring", "\"ring\": allowed is alg=, block=, rails=, share=, call=, min= and max=, separated by commas" },
		{ "alg=ring,", "\"\": allowed is alg=, block=, rails=, share=, call=, min= and max=, separated by commas" },
		{ "alg=ring, min=1",
		  "\" min=1\": allowed is alg=, block=, rails=, share=, call=, min= and max=, separated by commas" },
		{ "alg=ring,blok=4K",
		  "\"blok=4K\": allowed is alg=, block=, rails=, share=, call=, min= and max=, separated by commas" },
		{ "alg=rnig", "\"alg=rnig\": allowed is alg=native, alg=ring or alg=mix" },
		{ "alg=", "\"alg=\": allowed is alg=native, alg=ring or alg=mix" },
		{ "min=5", "\"min=5\": allowed is alg=native, alg=ring or alg=mix in it" },
		{ "alg=ring,alg=ring", "\"alg=ring\": allowed is each of alg, block, rails, share, call, min and max once" },
		{ "alg=ring,block=5000", "\"block=5000\": allowed is block= a multiple of 4K from 4K to 4M" },
		{ "alg=ring,block=8M", "\"block=8M\": allowed is block= a multiple of 4K from 4K to 4M" },
		{ "alg=ring,block=", "\"block=\": allowed is block= a multiple of 4K from 4K to 4M" },
		{ "alg=native,block=4K", "\"alg=native,block=4K\": allowed is block= with alg=ring and alg=mix only" },
		{ "alg=ring,rails=tcp:e0",
		  "\"rails=tcp:e0\": allowed is rails= one to eight different tcp:SUBNET/BITS, such as "
		  "tcp:10.1.0.0/16, with + between them" },
		{ "alg=native,rails=tcp:10.1.0.0/16",
		  "\"alg=native,rails=tcp:10.1.0.0/16\": allowed is rails= with alg=ring and alg=mix only" },
		{ "alg=ring,min=12abc",
		  "\"min=12abc\": allowed is min= a number of bytes, such as 65536, 64K or 1M" },
		{ "alg=ring,min=inf",
		  "\"min=inf\": allowed is min= a number of bytes, such as 65536, 64K or 1M" },
		{ "alg=ring,max=-1",
		  "\"max=-1\": allowed is max= a number of bytes, such as 65536, 64K or 1M, or inf" },
		{ "alg=ring,min=2M,max=1M",
		  "\"alg=ring,min=2M,max=1M\": allowed is a min= that is not more than max=" },
		{ "alg=ring,min=00000000000000000000000000000000000001",
		  "\"min=000000000000000000000000000000000000\": allowed is min= a number of bytes, such as "
		  "65536, 64K or 1M" },
		{ "alg=mix", "\"alg=mix\": allowed is alg=mix with share= only" },
		{ "alg=ring,share=0.5", "\"alg=ring,share=0.5\": allowed is share= and call= with alg=mix only" },
		{ "alg=native,call=blocking", "\"alg=native,call=blocking\": allowed is share= and call= with alg=mix only" },
		{ "alg=mix,share=0.5,call=no", "\"call=no\": allowed is call=nonblocking or call=blocking" },
		SHARE(""), SHARE("0"), SHARE("0."), SHARE("1"), SHARE("1.0"), SHARE("0.0"), SHARE("0.000"), SHARE("0.0001"), SHARE("0.1234"),
		SHARE(".5"), SHARE("0.5x"), SHARE("0.x"), SHARE("50%"), SHARE("-0.5"), SHARE("0.-5"), SHARE("1e-1"),
		{ "alg=mix,share=0,5", "\"share=0\": allowed is share= the MPI library's part, from 0.001 to 0.999" },
		{ "a\nb", "\"a b\": allowed is alg=, block=, rails=, share=, call=, min= and max=, separated by commas" },
	};
	struct nezha_table *table;
	char *before, *after, expected[256];

	(void)state;
	assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
	before = nezha_table_print(table);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *error = NULL;

		assert_int_equal(nezha_table_override(table, cases[i].tune, &error), NEZHA_ERR_INVALID);
		snprintf(expected, sizeof expected, "NEZHA_TUNE: %s", cases[i].message);
		assert_string_equal(error, expected);
		free(error);
		after = nezha_table_print(table);
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
	nezha_table_free(table);
}

/* A mix like a ring: its blocks are those of the table's rings, and its shares hold at all sizes. */
static void override_by_a_mix(void **state)
{
	static const struct {
		const char *text;
		uint16_t share;
	} cases[] = { { "0.001", 1 }, { "0.05", 50 }, { "0.5", 500 }, { "0.613", 613 }, { "0.999", 999 } };
	const struct nezha_scale scale = { 4, 4, 1 };
	struct nezha_table *builtin, *table;
	struct nezha_plan before, plan;
	struct nezha_rule rule;
	char *error = NULL, tune[64];

	(void)state;
	assert_int_equal(nezha_table_builtin(&builtin), NEZHA_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(tune, sizeof tune, "alg=mix,min=1M,share=%s%s", cases[i].text, i % 2 ? ",call=blocking" : "");
		assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
		assert_int_equal(nezha_table_override(table, tune, &error), NEZHA_OK);
		for (uint64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 2) {
			nezha_plan_make(builtin, &scale, bytes, &before);
			nezha_plan_make(table, &scale, bytes, &plan);
			assert_int_equal(plan.alg, NEZHA_ALG_MIX);
			assert_int_equal(plan.reason, NEZHA_REASON_TUNE);
			assert_int_equal(plan.block, before.block);
			assert_int_equal(plan.share, cases[i].share);
			assert_int_equal(plan.nonblocking, i % 2 == 0);
		}
		nezha_table_free(table);
	}
	nezha_table_free(builtin);
	assert_int_equal(nezha_rule_parse("alg=mix,share=0.25", &rule, &error), NEZHA_OK);
	assert_true(rule.share == 250 && rule.block == NEZHA_BLOCK_DEFAULT && !rule.blocking);
}

static void override_needs_room(void **state)
{
	static const int sizes[][2] = { { 128, 1 }, { 1, 128 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *text = table_text(sizes[i][0], sizes[i][1], 0), *error = NULL;
		struct nezha_table *table = parse(text);

		assert_int_equal(nezha_table_override(table, "alg=ring", &error), NEZHA_ERR_INVALID);
		assert_string_equal(
			error, "NEZHA_TUNE: no room for what it adds to the table: allowed are 128 groups of 128 rules; with "
			       "block= it adds one rule to each group, and one group");
		free(error);
		free(text);
		nezha_table_free(table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(override_goes_first_everywhere),
		cmocka_unit_test(override_keeps_the_blocks),
		cmocka_unit_test(override_refuses_what_is_wrong),
		cmocka_unit_test(override_by_a_mix),
		cmocka_unit_test(override_needs_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
