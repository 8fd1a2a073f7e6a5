/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/json_text.h"

#include <stdlib.h>
#include <string.h>

static json_t *in_ascii(const char *text)
{
	char *copy = strdup(text);
	json_t *json;

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	json = copy ? json_string(copy) : NULL;
	free(copy);
	return json;
}

json_t *nezha_json_text(const char *text)
{
	json_t *json;

	if (!text)
		return json_null();
	json = json_string(text);
	return json ? json : in_ascii(text);
}
