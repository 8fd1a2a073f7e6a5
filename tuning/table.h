/* SPDX-License-Identifier: BSD-3-Clause
 * The tuning table: rules by ranks, nodes, ranks per node and bytes; the first match wins.  JSON in the
 * vocabulary of Open MPI 6's coll_tuned rules; the schema is tuning/table.schema.json, an example
 * doc/table-example.json.
 *
 * A lookup takes the first group that fits the communicator's scale, and in it the first rule that fits the
 * bytes; if that group has none, the call goes native (later groups are not asked).  All ranges are
 * inclusive; a missing minimum or maximum is no bound.  A byte count is a number or a text like "64K" (powers
 * of 1024); a maximum may be "inf". */
#ifndef NEZHA_TUNING_TABLE_H
#define NEZHA_TUNING_TABLE_H

#include <stddef.h>

struct nezha_table;

/* Parses `len` bytes of JSON (untrusted; `name` is what messages call it, e.g. the file's path).
 * On NEZHA_ERR_INVALID *error is one line without '\n' (malloc'd, the caller frees) that gives name, line
 * where known, the value and what is allowed.  *out is owned by the caller. */
int nezha_table_parse(const char *text, size_t len, const char *name, struct nezha_table **out, char **error);

/* The rules used when no table is given: built from the same JSON parser, out of a text in the source. */
int nezha_table_builtin(struct nezha_table **out);

/* Puts the rule of NEZHA_TUNE ("alg=ring,block=64K,rails=tcp:10.1.0.0/16+tcp:10.2.0.0/16,min=1M,max=16M"; K, M, G are
 * powers of 1024; min and max inclusive; only alg is required, the rails are all by default) before all others of `table`, for
 * every scale: in front of each group, and in a last group for the scales that no other fits.  A ring, or a mix, without a block takes
 * those of the group, which makes it several rules; where the group has no ring, 64K.  Errors as nezha_table_parse, with
 * NEZHA_TUNE as the name; `table` is then as it was. */
int nezha_table_override(struct nezha_table *table, const char *tune, char **error);

struct nezha_rule;

/* Only reads such a rule; the block is 64K by default.  Errors as above. */
int nezha_rule_parse(const char *tune, struct nezha_rule *out, char **error);

/* The table as JSON (malloc'd, the caller frees; NULL: no memory); parsing it gives an equal table, unless it is too long: it
 * spells out what the text that the table was made of may have left away. */
char *nezha_table_print(const struct nezha_table *table);

/* Whether nezha_table_parse takes that text back: so it is told to other ranks, and written.  Errors as there; *error is NULL but for
 * NEZHA_ERR_INVALID. */
int nezha_table_check(const struct nezha_table *table, const char *name, char **error);

/* The table in the file at `path`.  NEZHA_ERR_SYSTEM: it cannot be read, errno tells why and *error is NULL; else as
 * nezha_table_parse. */
int nezha_table_load(const char *path, struct nezha_table **out, char **error);

/* Puts the table into the file at `path`, whole or not at all (nezha_file_replace), if nezha_table_parse would take it
 * back.  Errors: of both; *error is NULL but for NEZHA_ERR_INVALID. */
int nezha_table_save(const struct nezha_table *table, const char *path, char **error);

void nezha_table_free(struct nezha_table *table);   /* NULL is allowed */

#endif
