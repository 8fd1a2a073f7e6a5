/* SPDX-License-Identifier: BSD-3-Clause
 * What may come to an aggregator and to a rank that uses one: the input is checked as a packet and as a record, in both
 * directions; then, cut into packets (two bytes of length each), it goes into the slots of a session, those of even length out
 * of buffers that they may stay in.  No byte outside the input, the buffers or the slots may be touched, and what the slots give
 * out must pass the checks of the receiver.  And its first bytes are what an aggregator says is the exponent of the floats that
 * the rest is. */
#include <stdlib.h>
#include <string.h>

#include "rails/fixed.h"
#include "rails/ina_slots.h"
#include "tests/fuzz/fuzz.h"
#include "tuning/status.h"
#include "tuning/text.h"

#define RANKS 3
#define CHUNK 512
#define BUFFER 1024              /* bytes of a buffer in which packets stay */
#define SPARE 2                  /* such ones that may be held */

static void check_record(const uint8_t *data, size_t size)
{
	struct nezha_ina_record record;

	if (size < sizeof record)
		return;
	memcpy(&record, data, sizeof record);
	if (nezha_ina_record_check_upward(&record) == NEZHA_OK && record.kind == NEZHA_INA_JOIN) {
		fuzz_assert(record.join.rank < record.join.ranks && record.join.ranks <= NEZHA_INA_RANKS_MAX);
		fuzz_assert(record.join.chunk >= NEZHA_INA_CHUNK_MIN && record.join.window <= NEZHA_INA_WINDOW_MAX);
	}
	if (nezha_ina_record_check_downward(&record) == NEZHA_OK && record.kind == NEZHA_INA_REFUSED)
		for (const char *c = record.text; *c; c++)
			fuzz_assert(c < record.text + sizeof record.text && !nezha_is_control(*c));
}

/* `in`: where the packet lies. */
static void take(struct nezha_ina_slots *slots, const uint8_t *packet, size_t size, struct nezha_ina_buffer *in)
{
	struct nezha_ina_header header, answer;
	struct nezha_ina_missing missing;
	struct nezha_ina_sum sum;
	enum nezha_ina_taken taken;
	uint8_t out[sizeof header + CHUNK];

	if (nezha_ina_check_upward(packet, size, &header) != NEZHA_OK)
		return;
	taken = nezha_ina_slots_take(slots, &header, packet + sizeof header, in, &sum);
	nezha_ina_slots_missing(slots, header.seq, &missing);
	if (taken != NEZHA_INA_COMPLETE && taken != NEZHA_INA_KEPT)
		return;
	memcpy(out, &sum.header, sizeof sum.header);
	memcpy(out + sizeof header, sum.data, sum.header.length);
	fuzz_assert(nezha_ina_check_downward(out, sizeof header + sum.header.length, &answer) == NEZHA_OK);
	fuzz_assert(!memcmp(&(struct nezha_ina_missing){ 0 }, &missing, sizeof missing));
}

/* The greatest exponent, of which ours is one, is one with which the sum of all ranks fits; any other one does no harm. */
static void check_fixed(enum nezha_type type, const uint8_t *data, size_t size)
{
	size_t element = nezha_type_size(type);
	int64_t packed[NEZHA_FIXED_UNIT / 8], most = type == NEZHA_FLOAT32 ? INT32_MAX : INT64_MAX;
	uint8_t floats[NEZHA_FIXED_UNIT];
	int32_t said, own, agreed;

	if (size < sizeof said + element)
		return;
	memcpy(&said, data, sizeof said);
	size = (size - sizeof said) / element * element;
	size = size < NEZHA_FIXED_UNIT ? size : NEZHA_FIXED_UNIT;
	data += sizeof said;
	agreed = nezha_fixed_agreed(type, said);
	nezha_fixed_pack(type, agreed, RANKS, data, packed, size);
	nezha_fixed_unpack(type, agreed, RANKS, data, floats, size);
	own = nezha_fixed_exponent(type, data, size);
	fuzz_assert(nezha_fixed_agreed(type, own) == own);
	agreed = nezha_fixed_agreed(type, own > said ? own : said);
	nezha_fixed_pack(type, agreed, RANKS, data, packed, size);
	for (size_t i = 0; i < size / element; i++) {
		int64_t one = 0;
		int32_t narrow;

		memcpy(&narrow, (const char *)packed + i * element, sizeof narrow);
		memcpy(&one, (const char *)packed + i * element, element);
		one = type == NEZHA_FLOAT32 ? narrow : one;
		fuzz_assert(one <= most / RANKS && one >= -(most / RANKS));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nezha_ina_budget budget = { .limit = 1 << 20 };
	struct nezha_ina_buffers *buffers;
	struct nezha_ina_buffer *posted = NULL;
	struct nezha_ina_slots *slots;
	struct nezha_ina_header header;

	check_record(data, size);
	check_fixed(NEZHA_FLOAT32, data, size);
	check_fixed(NEZHA_FLOAT64, data, size);
	nezha_ina_check_upward(data, size, &header);
	nezha_ina_check_downward(data, size, &header);
	if (nezha_ina_slots_create(&budget, RANKS, NEZHA_INA_WINDOW_MIN, CHUNK, false, &slots) != NEZHA_OK)
		abort();
	if (nezha_ina_buffers_create(1, SPARE, BUFFER, &buffers) != NEZHA_OK)
		abort();
	while (size > 2) {
		size_t length = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		length = length < size ? length : size;
		if (length % 2 || length > BUFFER) {
			take(slots, data, length, NULL);
		} else {
			posted = nezha_ina_buffers_post(buffers, posted);
			memcpy(posted->data, data, length);
			take(slots, (const uint8_t *)posted->data, length, posted);
		}
		data += length;
		size -= length;
	}
	nezha_ina_slots_destroy(slots);
	fuzz_assert(!budget.used);
	nezha_ina_buffers_destroy(buffers);
	return 0;
}
