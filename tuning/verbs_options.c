/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/verbs_options.h"

#include <stdio.h>
#include <string.h>

#include "tuning/status.h"

static const struct {
	const char *name;
	long least, most;
} options[] = {
	{ "gid=", 0, 255 }, { "mtu=", 256, 4096 }, { "sl=", 0, 15 }, { "retry=", 1, 6 }, { "timeout=", 8, 20 },
	{ "memory=", 8, 65536 },
};
enum { GID, MTU, SL, RETRY, TIMEOUT, MEMORY, COUNT };

/* A decimal number at *text, which moves behind it; NEZHA_ERR_INVALID if it is none within the limits. */
static int parse_number(const char **text, long least, long most, long *out)
{
	const char *c = *text;
	long value = 0;

	if (*c < '0' || *c > '9')
		return NEZHA_ERR_INVALID;
	for (; *c >= '0' && *c <= '9' && value <= most; c++)
		value = value * 10 + (*c - '0');
	if (value < least || value > most)
		return NEZHA_ERR_INVALID;
	*text = c;
	*out = value;
	return NEZHA_OK;
}

static int parse_one(const char **text, long *values, unsigned *seen)
{
	for (int i = 0; i < COUNT; i++) {
		size_t len = strlen(options[i].name);

		if (strncmp(*text, options[i].name, len))
			continue;
		if (*seen >> i & 1)
			return NEZHA_ERR_INVALID;
		*seen |= 1u << i;
		*text += len;
		return parse_number(text, options[i].least, options[i].most, &values[i]);
	}
	return NEZHA_ERR_INVALID;
}

int nezha_verbs_options_parse(const char *text, struct nezha_verbs_options *out)
{
	long values[COUNT] = { [GID] = -1, [RETRY] = 6, [TIMEOUT] = 12, [MEMORY] = 256 };
	unsigned seen = 0;

	while (*text) {
		if (seen && *text++ != ',')
			return NEZHA_ERR_INVALID;
		if (parse_one(&text, values, &seen) != NEZHA_OK)
			return NEZHA_ERR_INVALID;
	}
	if (values[MTU] & (values[MTU] - 1))
		return NEZHA_ERR_INVALID;
	*out = (struct nezha_verbs_options){
		.gid = (int)values[GID], .mtu = (uint32_t)values[MTU], .sl = (uint32_t)values[SL],
		.retry = (uint32_t)values[RETRY], .timeout = (uint32_t)values[TIMEOUT], .memory = (uint32_t)values[MEMORY],
	};
	return NEZHA_OK;
}

void nezha_verbs_options_print(const struct nezha_verbs_options *o, char *buf, size_t len)
{
	int at = 0;

	if (o->gid >= 0)
		at += snprintf(buf, len, "gid=%d,", o->gid);
	if (o->mtu)
		at += snprintf(buf + at, len - (size_t)at, "mtu=%u,", o->mtu);
	snprintf(buf + at, len - (size_t)at, "sl=%u,retry=%u,timeout=%u,memory=%u", o->sl, o->retry, o->timeout, o->memory);
}
