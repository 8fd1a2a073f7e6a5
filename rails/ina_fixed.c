/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_fixed.h"

#include <stdlib.h>
#include <string.h>

#include "rails/fixed.h"
#include "rails/ina.h"
#include "rails/ina_run.h"
#include "tuning/status.h"

#define EXPONENT sizeof(int32_t)

_Static_assert(NEZHA_BLOCK_MIN % NEZHA_FIXED_UNIT == 0, "a block begins with a unit");

static uint32_t units_of(uint32_t bytes)
{
	return (bytes + NEZHA_FIXED_UNIT - 1) / NEZHA_FIXED_UNIT;
}

static uint32_t unit_at(const struct nezha_ina *ina, uint32_t block, uint32_t offset)
{
	return (block - ina->first) * ina->fixed.per_block + offset / NEZHA_FIXED_UNIT;
}

/* ---- a call ---- */

/* Which way floats go must not depend on what was measured where runs shall agree. */
static bool applies(const struct nezha_ina *ina)
{
	const struct nezha_call *call = &ina->team->call;

	return nezha_ina_where(ina)->fixed && !ina->engine->config.reproducible && nezha_fixed_can(call->type, call->reduction);
}

static int make_room(struct nezha_ina_fixed *fixed)
{
	int32_t *exponents;

	if (!fixed->buffer)
		fixed->buffer = malloc(NEZHA_INA_RUN_BYTES + NEZHA_INA_CHUNK_MAX);
	if (!fixed->buffer)
		return NEZHA_ERR_NOMEM;
	if (fixed->units <= fixed->room)
		return NEZHA_OK;
	exponents = realloc(fixed->exponents, fixed->units * sizeof *exponents);
	if (!exponents)
		return NEZHA_ERR_NOMEM;
	fixed->exponents = exponents;
	fixed->room = fixed->units;
	return NEZHA_OK;
}

int nezha_ina_fixed_begin(struct nezha_ina *ina)
{
	const struct nezha_call *call = &ina->team->call;
	struct nezha_ina_fixed *fixed = &ina->fixed;
	uint32_t each = ina->welcome.chunk / EXPONENT;

	fixed->on = applies(ina);
	fixed->escaped = false;
	fixed->chunks = 0;
	if (!fixed->on)
		return NEZHA_OK;
	fixed->per_block = call->grid.block / NEZHA_FIXED_UNIT;
	fixed->units = (ina->count - 1) * fixed->per_block + units_of(nezha_call_length(call, ina->first + ina->count - 1));
	fixed->chunks = (fixed->units + each - 1) / each;
	if (make_room(fixed) != NEZHA_OK)
		return NEZHA_ERR_NOMEM;
	for (uint32_t u = 0; u < fixed->units; u++)
		fixed->exponents[u] = NEZHA_FIXED_UNKNOWN;
	return NEZHA_OK;
}

void nezha_ina_fixed_free(struct nezha_ina_fixed *fixed)
{
	free(fixed->exponents);
	free(fixed->buffer);
	*fixed = (struct nezha_ina_fixed){ 0 };
}

struct nezha_ina_place nezha_ina_fixed_place(const struct nezha_ina *ina, uint32_t i)
{
	uint32_t chunk = ina->welcome.chunk, offset = i * chunk, left = ina->fixed.units * (uint32_t)EXPONENT - offset;

	return (struct nezha_ina_place){ .exponents = true, .block = ina->first, .offset = offset,
	                                 .length = left < chunk ? left : chunk };
}

enum nezha_type nezha_ina_fixed_type(const struct nezha_ina *ina, const struct nezha_ina_place *place)
{
	return place->exponents ? NEZHA_INT32 : nezha_fixed_type(ina->team->call.type);
}

enum nezha_op nezha_ina_fixed_op(const struct nezha_ina *ina, const struct nezha_ina_place *place)
{
	return place->exponents ? NEZHA_MAX : ina->team->call.reduction;
}

/* ---- sending ---- */

/* Chunks of exponents have more units than any chunk of data can lie over, so that the first and the last one tell of all. */
bool nezha_ina_fixed_ready(const struct nezha_ina *ina, const struct nezha_ina_place *place)
{
	const int32_t *exponents = ina->fixed.exponents;

	return place->exponents ||
	       (exponents[unit_at(ina, place->block, place->offset)] != NEZHA_FIXED_UNKNOWN &&
	        exponents[unit_at(ina, place->block, place->offset + place->length - 1)] != NEZHA_FIXED_UNKNOWN);
}
_Static_assert(NEZHA_INA_CHUNK_MIN / EXPONENT > NEZHA_INA_CHUNK_MAX / NEZHA_FIXED_UNIT + 1, "see nezha_ina_fixed_ready");

static const char *contribution(const struct nezha_ina *ina, uint32_t block, uint32_t offset)
{
	const struct nezha_call *call = &ina->team->call;

	return call->sendbuf + nezha_grid_offset(&call->grid, block) + offset;
}

static void find_exponents(const struct nezha_ina *ina, const struct nezha_ina_place *place, char *to)
{
	const struct nezha_call *call = &ina->team->call;
	uint32_t first = place->offset / EXPONENT;

	for (uint32_t i = 0; i < place->length / EXPONENT; i++) {
		uint32_t block = ina->first + (first + i) / ina->fixed.per_block;
		uint32_t offset = (first + i) % ina->fixed.per_block * NEZHA_FIXED_UNIT, left = nezha_call_length(call, block) - offset;
		int32_t exponent = nezha_fixed_exponent(call->type, contribution(ina, block, offset),
		                                        left < NEZHA_FIXED_UNIT ? left : NEZHA_FIXED_UNIT);

		memcpy(to + i * EXPONENT, &exponent, EXPONENT);
	}
}

/* Bytes from `offset` on that lie in one unit, of `left`. */
static uint32_t of_unit(uint32_t offset, uint32_t left)
{
	uint32_t rest = NEZHA_FIXED_UNIT - offset % NEZHA_FIXED_UNIT;

	return left < rest ? left : rest;
}

void nezha_ina_fixed_fill(const struct nezha_ina *ina, const struct nezha_ina_place *place, char *to)
{
	const struct nezha_call *call = &ina->team->call;

	if (place->exponents) {
		find_exponents(ina, place, to);
		return;
	}
	for (uint32_t at = 0, n; at < place->length; at += n) {
		uint32_t offset = place->offset + at;

		n = of_unit(offset, place->length - at);
		nezha_fixed_pack(call->type, ina->fixed.exponents[unit_at(ina, place->block, offset)], ina->team->ranks,
		                 contribution(ina, place->block, offset), to + at, n);
	}
}

/* ---- receiving ---- */

void nezha_ina_fixed_learn(struct nezha_ina *ina, const struct nezha_ina_place *place, const char *data)
{
	for (uint32_t i = 0; i < place->length / EXPONENT; i++) {
		int32_t exponent;

		memcpy(&exponent, data + i * EXPONENT, EXPONENT);
		ina->fixed.exponents[place->offset / EXPONENT + i] = nezha_fixed_agreed(ina->team->call.type, exponent);
	}
}

void nezha_ina_fixed_convert(const struct nezha_ina *ina, const struct nezha_ina_place *place, const char *data, char *to)
{
	for (uint32_t at = 0, n; at < place->length; at += n) {
		uint32_t offset = place->offset + at;

		n = of_unit(offset, place->length - at);
		nezha_fixed_unpack(ina->team->call.type, ina->fixed.exponents[unit_at(ina, place->block, offset)], ina->team->ranks,
		                   data + at, to + at, n);
	}
}

bool nezha_ina_fixed_tells(struct nezha_ina_fixed *fixed)
{
	bool tells = !fixed->escaped || fixed->often;

	fixed->often = fixed->escaped;
	return tells;
}

bool nezha_ina_fixed_escapes(const struct nezha_ina *ina, uint32_t b)
{
	uint32_t first = unit_at(ina, b, 0), count = units_of(nezha_call_length(&ina->team->call, b));

	for (uint32_t u = first; u < first + count; u++)
		if (ina->fixed.exponents[u] == NEZHA_FIXED_ESCAPE)
			return true;
	return false;
}
