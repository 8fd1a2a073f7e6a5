/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/wire.h"

#include "tuning/grid.h"
#include "tuning/status.h"

int nezha_wire_check(const struct nezha_wire *record, enum nezha_wire_channel channel)
{
	uint32_t most = 0, least = 0;
	int of = -1;

	if (record->magic != NEZHA_WIRE_MAGIC || record->zero || record->reserved)
		return NEZHA_ERR_PROTOCOL;
	switch (record->kind) {
	case NEZHA_WIRE_PARTIAL:
	case NEZHA_WIRE_FINAL:
		of = NEZHA_CHANNEL_FORWARD;
		least = 1;
		most = NEZHA_BLOCK_MAX;
		break;
	case NEZHA_WIRE_PROBE:
		of = NEZHA_CHANNEL_FORWARD;
		most = NEZHA_BLOCK_MAX;
		break;
	case NEZHA_WIRE_SYNC:
		of = NEZHA_CHANNEL_FORWARD;
		break;
	case NEZHA_WIRE_GRANT:
	case NEZHA_WIRE_DONE:
	case NEZHA_WIRE_WANT:
	case NEZHA_WIRE_ACK:
		of = NEZHA_CHANNEL_BACKWARD;
		break;
	case NEZHA_WIRE_QUERY:
		of = NEZHA_CHANNEL_QUERY;
		break;
	case NEZHA_WIRE_STATE:
		of = NEZHA_CHANNEL_STATE;
		break;
	}
	if (of != (int)channel || record->length < least || record->length > most)
		return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}
