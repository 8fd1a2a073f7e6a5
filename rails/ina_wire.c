/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>

#include "rails/team.h"
#include "tuning/status.h"
#include "tuning/text.h"

_Static_assert(crypto_sign_PUBLICKEYBYTES == NEZHA_INA_TEAM_BYTES, "a team's name is a public key");
_Static_assert(crypto_sign_BYTES == NEZHA_INA_PROOF_BYTES, "a proof is a signature");

/* ---- packets ---- */

static bool is_chunk(const struct nezha_ina_header *header)
{
	return header->type < NEZHA_TYPE_COUNT && header->op < NEZHA_OP_COUNT &&
	       nezha_op_fits(header->op, header->type) && header->length > 0 &&
	       header->length <= NEZHA_INA_CHUNK_MAX && header->length % nezha_type_size(header->type) == 0;
}

/* What all kinds have in common. */
static bool read_header(const void *packet, size_t size, struct nezha_ina_header *out)
{
	if (size < sizeof *out)
		return false;
	memcpy(out, packet, sizeof *out);
	return out->magic == NEZHA_INA_MAGIC && out->version == NEZHA_INA_VERSION && !out->zero &&
	       size == sizeof *out + out->length && out->rank < NEZHA_INA_RANKS_MAX;
}

int nezha_ina_check_upward(const void *packet, size_t size, struct nezha_ina_header *out)
{
	if (!read_header(packet, size, out) || out->kind != NEZHA_INA_DATA || out->flags & ~NEZHA_INA_AGAIN ||
	    !is_chunk(out))
		return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}

int nezha_ina_check_downward(const void *packet, size_t size, struct nezha_ina_header *out)
{
	bool right = false;

	if (!read_header(packet, size, out) || out->flags || out->rank)
		return NEZHA_ERR_PROTOCOL;
	switch (out->kind) {
	case NEZHA_INA_RESULT:
		right = is_chunk(out);
		break;
	case NEZHA_INA_ALIVE:
		right = out->length == sizeof(struct nezha_ina_missing);
		break;
	case NEZHA_INA_BEACON:
		right = out->length == 0;
		break;
	}
	return right ? NEZHA_OK : NEZHA_ERR_PROTOCOL;
}

/* ---- records ---- */

static bool is_record(const struct nezha_ina_record *record)
{
	return record->magic == NEZHA_INA_RECORD_MAGIC && record->version == NEZHA_INA_VERSION && !record->zero;
}

static bool is_chunk_size(uint16_t bytes)
{
	return bytes >= NEZHA_INA_CHUNK_MIN && bytes <= NEZHA_INA_CHUNK_MAX && bytes % 8 == 0;
}

static bool is_window(uint16_t slots)
{
	return slots >= NEZHA_INA_WINDOW_MIN && slots <= NEZHA_INA_WINDOW_MAX && !(slots & (slots - 1));
}

static bool is_join(const struct nezha_ina_join *join)
{
	return join->ranks >= 2 && join->ranks <= NEZHA_INA_RANKS_MAX && join->rank < join->ranks && join->port &&
	       is_chunk_size(join->chunk) && is_window(join->window) && !join->reserved;
}

static bool is_welcome(const struct nezha_ina_welcome *welcome)
{
	return is_chunk_size(welcome->chunk) && is_window(welcome->window) && welcome->listen <= NEZHA_INA_LISTEN_MAX &&
	       (!welcome->group || (IN_MULTICAST(ntohl(welcome->group)) && welcome->port));
}

static bool is_text(const char *text)
{
	size_t length = strnlen(text, NEZHA_INA_TEXT_BYTES);

	if (length == NEZHA_INA_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < length; i++)
		if (nezha_is_control(text[i]))
			return false;
	return true;
}

int nezha_ina_record_check_upward(const struct nezha_ina_record *record)
{
	bool right = false;

	if (!is_record(record))
		return NEZHA_ERR_PROTOCOL;
	switch (record->kind) {
	case NEZHA_INA_JOIN:
		right = is_join(&record->join);
		break;
	case NEZHA_INA_HEARD:
		right = record->yes <= 1;
		break;
	case NEZHA_INA_LEAVE:
		right = true;
		break;
	}
	return right ? NEZHA_OK : NEZHA_ERR_PROTOCOL;
}

int nezha_ina_record_check_downward(const struct nezha_ina_record *record)
{
	bool right = false;

	if (!is_record(record))
		return NEZHA_ERR_PROTOCOL;
	switch (record->kind) {
	case NEZHA_INA_CHALLENGE:
	case NEZHA_INA_LEAVE:
		right = true;
		break;
	case NEZHA_INA_WELCOME:
		right = is_welcome(&record->welcome);
		break;
	case NEZHA_INA_READY:
		right = record->yes <= 1;
		break;
	case NEZHA_INA_REFUSED:
	case NEZHA_INA_OVER:
		right = is_text(record->text);
		break;
	}
	return right ? NEZHA_OK : NEZHA_ERR_PROTOCOL;
}

void nezha_ina_record_make(enum nezha_ina_record_kind kind, struct nezha_ina_record *out)
{
	memset(out, 0, sizeof *out);
	out->magic = NEZHA_INA_RECORD_MAGIC;
	out->version = NEZHA_INA_VERSION;
	out->kind = (uint8_t)kind;
}

void nezha_ina_record_text(enum nezha_ina_record_kind kind, const char *text, struct nezha_ina_record *out)
{
	size_t length = strnlen(text, NEZHA_INA_TEXT_BYTES - 1);

	nezha_ina_record_make(kind, out);
	memcpy(out->text, text, length);
	nezha_text_clean(out->text, length);
}

/* ---- the proof ---- */

static const char proof_label[] = "nezha ina join 1", team_label[] = "nezha ina team 1";

struct statement {
	char label[sizeof proof_label];
	unsigned char nonce[NEZHA_INA_NONCE_BYTES];
	struct nezha_ina_join join;      /* its proof zeroed */
};

static void state(const unsigned char *nonce, const struct nezha_ina_join *join, struct statement *out)
{
	memset(out, 0, sizeof *out);
	memcpy(out->label, proof_label, sizeof proof_label);
	memcpy(out->nonce, nonce, sizeof out->nonce);
	out->join = *join;
	memset(out->join.proof, 0, sizeof out->join.proof);
}

void nezha_ina_prove(const unsigned char *key, uint64_t team, const unsigned char *nonce, struct nezha_ina_join *join)
{
	unsigned char seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES];
	unsigned char name[sizeof team_label + sizeof team];
	struct statement statement;

	memcpy(name, team_label, sizeof team_label);
	memcpy(name + sizeof team_label, &team, sizeof team);
	crypto_generichash(seed, sizeof seed, name, sizeof name, key, NEZHA_KEY_BYTES);
	crypto_sign_seed_keypair(join->team, secret, seed);
	state(nonce, join, &statement);
	crypto_sign_detached(join->proof, NULL, (const unsigned char *)&statement, sizeof statement, secret);
	sodium_memzero(seed, sizeof seed);
	sodium_memzero(secret, sizeof secret);
}

int nezha_ina_verify(const unsigned char *nonce, const struct nezha_ina_join *join)
{
	struct statement statement;

	state(nonce, join, &statement);
	return crypto_sign_verify_detached(join->proof, (const unsigned char *)&statement, sizeof statement, join->team) ?
	       NEZHA_ERR_PROTOCOL : NEZHA_OK;
}
