/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/agree.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "tuning/rail_set.h"

_Static_assert(2 * sizeof(struct nezha_statement) == NEZHA_STATEMENT_WORDS * sizeof(uint64_t), "two for each field");

/* Values go in one by one, since structs may have padding. */
static void put(crypto_generichash_state *hash, uint64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	crypto_generichash_update(hash, bytes, sizeof bytes);
}

static uint64_t end(crypto_generichash_state *hash)
{
	unsigned char bytes[crypto_generichash_BYTES_MIN];
	uint64_t value = 0;

	crypto_generichash_final(hash, bytes, sizeof bytes);
	for (int i = 0; i < 8; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

static void begin(crypto_generichash_state *hash)
{
	crypto_generichash_init(hash, NULL, 0, crypto_generichash_BYTES_MIN);
}

static void put_cost(crypto_generichash_state *hash, const struct nezha_model_cost *cost)
{
	for (int i = 0; i < NEZHA_MODEL_SAMPLES; i++)
		put(hash, cost->samples[i]);
	put(hash, cost->count);
	put(hash, cost->tried);
	put(hash, cost->by_run);
	put(hash, cost->of_try);
	put(hash, cost->before);
}

static void put_class(crypto_generichash_state *hash, const struct nezha_model_class *class)
{
	for (int alg = 0; alg < NEZHA_ALG_COUNT; alg++)
		put_cost(hash, &class->cost[alg]);
	for (int alg = 0; alg < NEZHA_ALG_MIX; alg++)
		put_cost(hash, &class->part[alg]);
	put_cost(hash, &class->nonblocking);
	put(hash, class->best);
	put(hash, class->apart);
	put(hash, class->calls);
	put(hash, class->retry_at);
	put(hash, class->pause);
	put(hash, class->doubtful);
	put(hash, class->tries);
	put(hash, class->extra);
	put(hash, class->extras);
	put(hash, class->quiet);
	put(hash, class->promise);
	put(hash, class->claim);
	for (int alg = 0; alg < NEZHA_ALG_MIX; alg++)
		put(hash, class->shunned[alg]);
}

uint64_t nezha_model_digest(const struct nezha_model *model)
{
	crypto_generichash_state hash;

	if (!model)
		return 0;
	begin(&hash);
	for (int k = 0; k < NEZHA_MODEL_CLASSES; k++)
		put_class(&hash, &model->classes[k]);
	for (int k = 0; k < NEZHA_MODEL_SMALL; k++)
		put(&hash, model->under_way[k].count);
	put(&hash, model->calls);
	put(&hash, model->lost);
	put(&hash, model->guesses);
	for (uint32_t i = 0; i < model->pending_count; i++) {
		put(&hash, model->pending[i].bytes);
		put(&hash, model->pending[i].choice.alg);
		put(&hash, model->pending[i].choice.native);
		put(&hash, model->pending[i].choice.nonblocking);
		put(&hash, model->pending[i].choice.carrier);
		put(&hash, model->pending[i].choice.looks);
		put(&hash, model->pending[i].run);
		put(&hash, model->pending[i].trial);
		put(&hash, model->pending[i].extra);
	}
	return end(&hash);
}

uint64_t nezha_plan_digest(const struct nezha_plan *plan)
{
	crypto_generichash_state hash;

	begin(&hash);
	put(&hash, plan->alg);
	put(&hash, plan->reason);
	put(&hash, plan->block);
	put(&hash, plan->native);
	put(&hash, plan->nonblocking);
	for (uint32_t i = 0; plan->rails && i < plan->rails->count; i++) {
		put(&hash, plan->rails->subnet[i].address);
		put(&hash, plan->rails->subnet[i].prefix);
	}
	return end(&hash);
}

void nezha_statement_spread(const struct nezha_statement *mine, uint64_t words[NEZHA_STATEMENT_WORDS])
{
	int i = 0;

#define X(field, text) \
	words[i++] = mine->field; \
	words[i++] = ~mine->field;
	NEZHA_STATEMENT(X)
#undef X
}

/* The complement of the least complement is the most. */
bool nezha_statement_agreed(const uint64_t words[NEZHA_STATEMENT_WORDS])
{
	for (int i = 0; i < NEZHA_STATEMENT_WORDS; i += 2)
		if (words[i] != ~words[i + 1])
			return false;
	return true;
}

void nezha_statement_differs(const struct nezha_statement *a, const struct nezha_statement *b, char *buf, size_t len)
{
	snprintf(buf, len, "%s", "");
#define X(field, text) \
	if (a->field != b->field) \
		snprintf(buf + strlen(buf), len - strlen(buf), "%s" text, *buf ? " and " : "");
	NEZHA_STATEMENT(X)
#undef X
}
