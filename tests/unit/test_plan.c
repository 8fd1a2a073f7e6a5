/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/grid.h"
#include "tuning/plan.h"
#include "tuning/status.h"
#include "tuning/table.h"

#define K UINT64_C(1024)
#define M (K * K)

static struct nezha_plan plan(const struct nezha_table *table, int ranks, int nodes, int ppn, uint64_t bytes)
{
	struct nezha_scale scale = { ranks, nodes, ppn };
	struct nezha_plan out;

	memset(&out, 0xee, sizeof out);
	nezha_plan_make(table, &scale, bytes, &out);
	return out;
}

static void assert_native(struct nezha_plan p, enum nezha_reason reason)
{
	assert_int_equal(p.alg, NEZHA_ALG_NATIVE);
	assert_int_equal(p.reason, reason);
	assert_int_equal(p.block, 0);
}

static void assert_ring(struct nezha_plan p, uint32_t block)
{
	assert_int_equal(p.alg, NEZHA_ALG_RING);
	assert_int_equal(p.reason, NEZHA_REASON_RULE);
	assert_int_equal(p.block, block);
}

static void built_in_decisions(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t block;   /* 0: native */
	} cases[] = {
		{ 1, 0 }, { 8, 0 }, { 16 * K - 1, 0 },
		{ 16 * K, 8 * K }, { 256 * K - 1, 8 * K }, { 256 * K, 12 * K }, { 512 * K - 1, 12 * K },
		{ 512 * K, 24 * K }, { M, 24 * K }, { 2 * M, 24 * K },
		{ 2 * M + 1, 64 * K }, { 8 * M, 64 * K }, { 8 * M + 1, 128 * K }, { 32 * M, 128 * K },
		{ 32 * M + 1, 512 * K }, { 64 * M, 512 * K }, { 4096 * M, 512 * K },
	};
	struct nezha_table *table;

	(void)state;
	assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_plan p = plan(table, 4, 4, 1, cases[i].bytes);

		if (cases[i].block)
			assert_ring(p, cases[i].block);
		else
			assert_native(p, NEZHA_REASON_SMALL);
		assert_native(plan(table, 4, 1, 4, cases[i].bytes), NEZHA_REASON_ONE_NODE);
		assert_native(plan(table, 1, 1, 1, cases[i].bytes), NEZHA_REASON_ONE_NODE);
		/* Several ranks on a node begin later; and their rings never have large blocks. */
		p = plan(table, 8, 4, 2, cases[i].bytes);
		if (cases[i].bytes >= 64 * K)
			assert_ring(p, cases[i].block < 128 * K ? cases[i].block : 128 * K);
		else
			assert_native(p, NEZHA_REASON_SMALL);
	}
	assert_int_equal(nezha_plan_native_below(table, &(struct nezha_scale){ 4, 4, 1 }), 16 * K);
	assert_int_equal(nezha_plan_native_below(table, &(struct nezha_scale){ 4, 1, 4 }), UINT64_MAX);
	assert_int_equal(nezha_plan_native_below(table, &(struct nezha_scale){ 8, 4, 2 }), 64 * K);
	nezha_table_free(table);
}

static void a_scale_takes_its_first_group_only(void **state)
{
	struct nezha_table *table =
		parse("{\"version\": 1, \"collectives\": {\"allreduce\": ["
	              "{\"comm_size_min\": 2, \"comm_size_max\": 4, \"nodes_min\": 2, \"nodes_max\": 4, "
	              "\"ppn_max\": 2, "
	              " \"rules\": [{\"msg_size_min\": 100, \"msg_size_max\": 200, \"alg\": \"ring\", "
	              "\"block\": 4096},"
	              "             {\"msg_size_min\": 150, \"msg_size_max\": 300, \"alg\": \"native\"}]},"
	              "{\"comm_size_max\": 8, \"rules\": [{\"alg\": \"ring\", \"block\": 8192}]}]}}");

	(void)state;
	assert_native(plan(table, 2, 2, 1, 99), NEZHA_REASON_NO_RULE);
	assert_ring(plan(table, 2, 2, 1, 100), 4096);
	assert_ring(plan(table, 4, 4, 2, 200), 4096);
	assert_native(plan(table, 4, 4, 2, 201), NEZHA_REASON_RULE);
	assert_native(plan(table, 4, 4, 2, 300), NEZHA_REASON_RULE);
	assert_native(plan(table, 4, 4, 2, 301), NEZHA_REASON_NO_RULE);
	/* One bound off in each direction: the second group. */
	assert_ring(plan(table, 1, 2, 1, 100), 8192);
	assert_ring(plan(table, 5, 4, 1, 100), 8192);
	assert_ring(plan(table, 4, 1, 2, 100), 8192);
	assert_ring(plan(table, 4, 5, 1, 100), 8192);
	assert_ring(plan(table, 4, 4, 3, 100), 8192);
	assert_native(plan(table, 9, 9, 1, 100), NEZHA_REASON_NO_RULE);
	nezha_table_free(table);
}

static void what_makes_no_grid_is_native(void **state)
{
	struct nezha_table *table = parse("{\"version\": 1, \"collectives\": {\"allreduce\": ["
	                                  "{\"rules\": [{\"alg\": \"ring\", \"block\": \"4K\"}]}]}}");

	(void)state;
	assert_native(plan(table, 2, 2, 1, 0), NEZHA_REASON_COUNT);
	assert_ring(plan(table, 2, 2, 1, 1), 4096);
	assert_ring(plan(table, 2, 2, 1, 4 * K * INT32_MAX), 4096);
	assert_native(plan(table, 2, 2, 1, 4 * K * INT32_MAX + 1), NEZHA_REASON_COUNT);
	assert_native(plan(table, 2, 2, 1, UINT64_MAX), NEZHA_REASON_COUNT);
	assert_int_equal(nezha_plan_native_below(table, &(struct nezha_scale){ 2, 2, 1 }), 1);
	nezha_table_free(table);
}

/* Whole blocks for the library, at least one, and never all; as near to the share as these allow. */
static void a_mix_is_shared(void **state)
{
	static const unsigned shares[] = { 1, 50, 333, 500, 613, 952, 999 };
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		double share = shares[i] / 1000.0;
		struct nezha_table *table;

		snprintf(text, sizeof text, "{\"version\": 1, \"collectives\": {\"allreduce\": [{\"rules\": [{\"alg\": \"mix\", "
		         "\"native_share\": 0.%03u, \"block\": \"8K\"}]}]}}", shares[i]);
		table = parse(text);
		for (uint64_t bytes = 1; bytes < 4096 * M; bytes += bytes / 7 + 1) {
			struct nezha_plan p = plan(table, 4, 4, 1, bytes);

			if (bytes <= 8 * K) {
				assert_int_equal(p.alg, shares[i] < 500 ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE);
				assert_true(!p.native && !p.share && !p.nonblocking && p.block == (shares[i] < 500 ? 8 * K : 0));
				continue;
			}
			assert_int_equal(p.alg, NEZHA_ALG_MIX);
			assert_true(p.native >= 8 * K && p.native < bytes && p.native % (8 * K) == 0);
			if (fabs((double)p.native - share * (double)bytes) > 8 * K)
				fail_msg("%" PRIu64 " of %" PRIu64 " bytes are %s's", p.native, bytes, text);
			assert_true(p.nonblocking && p.block == 8 * K && p.share == shares[i]);
		}
		nezha_table_free(table);
	}
}

static void native_below_known_tables(void **state)
{
	static const struct {
		const char *rules;
		uint64_t below;
	} cases[] = {
		{ "", UINT64_MAX },
		{ "{\"alg\": \"native\"}", UINT64_MAX },
		{ "{\"msg_size_max\": 0, \"alg\": \"ring\"}", UINT64_MAX },
		{ "{\"msg_size_min\": 5, \"msg_size_max\": 5, \"alg\": \"ring\"}", 5 },
		{ "{\"msg_size_max\": 9, \"alg\": \"native\"}, {\"msg_size_max\": 9, \"alg\": \"ring\"}",
		  UINT64_MAX },
		{ "{\"msg_size_max\": 9, \"alg\": \"native\"}, {\"msg_size_max\": 10, \"alg\": \"ring\"}",
		  10 },
		{ "{\"msg_size_min\": \"1M\", \"alg\": \"ring\"}, {\"msg_size_min\": \"64K\", "
		  "\"msg_size_max\": \"128K\", "
		  "\"alg\": \"ring\"}",
		  65536 },
		{ "{\"msg_size_min\": 10, \"alg\": \"native\"}, {\"msg_size_min\": 10, \"alg\": \"ring\"}",
		  UINT64_MAX },
		{ "{\"msg_size_min\": \"18446744073709551615\", \"alg\": \"ring\"}", UINT64_MAX },
		{ "{\"alg\": \"mix\", \"native_share\": 0.499, \"block\": \"8K\"}", 1 },
		{ "{\"alg\": \"mix\", \"native_share\": 0.5, \"block\": \"8K\"}", 8193 },
		{ "{\"msg_size_max\": \"8K\", \"alg\": \"mix\", \"native_share\": 0.5, \"block\": \"8K\"}", UINT64_MAX },
		{ "{\"msg_size_min\": \"64K\", \"alg\": \"mix\", \"native_share\": 0.5, \"block\": \"8K\"}", 65536 },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_table *table;

		snprintf(text, sizeof text,
		         "{\"version\": 1, \"collectives\": {\"allreduce\": [{\"rules\": [%s]}]}}",
		         cases[i].rules);
		table = parse(text);
		assert_int_equal(nezha_plan_native_below(table, &(struct nezha_scale){ 2, 2, 1 }),
		                 cases[i].below);
		nezha_table_free(table);
	}
}

/* A table of up to 5 rules over the first 40 bytes, out of the digits of `seed`. */
static void make_rules(unsigned seed, char *text, size_t len)
{
	size_t at = (size_t)snprintf(text, len,
	                             "{\"version\": 1, \"collectives\": {\"allreduce\": [{\"rules\": [");
	unsigned count = seed % 6;

	for (unsigned i = 0; i < count; i++) {
		unsigned min, length;

		seed = seed * 1103515245u + 12345u;
		min = (seed >> 16) % 40;
		length = (seed >> 8) % 12;
		at += (size_t)snprintf(text + at, len - at,
		                       "%s{\"msg_size_min\": %u, \"msg_size_max\": %u, \"alg\": \"%s\"}",
		                       i ? "," : "", min, min + length, seed >> 30 & 1 ? "ring" : "native");
	}
	snprintf(text + at, len - at, "]}]}}");
}

static void native_below_is_what_the_plans_say(void **state)
{
	struct nezha_scale scale = { 2, 2, 1 };
	unsigned found = 0;
	char text[1024];

	(void)state;
	for (unsigned seed = 1; seed <= 2000; seed++) {
		struct nezha_table *table;
		uint64_t first = 0;

		make_rules(seed * 2654435761u, text, sizeof text);
		table = parse(text);
		while (first < 60 && plan(table, 2, 2, 1, first).alg == NEZHA_ALG_NATIVE)
			first++;
		if (first == 60)
			first = UINT64_MAX;
		else
			found++;
		if (nezha_plan_native_below(table, &scale) != first)
			fail_msg("%" PRIu64 " for %s", nezha_plan_native_below(table, &scale), text);
		nezha_table_free(table);
	}
	assert_in_range(found, 200, 1800);   /* both outcomes were met often */
}

static void prints_plans(void **state)
{
	struct nezha_plan ring = { .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .block = 65536 };
	struct nezha_plan native = { .alg = NEZHA_ALG_NATIVE, .reason = NEZHA_REASON_SMALL };
	struct nezha_plan mix = { .alg = NEZHA_ALG_MIX, .reason = NEZHA_REASON_TUNE, .block = 65536, .native = 655360, .share = 613,
	                          .nonblocking = true };
	char text[128];

	(void)state;
	nezha_plan_print(&ring, text, sizeof text);
	assert_string_equal(text, "ring, blocks of 64 KiB (the table's rule)");
	ring.block = 1 << 20;
	nezha_plan_print(&ring, text, sizeof text);
	assert_string_equal(text, "ring, blocks of 1 MiB (the table's rule)");
	nezha_plan_print(&native, text, sizeof text);
	assert_string_equal(text, "native (too small for the rails to pay)");
	nezha_plan_print(&mix, text, sizeof text);
	assert_string_equal(text, "mix, 61.3 % native, blocks of 64 KiB (NEZHA_TUNE's rule)");
	mix.share = 0;
	nezha_plan_print(&mix, text, sizeof text);
	assert_string_equal(text, "mix, the first 640 KiB native, blocks of 64 KiB (NEZHA_TUNE's rule)");
	nezha_plan_print(&native, text, 7);
	assert_string_equal(text, "native");
}

static void names_are_there_and_differ(void **state)
{
	(void)state;
	for (int i = 0; i < NEZHA_REASONS_END; i++) {
		assert_true(*nezha_reason_name((enum nezha_reason)i));
		assert_true(*nezha_reason_text((enum nezha_reason)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(nezha_reason_name((enum nezha_reason)i),
			                        nezha_reason_name((enum nezha_reason)j));
	}
	assert_string_equal(nezha_reason_name(NEZHA_REASON_SHARED_NODE), "shared-node");
	assert_string_equal(nezha_algorithm_name(NEZHA_ALG_NATIVE), "native");
	assert_string_equal(nezha_algorithm_name(NEZHA_ALG_RING), "ring");
	assert_string_equal(nezha_algorithm_name(NEZHA_ALG_MIX), "mix");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_in_decisions),
		cmocka_unit_test(a_scale_takes_its_first_group_only),
		cmocka_unit_test(what_makes_no_grid_is_native),
		cmocka_unit_test(a_mix_is_shared),
		cmocka_unit_test(native_below_known_tables),
		cmocka_unit_test(native_below_is_what_the_plans_say),
		cmocka_unit_test(prints_plans),
		cmocka_unit_test(names_are_there_and_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
