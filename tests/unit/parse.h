/* SPDX-License-Identifier: BSD-3-Clause
 * Tables and the texts of which they are made. */
#ifndef NEZHA_TESTS_PARSE_H
#define NEZHA_TESTS_PARSE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
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

#endif
