/* SPDX-License-Identifier: BSD-3-Clause
 * Where in a JSON text a value stands: jansson tells lines for syntax errors only. */
#ifndef NEZHA_TUNING_LOCATE_H
#define NEZHA_TUNING_LOCATE_H

#include <stddef.h>

/* The line (from 1) of the value reached from the top by path[0..depth): the ordinal (from 0) of a member
 * or an element at each level; for a member, the line of its key.  `text` must have been accepted by
 * a JSON parser; if it does not contain the path, the line of the last part found. */
int nezha_json_line(const char *text, size_t len, const size_t *path, size_t depth);

#endif
