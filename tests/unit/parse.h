/* SPDX-License-Identifier: BSD-3-Clause
 * Tables and the texts of which they are made. */
#ifndef NEZHA_TESTS_PARSE_H
#define NEZHA_TESTS_PARSE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"

static inline struct nezha_table *parse(const char *text)
{
	struct nezha_table *table;
	char *error = NULL;

	if (nezha_table_parse(text, strlen(text), "test", &table, &error) != NEZHA_OK)
		fail_msg("%s", error);
	return table;
}

/* The text of a table of `groups` groups, the first of which has `rules` rules, with a comment of `comment` letters; to be freed. */
static inline char *table_text(int groups, int rules, int comment)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fprintf(f, "{\"version\": 1, \"comment\": \"");
	for (int i = 0; i < comment; i++)
		fputc('c', f);
	fprintf(f, "\", \"collectives\": {\"allreduce\": [\n{\"rules\": [");
	for (int i = 0; i < rules; i++)
		fprintf(f, "%s{\"alg\": \"native\"}", i ? "," : "");
	fprintf(f, "]}");
	for (int i = 1; i < groups; i++)
		fprintf(f, ", {\"rules\": []}");
	fprintf(f, "]}}");
	fclose(f);
	return text;
}

/* The text of a table with as many rules as there may be, all alike, of a length that may be; to be freed. */
static inline char *full_table_text(const char *rule)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs("{\"version\":1,\"collectives\":{\"allreduce\":[", f);
	for (int g = 0; g < NEZHA_TABLE_GROUPS; g++) {
		fputs(g ? ",{\"rules\":[" : "{\"rules\":[", f);
		for (int r = 0; r < NEZHA_TABLE_RULES; r++)
			fprintf(f, "%s%s", r ? "," : "", rule);
		fputs("]}", f);
	}
	fputs("]}}", f);
	fclose(f);
	assert_in_range(len, 1, NEZHA_TABLE_BYTES);
	return text;
}

/* One that takes more bytes when it is printed. */
#define RULE_THAT_GROWS "{\"msg_size_min\":5,\"msg_size_max\":7,\"alg\":\"ring\"}"

#endif
