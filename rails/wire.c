/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/wire.h"

#include "rails/crc32c.h"
#include "tuning/grid.h"
#include "tuning/status.h"

static uint32_t crc_of(const struct nezha_wire *record)
{
	struct nezha_wire copy = *record;

	copy.crc = 0;
	return nezha_crc32c(&copy, sizeof copy);
}

void nezha_wire_seal(struct nezha_wire *record, bool crc)
{
	if (crc)
		record->crc = crc_of(record);
}

static bool is_sealed(const struct nezha_wire *record, bool crc)
{
	return crc ? record->crc == crc_of(record) : !record->crc && !record->payload_crc;
}

int nezha_wire_check(const struct nezha_wire *record, enum nezha_wire_channel channel, bool crc)
{
	uint32_t most = 0, least = 0, piece = 0;
	int of = -1;

	if (record->magic != NEZHA_WIRE_MAGIC || record->zero || !is_sealed(record, crc))
		return NEZHA_ERR_PROTOCOL;
	switch (record->kind) {
	case NEZHA_WIRE_PARTIAL:
	case NEZHA_WIRE_FINAL:
		of = NEZHA_CHANNEL_FORWARD;
		least = 1;
		most = NEZHA_BLOCK_MAX;
		piece = NEZHA_PIECE_MOST;
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
	case NEZHA_WIRE_LOST:
	case NEZHA_WIRE_BROKEN:
		of = NEZHA_CHANNEL_BACKWARD;
		break;
	case NEZHA_WIRE_AGAIN:
		if (crc && (record->origin == NEZHA_WIRE_PARTIAL || record->origin == NEZHA_WIRE_FINAL))
			of = NEZHA_CHANNEL_BACKWARD;
		break;
	case NEZHA_WIRE_QUERY:
		of = NEZHA_CHANNEL_QUERY;
		break;
	case NEZHA_WIRE_STATE:
		of = NEZHA_CHANNEL_STATE;
		break;
	case NEZHA_WIRE_BACK:
		of = channel == NEZHA_CHANNEL_STATE ? NEZHA_CHANNEL_STATE : NEZHA_CHANNEL_QUERY;
		break;
	}
	if (record->kind == NEZHA_WIRE_STATE && record->origin > NEZHA_WIRE_FELL)
		return NEZHA_ERR_PROTOCOL;
	if (of != (int)channel || record->length < least || record->length > most || record->piece > piece)
		return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}
