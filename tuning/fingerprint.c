/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/status.h"

static const struct {
	const char *name;
	size_t offset;
	enum nezha_table_header header;
} fields[] = {
#define X(name) { #name, offsetof(struct nezha_fingerprint, name), NEZHA_TABLE_HEADER_##name },
	NEZHA_FINGERPRINTS(X)
#undef X
};
#define FIELDS (sizeof fields / sizeof *fields)

static const char *text(const struct nezha_fingerprint *of, size_t field)
{
	return (const char *)of + fields[field].offset;
}

char *nezha_fingerprint_field(struct nezha_fingerprint *of, const char *name)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcmp(name, fields[i].name))
			return (char *)of + fields[i].offset;
	return NULL;
}

bool nezha_fingerprint_differs(const struct nezha_table *table, const struct nezha_fingerprint *here, char *buf,
                               size_t len)
{
	bool differs = false;
	size_t at = 0;

	for (size_t i = 0; i < FIELDS; i++) {
		const char *there = table->header[fields[i].header];

		if (!there || !*there || !*text(here, i) || !strcmp(there, text(here, i)))
			continue;
		if (at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s is \"%s\" there, \"%s\" here",
			                       differs ? "; " : "", fields[i].name, there, text(here, i));
		differs = true;
	}
	return differs;
}

bool nezha_fingerprint_equal(const struct nezha_fingerprint *a, const struct nezha_fingerprint *b)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(text(a, i), text(b, i)))
			return false;
	return true;
}

int nezha_fingerprint_put(const struct nezha_fingerprint *from, struct nezha_table *table)
{
	char *copies[FIELDS] = { NULL };
	size_t i;

	for (i = 0; i < FIELDS; i++) {
		copies[i] = strdup(text(from, i));
		if (!copies[i])
			goto no_memory;
	}
	for (i = 0; i < FIELDS; i++) {
		free(table->header[fields[i].header]);
		table->header[fields[i].header] = copies[i];
	}
	return NEZHA_OK;

no_memory:
	while (i--)
		free(copies[i]);
	return NEZHA_ERR_NOMEM;
}
