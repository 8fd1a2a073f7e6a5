/* SPDX-License-Identifier: BSD-3-Clause
 * The message by which a queue pair shows that it carries anything, before it is a path: a probe of the greatest length. */
#include <string.h>

#include "rails/verbs_end.h"
#include "rails/verbs_message.h"
#include "tuning/status.h"

#define PAYLOAD (NEZHA_VERBS_MESSAGE - (uint32_t)sizeof(struct nezha_wire))
#define WORDS (PAYLOAD / sizeof(uint64_t))

_Static_assert(PAYLOAD % sizeof(uint64_t) == 0, "the proof fills a message");

static struct nezha_wire proof_record(uint32_t psn)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_PROBE, psn, 0);

	record.length = PAYLOAD;
	return record;
}

/* Each word another one, and another one for each connection: what is mixed up on the way does not pass. */
static uint64_t proof_word(uint32_t psn, uint64_t i)
{
	return ((uint64_t)psn << 32 | i) * 0x9e3779b97f4a7c15ull;
}

static void write_proof(char *to, uint32_t psn)
{
	struct nezha_wire record = proof_record(psn);

	memcpy(to, &record, sizeof record);
	for (uint64_t i = 0; i < WORDS; i++)
		memcpy(to + sizeof record + i * sizeof i, (uint64_t[]){ proof_word(psn, i) }, sizeof i);
}

static bool is_proof(const char *data, uint32_t length, uint32_t psn)
{
	struct nezha_wire record = proof_record(psn);

	if (length != NEZHA_VERBS_MESSAGE || memcmp(data, &record, sizeof record))
		return false;
	for (uint64_t i = 0; i < WORDS; i++)
		if (memcmp(data + sizeof record + i * sizeof i, (uint64_t[]){ proof_word(psn, i) }, sizeof i))
			return false;
	return true;
}

static int fails(struct nezha_verbs_end *end, int rc)
{
	nezha_verbs_complain(end->device, "its queue pair carries nothing: %s", end->why ? end->why : "it has failed");
	return rc;
}

int nezha_verbs_end_prove(struct nezha_verbs_end *end)
{
	int rc;

	write_proof(nezha_verbs_end_buffer(end), end->psn);
	rc = nezha_verbs_end_post(end, NEZHA_VERBS_MESSAGE, 0, NULL, true);
	return rc == NEZHA_OK ? nezha_verbs_end_proved(end) : fails(end, rc);
}

int nezha_verbs_end_proved(struct nezha_verbs_end *end)
{
	const char *data;
	uint32_t length, value;
	bool has_value;
	/* What has gone wrong is told by what was sent: all that was to come in is then only flushed. */
	int rc = nezha_verbs_end_reap(end);

	if (rc == NEZHA_OK)
		rc = nezha_verbs_end_arrival(end, &data, &length, &value, &has_value);
	if (rc == NEZHA_INPROGRESS) {
		end->why = "the peer sends before its turn";
		return fails(end, NEZHA_ERR_PROTOCOL);
	}
	/* Events have been taken in with the arrivals, so the next one must be asked for after these. */
	if (rc == NEZHA_OK)
		rc = nezha_verbs_end_await(end);
	if (rc != NEZHA_OK)
		return fails(end, rc);
	end->proved = end->out.done == end->out.posted;
	return end->proved ? NEZHA_OK : NEZHA_INPROGRESS;
}

int nezha_verbs_end_take_proof(struct nezha_verbs_end *end)
{
	const char *data;
	uint32_t length, value;
	bool has_value;
	int rc = nezha_verbs_end_arrival(end, &data, &length, &value, &has_value);

	if (rc == NEZHA_OK)
		return NEZHA_INPROGRESS;
	if (rc == NEZHA_INPROGRESS) {
		end->proved = !has_value && is_proof(data, length, end->peer_psn);
		end->why = end->proved ? NULL : "what came is not what was sent";
		rc = end->proved ? nezha_verbs_end_return(end) : NEZHA_ERR_PROTOCOL;
	}
	return rc == NEZHA_OK ? NEZHA_OK : fails(end, rc);
}
