/* SPDX-License-Identifier: BSD-3-Clause
 * The kinds of values that settings have: how each is read and printed. */
#ifndef NEZHA_TUNING_SETTINGS_VALUES_H
#define NEZHA_TUNING_SETTINGS_VALUES_H

#include <stdbool.h>
#include <stdio.h>

#define NEZHA_VALUE_BYTES 4096   /* a text has at most so many */

/* `parse` sets *out only on success; NEZHA_ERR_INVALID, NEZHA_ERR_NOMEM.  What `print` writes, `parse` reads. */
struct nezha_value_kind {
	int (*parse)(const char *text, void *out);
	void (*print)(FILE *f, const void *value);
	bool is_text;                /* the value is a char *, owned; parse frees the old one */
};

extern const struct nezha_value_kind nezha_value_bool;       /* bool */
extern const struct nezha_value_kind nezha_value_text;       /* char * */
extern const struct nezha_value_kind nezha_value_report;     /* char *: "0", "1" or else */
extern const struct nezha_value_kind nezha_value_policy;     /* enum nezha_policy_kind */
extern const struct nezha_value_kind nezha_value_level;      /* enum nezha_log_level */
extern const struct nezha_value_kind nezha_value_checks;     /* unsigned, NEZHA_CHECK_* */
extern const struct nezha_value_kind nezha_value_verbs;      /* struct nezha_verbs_options */
extern const struct nezha_value_kind nezha_value_seconds;    /* double, 0.1 to 3600 */

#endif
