/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tuning/status.h"

static const char units[] = "KMG";

int nezha_bytes_parse(const char *text, uint64_t *out)
{
	const char *digits = text;
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return NEZHA_ERR_INVALID;
	if (text == digits)
		return NEZHA_ERR_INVALID;
	if (*text) {
		const char *unit = strchr(units, *text & ~0x20);   /* K and k alike */

		if (!unit || !*unit || text[1])
			return NEZHA_ERR_INVALID;
		for (; unit >= units; unit--)
			if (__builtin_mul_overflow(value, 1024, &value))
				return NEZHA_ERR_INVALID;
	}
	*out = value;
	return NEZHA_OK;
}

void nezha_bytes_print(uint64_t bytes, char *buf, size_t len)
{
	size_t unit = 0;

	while (unit < strlen(units) && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	if (unit)
		snprintf(buf, len, "%" PRIu64 "%c", bytes, units[unit - 1]);
	else
		snprintf(buf, len, "%" PRIu64, bytes);
}
