/* SPDX-License-Identifier: BSD-3-Clause
 * Texts of users, systems and launchers as JSON, which is UTF-8 and nothing else. */
#ifndef NEZHA_TUNING_JSON_TEXT_H
#define NEZHA_TUNING_JSON_TEXT_H

#include <jansson.h>

/* The text as a JSON string, with '?' for each byte beyond ASCII if it is not UTF-8; null for NULL.  NULL: no memory. */
json_t *nezha_json_text(const char *text);

#endif
