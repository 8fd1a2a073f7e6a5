/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/verbs_message.h"

#include <string.h>

bool nezha_verbs_message_is_whole(const char *data, uint32_t length, uint32_t left)
{
	struct nezha_wire record;
	uint32_t at = 0;

	if (left)
		return length == (left < NEZHA_VERBS_PIECE ? left : NEZHA_VERBS_PIECE);
	do {
		if (length - at < sizeof record)
			return false;
		memcpy(&record, data + at, sizeof record);
		at += (uint32_t)sizeof record;
		if (record.length > NEZHA_VERBS_PIECE)
			return at == sizeof record && length - at == NEZHA_VERBS_PIECE;
		if (record.length > length - at)
			return false;
		at += record.length;
	} while (at < length);
	return true;
}
