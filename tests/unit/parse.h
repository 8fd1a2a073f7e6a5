/* SPDX-License-Identifier: BSD-3-Clause
 * Tables from texts that are in order. */
#ifndef NEZHA_TESTS_PARSE_H
#define NEZHA_TESTS_PARSE_H

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

#endif
