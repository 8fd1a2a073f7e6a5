/* SPDX-License-Identifier: BSD-3-Clause
 * Where a table was measured, and where a job runs: short texts that are compared as they are.  They are the
 * table's header fields of the same names. */
#ifndef NEZHA_TUNING_FINGERPRINT_H
#define NEZHA_TUNING_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "tuning/rules.h"

/* X(name): the fields that say where; the first ones of NEZHA_TABLE_HEADERS. */
#define NEZHA_FINGERPRINTS(X) X(mpi) X(host) X(topology) X(rails)

struct nezha_fingerprint {
#define X(name) char name[NEZHA_TABLE_TEXT + 1];   /* "": not known */
	NEZHA_FINGERPRINTS(X)
#undef X
};

/* The field of that name, NULL if there is none; where a text is kept, it is cut to NEZHA_TABLE_TEXT. */
char *nezha_fingerprint_field(struct nezha_fingerprint *of, const char *name);

/* Prints how the table's differs from that of `here` into buf, cut to len: "topology is "a" there, "b" here; ...";
 * false: it does not,
 * as far as both are known. */
bool nezha_fingerprint_differs(const struct nezha_table *table, const struct nezha_fingerprint *here, char *buf,
                               size_t len);

/* Whether all texts are the same. */
bool nezha_fingerprint_equal(const struct nezha_fingerprint *a, const struct nezha_fingerprint *b);

/* Makes it the table's.  NEZHA_ERR_NOMEM: the table is as it was. */
int nezha_fingerprint_put(const struct nezha_fingerprint *from, struct nezha_table *table);

#endif
