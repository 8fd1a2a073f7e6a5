/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/parse.h"
#include "tuning/locate.h"
#include "tuning/plan.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"

#define RULE_KEYS "msg_size_min, msg_size_max, alg, block, native_share, native_call, rails, reason"
#define GROUP_KEYS "comm_size_min, comm_size_max, nodes_min, nodes_max, ppn_min, ppn_max, measured, measured_ppn, rules"
#define TOP_KEYS "version, collectives, mpi, host, topology, rails, date, comment"

static void assert_refused_bytes(const char *text, size_t len, const char *message)
{
	struct nezha_table *table = (void *)0x1;
	char *error = NULL;
	int status = nezha_table_parse(text, len, "t.json", &table, &error);

	if (status != NEZHA_ERR_INVALID)
		fail_msg("accepted, where expected was: %s", message);
	assert_ptr_equal(table, (void *)0x1);
	assert_non_null(error);
	assert_string_equal(error, message);
	assert_null(strpbrk(error, "\n\r\t"));
	free(error);
}

static void assert_refused(const char *text, const char *message)
{
	assert_refused_bytes(text, strlen(text), message);
}

/* `rule` stands on line 3 of its table. */
static void assert_rule_refused(const char *rule, const char *message)
{
	char text[1024];

	snprintf(text, sizeof text,
	         "{\"version\": 1, \"collectives\": {\"allreduce\":\n[{\"rules\": [{\"alg\": "
	         "\"native\"},\n%s]}]}}",
	         rule);
	assert_refused(text, message);
}

/* `members` of a group stand on line 2. */
static void assert_group_refused(const char *members, const char *message)
{
	char text[1024];

	snprintf(text, sizeof text, "{\"version\": 1, \"collectives\": {\"allreduce\": [\n{%s}]}}", members);
	assert_refused(text, message);
}

static char *read_source(const char *name)
{
	const char *top = getenv("abs_top_srcdir");
	char path[4096], *text = calloc(1, 1 << 16);
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", top ? top : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s (abs_top_srcdir tells where the sources are)", path);
	assert_in_range(fread(text, 1, (1 << 16) - 1, f), 1, (1 << 16) - 2);
	fclose(f);
	return text;
}

static void reads_every_field(void **state)
{
	struct nezha_table *table = parse(
		"{\"version\": 1, \"mpi\": \"MPICH 4\", \"date\": \"\", \"collectives\": {\"allreduce\": ["
		"{\"comm_size_min\": 2, \"comm_size_max\": 3, \"nodes_min\": 4, \"nodes_max\": 5, "
	        "\"ppn_min\": 6, "
		"\"ppn_max\": 7, \"rules\": [{\"msg_size_min\": 8, \"msg_size_max\": 9, \"alg\": \"ring\", "
	        "\"block\": 12288},"
		"{\"msg_size_min\": \"2K\", \"msg_size_max\": \"1G\", \"alg\": \"native\", \"reason\": "
	        "\"small\"}]},"
		"{\"comm_size_max\": \"inf\", \"rules\": [{\"msg_size_max\": \"inf\", \"alg\": "
	        "\"ring\"}]}]}}");
	const struct nezha_rule_group *g = table->groups;

	(void)state;
	assert_string_equal(table->header[NEZHA_TABLE_HEADER_mpi], "MPICH 4");
	assert_string_equal(table->header[NEZHA_TABLE_HEADER_date], "");
	assert_null(table->header[NEZHA_TABLE_HEADER_host]);
	assert_int_equal(table->group_count, 2);
	assert_int_equal(g[0].comm_size_min, 2);
	assert_int_equal(g[0].comm_size_max, 3);
	assert_int_equal(g[0].nodes_min, 4);
	assert_int_equal(g[0].nodes_max, 5);
	assert_int_equal(g[0].ppn_min, 6);
	assert_int_equal(g[0].ppn_max, 7);
	assert_int_equal(g[0].rule_count, 2);
	assert_int_equal(g[0].rules[0].msg_size_min, 8);
	assert_int_equal(g[0].rules[0].msg_size_max, 9);
	assert_int_equal(g[0].rules[0].alg, NEZHA_ALG_RING);
	assert_int_equal(g[0].rules[0].block, 12288);
	assert_int_equal(g[0].rules[1].msg_size_min, 2048);
	assert_int_equal(g[0].rules[1].msg_size_max, 1 << 30);
	assert_int_equal(g[0].rules[1].alg, NEZHA_ALG_NATIVE);
	assert_int_equal(g[0].rules[1].reason, NEZHA_REASON_SMALL);
	assert_int_equal(g[0].rules[1].block, 0);
	assert_int_equal(g[1].comm_size_min, 1);
	assert_int_equal(g[1].comm_size_max, INT32_MAX);
	assert_int_equal(g[1].nodes_max, INT32_MAX);
	assert_int_equal(g[1].ppn_min, 1);
	assert_int_equal(g[1].rules[0].msg_size_min, 0);
	assert_true(g[1].rules[0].msg_size_max == UINT64_MAX);
	assert_int_equal(g[1].rules[0].block, NEZHA_BLOCK_DEFAULT);
	assert_int_equal(g[1].rules[0].reason, NEZHA_REASON_RULE);
	nezha_table_free(table);
}

static void refuses_what_is_not_json(void **state)
{
	static const char binary[] = "{\"version\": 1\0}";

	(void)state;
	assert_refused("", "t.json:1: not JSON: '[' or '{' expected near end of file");
	assert_refused("5", "t.json:1: not JSON: '[' or '{' expected near '5'");
	assert_refused("[]", "t.json:1: the table must be an object");
	assert_refused("{\n\"version\": 1,\n\n}", "t.json:4: not JSON: string or '}' expected near '}'");
	assert_refused("{\n\"version\": 1\n\"x\"}", "t.json:3: not JSON: '}' expected near '\"x\"'");
	assert_refused("{\"version\": 1,\n \"version\": 1}",
	               "t.json:2: not JSON: duplicate object key near '\"version\"'");
	assert_refused("{\"version\": 1,\n \"mpi\": \"a\nb\"}",
	               "t.json:2: not JSON: unexpected newline near '\"a'");
	assert_refused_bytes(binary, sizeof binary - 1, "t.json:1: not JSON: a NUL byte in it");
}

static void refuses_a_wrong_top(void **state)
{
	(void)state;
	assert_refused("{}", "t.json:1: the key \"version\" is missing");
	assert_refused("\n\n{\"version\": 1}", "t.json:3: the key \"collectives\" is missing");
	assert_refused("{\"collectives\": {\"allreduce\": []},\n\"version\": 2}",
	               "t.json:2: \"version\" is 2: allowed is 1");
	assert_refused("{\"collectives\": {\"allreduce\": []},\n\"version\": \"1\"}",
	               "t.json:2: \"version\" is \"1\": allowed is 1");
	assert_refused("{\"collectives\": {\"allreduce\": []},\n\"version\": 1.0}",
	               "t.json:2: \"version\" is 1.0: allowed is 1");
	assert_refused("{\"version\": 1, \"collectives\":\n {}}",
	               "t.json:1: the key \"allreduce\" is missing");
	assert_refused("{\"version\": 1,\n\"collectives\": []}",
	               "t.json:2: \"collectives\" is []: allowed is an object with the key \"allreduce\"");
	assert_refused("{\"version\": 1,\n\"collectives\": {\"allreduce\": [],\n\"bcast\": []}}",
	               "t.json:3: unknown key \"bcast\": allowed here is allreduce");
	assert_refused("{\"version\": 1, \"collectives\": {\n\n\"allreduce\": {}}}",
	               "t.json:3: \"allreduce\" is {}: allowed is an array of at most 128 objects");
	assert_refused("{\"version\": 1, \"collectives\": {\"allreduce\": [{\"rules\": []},\n7]}}",
	               "t.json:2: \"allreduce\" contains 7: allowed is objects only");
	assert_refused(
		"{\"version\": 1, \"mpi\": \"x\",\n\"hots\": \"n1\", \"collectives\": {\"allreduce\": []}}",
		"t.json:2: unknown key \"hots\": allowed here is " TOP_KEYS);
	assert_refused("{\"version\": 1,\n\"date\": 2024, \"collectives\": {\"allreduce\": []}}",
	               "t.json:2: \"date\" is 2024: allowed is a text of at most 256 bytes");
	assert_refused("{\"version\": 1, \"a\\u0007\\nb\": 1, \"collectives\": {\"allreduce\": []}}",
	               "t.json:1: unknown key \"a? b\": allowed here is " TOP_KEYS);
}

static void refuses_wrong_groups(void **state)
{
	(void)state;
	assert_group_refused("", "t.json:2: the key \"rules\" is missing");
	assert_group_refused("\"rules\": 5",
	                     "t.json:2: \"rules\" is 5: allowed is an array of at most 128 objects");
	assert_group_refused("\"rules\": [\"x\"]",
	                     "t.json:2: \"rules\" contains \"x\": allowed is objects only");
	assert_group_refused("\"rules\": [],\n\"node_min\": 2",
	                     "t.json:3: unknown key \"node_min\": allowed here is " GROUP_KEYS);
	assert_group_refused("\"rules\": [],\n\"nodes_min\": 0",
	                     "t.json:3: \"nodes_min\" is 0: allowed is a whole number from 1 to 2147483647");
	assert_group_refused(
		"\"rules\": [], \"nodes_min\": \"inf\"",
		"t.json:2: \"nodes_min\" is \"inf\": allowed is a whole number from 1 to 2147483647");
	assert_group_refused("\"rules\": [], \"ppn_max\": 2147483648",
	                     "t.json:2: \"ppn_max\" is 2147483648: allowed is a whole number from 1 to "
	                     "2147483647, or \"inf\"");
	assert_group_refused("\"rules\": [], \"comm_size_max\": \"8\"",
	                     "t.json:2: \"comm_size_max\" is \"8\": allowed is a whole number from 1 to "
	                     "2147483647, or \"inf\"");
	assert_group_refused("\"comm_size_min\": 9, \"comm_size_max\": 8,\n\"rules\": []",
	                     "t.json:2: \"comm_size_min\" is 9, more than \"comm_size_max\", which is 8");
	assert_group_refused("\"nodes_min\": 3, \"nodes_max\": 2, \"rules\": []",
	                     "t.json:2: \"nodes_min\" is 3, more than \"nodes_max\", which is 2");
	assert_group_refused("\"ppn_min\": 2, \"ppn_max\": 1, \"rules\": []",
	                     "t.json:2: \"ppn_min\" is 2, more than \"ppn_max\", which is 1");
}

static void refuses_wrong_rules(void **state)
{
	static const char *const wrong_rails[] = {
		"", "auto", "tcp:e0", "10.1.0.0/16", "tcp:10.1.0.0", "tcp:10.1.0.1/16", "tcp:10.1.0.0/0",
		"tcp:10.1.0.0/32", "tcp:10.1.0.0/16,", "tcp:0.0.0.0/1+tcp:0.0.0.0/1",
	};

	(void)state;
	assert_rule_refused("{}", "t.json:3: the key \"alg\" is missing");
	assert_rule_refused("{\"alg\":\n\"rnig\"}",
	                    "t.json:3: \"alg\" is \"rnig\": allowed is \"native\", \"ring\" or \"mix\"");
	assert_rule_refused("{\n\"alg\": \"Ring\"}",
	                    "t.json:4: \"alg\" is \"Ring\": allowed is \"native\", \"ring\" or \"mix\"");
	assert_rule_refused("{\"alg\": 4}", "t.json:3: \"alg\" is 4: allowed is \"native\", \"ring\" or \"mix\"");
	assert_rule_refused("{\"alg\": \"0123456789012345678901234567890123456789\"}",
	                    "t.json:3: \"alg\" is \"012345678901234567890123456789012345678...: "
	                    "allowed is \"native\", \"ring\" or \"mix\"");
	assert_rule_refused("{\"alg\": \"ring\",\n\"msgsize_min\": 1}",
	                    "t.json:4: unknown key \"msgsize_min\": allowed here is " RULE_KEYS);
	assert_rule_refused("{\"alg\": \"ring\",\n\"block\":\n5000}",
	                    "t.json:4: \"block\" is 5000: allowed is a multiple of 4K from 4K to 4M");
	assert_rule_refused("{\"alg\": \"ring\", \"block\": 0}",
	                    "t.json:3: \"block\" is 0: allowed is a multiple of 4K from 4K to 4M");
	assert_rule_refused("{\"alg\": \"ring\", \"block\": \"8M\"}",
	                    "t.json:3: \"block\" is \"8M\": allowed is a multiple of 4K from 4K to 4M");
	assert_rule_refused("{\"alg\": \"ring\", \"block\": 4294971392}",   /* 2^32 + 4K */
	                    "t.json:3: \"block\" is 4294971392: allowed is a multiple of 4K from 4K to 4M");
	assert_rule_refused("{\"alg\": \"ring\", \"msg_size_min\": -1}",
	                    "t.json:3: \"msg_size_min\" is -1: allowed is a number of bytes, or a text like "
	                    "\"64K\" (K, M, G)");
	assert_rule_refused("{\"alg\": \"ring\", \"msg_size_min\": \"inf\"}",
	                    "t.json:3: \"msg_size_min\" is \"inf\": allowed is a number of bytes, or a text "
	                    "like \"64K\" (K, M, G)");
	assert_rule_refused(
		"{\"alg\": \"ring\", \"msg_size_max\": \"12abc\"}",
		"t.json:3: \"msg_size_max\" is \"12abc\": allowed is a number of bytes, a text like \"64K\" "
		"(K, M, G), or \"inf\"");
	assert_rule_refused("{\"alg\": \"ring\", \"msg_size_min\": 4096, \"msg_size_max\": \"1K\"}",
	                    "t.json:3: \"msg_size_min\" is 4096, more than \"msg_size_max\", which is 1024");
	assert_rule_refused(
		"{\"alg\": \"native\", \"block\": 4096}",
		"t.json:3: \"block\" is 4096, but \"alg\" is \"native\": allowed with \"ring\" and \"mix\" only");
	for (size_t i = 0; i < sizeof wrong_rails / sizeof *wrong_rails; i++) {
		char rule[128], message[256];

		snprintf(rule, sizeof rule, "{\"alg\": \"ring\", \"rails\": \"%s\"}", wrong_rails[i]);
		snprintf(message, sizeof message, "t.json:3: \"rails\" is \"%s\": allowed is one to eight different "
		         "tcp:SUBNET/BITS, such as tcp:10.1.0.0/16", wrong_rails[i]);
		assert_rule_refused(rule, message);
	}
	assert_rule_refused("{\"alg\": \"native\", \"rails\": \"tcp:10.1.0.0/16\"}",
	                    "t.json:3: \"rails\" is given, but \"alg\" is \"native\": allowed with \"ring\" and \"mix\" only");
	assert_group_refused("\"measured\": 0, \"rules\": []",
	                     "t.json:2: \"measured\" is 0: allowed is a whole number from 1 to 2147483647");
	assert_group_refused("\"measured_ppn\": 2, \"rules\": []",
	                     "t.json:2: \"measured_ppn\" is 2, but \"measured\" is missing: allowed with it only");
	assert_rule_refused("{\"alg\": \"native\", \"reason\": \"no-rule\"}",
	                    "t.json:3: \"reason\" is \"no-rule\": allowed is \"rule\", \"tune\", \"small\", "
	                    "\"one-node\" or \"shared-node\"");
	assert_rule_refused(
		"{\"alg\": \"ring\", \"reason\": \"small\"}",
		"t.json:3: \"reason\" is \"small\", but \"alg\" is \"ring\": allowed with \"native\" only");
}

static void refuses_wrong_shares(void **state)
{
	static const char *const wrong[] = { "0", "1", "-0.5", "0.0004", "0.9996", "62", "1e300", "\"0.5\"", "true", "null" };

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char rule[80], message[160];

		snprintf(rule, sizeof rule, "{\"alg\": \"mix\", \"native_share\": %s}", wrong[i]);
		snprintf(message, sizeof message, "t.json:3: \"native_share\" is %s: allowed is a number from 0.001 to 0.999",
		         wrong[i]);
		assert_rule_refused(rule, message);
	}
	assert_rule_refused("{\"alg\": \"mix\"}",
	                    "t.json:3: \"native_share\" is missing: \"alg\" is \"mix\", which needs it, a number from 0.001 to 0.999");
	assert_rule_refused("{\"alg\": \"ring\", \"native_share\": 0.5}",
	                    "t.json:3: \"native_share\" is 0.500, but \"alg\" is \"ring\": allowed with \"mix\" only");
	assert_rule_refused("{\"alg\": \"native\", \"native_call\": \"blocking\"}",
	                    "t.json:3: \"native_call\" is \"blocking\", but \"alg\" is \"native\": allowed with \"mix\" only");
	assert_rule_refused("{\"alg\": \"mix\", \"native_share\": 0.5, \"native_call\": \"later\"}",
	                    "t.json:3: \"native_call\" is \"later\": allowed is \"nonblocking\" or \"blocking\"");
	assert_rule_refused("{\"alg\": \"mix\", \"native_share\": 0.5, \"reason\": \"small\"}",
	                    "t.json:3: \"reason\" is \"small\", but \"alg\" is \"mix\": allowed with \"native\" only");
}

static void keeps_to_its_limits(void **state)
{
	static const struct {
		int groups, rules, comment;
		const char *message;   /* NULL: accepted */
	} cases[] = {
		{ 128, 128, 256, NULL },
		{ 129, 1, 1,
		  "t.json:1: \"allreduce\" is [{\"rules\":[{\"alg\":\"native\"}]},{\"rules\":[...: "
		  "allowed is an array of at most 128 objects" },
		{ 1, 129, 1,
		  "t.json:2: \"rules\" is [{\"alg\":\"native\"},{\"alg\":\"native\"},{\"alg...: "
		  "allowed is an array of at most 128 objects" },
		{ 1, 1, 257,
		  "t.json:1: \"comment\" is \"ccccccccccccccccccccccccccccccccccccccc...: "
		  "allowed is a text of at most 256 bytes" },
	};
	struct nezha_table *table;
	char *text, *padded, *error;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		text = table_text(cases[i].groups, cases[i].rules, cases[i].comment);
		if (cases[i].message)
			assert_refused(text, cases[i].message);
		else
			nezha_table_free(parse(text));
		free(text);
	}
	text = table_text(1, 1, 1);
	padded = malloc(NEZHA_TABLE_BYTES + 1);
	memset(padded, ' ', NEZHA_TABLE_BYTES + 1);
	memcpy(padded, text, strlen(text));
	assert_int_equal(nezha_table_parse(padded, NEZHA_TABLE_BYTES, "t", &table, &error), NEZHA_OK);
	nezha_table_free(table);
	assert_refused_bytes(padded, NEZHA_TABLE_BYTES + 1,
	                     "t.json:1: the table has 1048577 bytes: allowed are at most 1048576");
	free(padded);
	free(text);
}

static void finds_lines(void **state)
{
	static const char text[] = "\n{ \"a\\\"{[\" : 1,\n\"b\":\n[ [1,\n2], {\"x\":\n{\"y\": "
	                           "\"}]\"}},\n\"s\",\n-1.5e3 ],\n \"c\": null }\n";
	static const struct {
		size_t path[4], depth;
		int line;
	} cases[] = {
		{ { 0 }, 0, 2 }, { { 0 }, 1, 2 }, { { 1 }, 1, 3 }, { { 2 }, 1, 9 }, { { 3 }, 1, 2 },
		{ { 1, 0 }, 2, 4 }, { { 1, 0, 0 }, 3, 4 }, { { 1, 0, 1 }, 3, 5 }, { { 1, 1 }, 2, 5 },
		{ { 1, 1, 0 }, 3, 5 }, { { 1, 1, 0, 0 }, 4, 6 }, { { 1, 2 }, 2, 7 }, { { 1, 3 }, 2, 8 },
		{ { 1, 4 }, 2, 3 }, { { 1, 2, 0 }, 3, 7 }, { { 0, 5 }, 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(nezha_json_line(text, strlen(text), cases[i].path, cases[i].depth),
		                 cases[i].line);
	/* Texts that are cut anywhere are survived. */
	for (size_t len = 0; len < strlen(text); len++) {
		char *cut = malloc(len ? len : 1);

		memcpy(cut, text, len);
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			assert_in_range(nezha_json_line(cut, len, cases[i].path, cases[i].depth), 1, 10);
		free(cut);
	}
}

static void assert_prints_alike(const struct nezha_table *table)
{
	char *first = nezha_table_print(table), *second;
	struct nezha_table *again = parse(first);

	second = nezha_table_print(again);
	assert_string_equal(first, second);
	assert_int_equal(again->group_count, table->group_count);
	for (size_t i = 0; i < table->group_count; i++) {
		assert_int_equal(again->groups[i].rule_count, table->groups[i].rule_count);
		for (size_t j = 0; j < table->groups[i].rule_count; j++) {
			const struct nezha_rule *a = &table->groups[i].rules[j],
						*b = &again->groups[i].rules[j];

			assert_true(a->msg_size_min == b->msg_size_min && a->msg_size_max == b->msg_size_max);
			assert_true(a->alg == b->alg && a->reason == b->reason && a->block == b->block);
			assert_true(nezha_rail_set_equal(&a->rails, &b->rails));
		}
	}
	nezha_table_free(again);
	free(first);
	free(second);
}

/* What could not be read again is refused before it is written: nothing could be written there. */
static void saves_what_can_be_read(void **state)
{
	char *text = full_table_text(RULE_THAT_GROWS), *error = NULL;
	struct nezha_table *table = parse(text);

	(void)state;
	assert_int_equal(nezha_table_save(table, "/nonexistent/t.json", &error), NEZHA_ERR_INVALID);
	assert_non_null(strstr(error, "/nonexistent/t.json:1: the table has "));
	assert_non_null(strstr(error, " bytes: allowed are at most 1048576"));
	free(error);
	assert_int_equal(nezha_table_check(table, "t", &error), NEZHA_ERR_INVALID);
	assert_non_null(strstr(error, "t, as Nezha prints it:1: the table has "));
	free(error);
	nezha_table_free(table);
	free(text);
}

static void prints_what_it_reads(void **state)
{
	struct nezha_table *table;
	char *error = NULL, *example;

	(void)state;
	assert_int_equal(nezha_table_builtin(&table), NEZHA_OK);
	assert_prints_alike(table);
	assert_int_equal(nezha_table_override(table, "alg=ring,block=4K,min=1,max=5000", &error), NEZHA_OK);
	assert_prints_alike(table);
	nezha_table_free(table);
	table = parse("{\"version\": 1, \"host\": \"a \\\"b\\\" \\u00e4\\n\", \"collectives\": "
	              "{\"allreduce\": []}}");
	assert_prints_alike(table);
	nezha_table_free(table);
	table = parse("{\"version\": 1, \"collectives\": {\"allreduce\": [{\"measured\": 4, \"rules\": [{\"alg\": "
	              "\"ring\", \"rails\": \"tcp:10.1.0.0/16\"}, {\"alg\": \"ring\", \"rails\": "
	              "\"tcp:10.2.0.0/16+tcp:192.168.7.128/25\"}]}]}}");
	assert_int_equal(table->groups[0].measured, 4);
	assert_int_equal(table->groups[0].rules[1].rails.count, 2);
	assert_prints_alike(table);
	nezha_table_free(table);
	table = parse("{\"version\": 1, \"collectives\": {\"allreduce\": [{\"rules\": [{\"alg\": \"mix\", \"native_share\": 0.6126, "
	              "\"native_call\": \"blocking\", \"rails\": \"tcp:10.1.0.0/16\"}, {\"alg\": \"mix\", \"native_share\": 1e-3, "
	              "\"block\": \"8K\", \"native_call\": \"nonblocking\"}]}]}}");
	assert_int_equal(table->groups[0].rules[0].share, 613);
	assert_true(table->groups[0].rules[0].blocking && !table->groups[0].rules[1].blocking);
	assert_prints_alike(table);
	nezha_table_free(table);
	example = read_source("doc/table-example.json");
	table = parse(example);
	assert_prints_alike(table);
	nezha_table_free(table);
	free(example);
}

/* Whether the properties at `path` of the schema are exactly the names in `list`. */
static void assert_same_keys(json_t *properties, const char *list)
{
	char *names = strdup(list), *rest;
	size_t count = 0;

	assert_non_null(properties);
	for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest), count++)
		if (!json_object_get(properties, name))
			fail_msg("the schema lacks \"%s\"", name);
	assert_int_equal(json_object_size(properties), count);
	free(names);
}

static void the_schema_has_the_same_keys(void **state)
{
	char *text = read_source("tuning/table.schema.json");
	json_error_t e;
	json_t *schema = json_loads(text, JSON_REJECT_DUPLICATES, &e), *defs;

	(void)state;
	if (!schema)
		fail_msg("table.schema.json:%d: %s", e.line, e.text);
	defs = json_object_get(schema, "$defs");
	assert_same_keys(json_object_get(schema, "properties"), TOP_KEYS);
	assert_same_keys(json_object_get(json_object_get(defs, "group"), "properties"), GROUP_KEYS);
	assert_same_keys(json_object_get(json_object_get(defs, "rule"), "properties"), RULE_KEYS);
	json_decref(schema);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_field),
		cmocka_unit_test(refuses_what_is_not_json),
		cmocka_unit_test(refuses_a_wrong_top),
		cmocka_unit_test(refuses_wrong_groups),
		cmocka_unit_test(refuses_wrong_rules),
		cmocka_unit_test(refuses_wrong_shares),
		cmocka_unit_test(keeps_to_its_limits),
		cmocka_unit_test(finds_lines),
		cmocka_unit_test(saves_what_can_be_read),
		cmocka_unit_test(prints_what_it_reads),
		cmocka_unit_test(the_schema_has_the_same_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
