/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_slots.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rails/reduce.h"
#include "tuning/status.h"

struct version {
	struct nezha_ina_header header;      /* of its chunk, as the first rank said */
	bool used;
	bool complete;                       /* a flag of its own: the ranks that are in are not told from it */
	uint16_t folded;                     /* contributions, in the order of folding */
	uint64_t in[NEZHA_INA_RANKS_MAX / 64]; /* by rank */
	uint64_t asked[NEZHA_INA_RANKS_MAX / 64]; /* ... that have asked for the result again */
};

/* A contribution that waits for its turn; it does if `data` is not NULL. */
struct parked {
	const char *data;
	struct nezha_ina_buffer *in;         /* NULL: it is a copy, in the version's own room */
};

struct nezha_ina_slots {
	struct nezha_ina_budget *budget;
	int ranks;
	uint32_t window, chunk;
	bool gaps;
	struct version *versions;            /* 2 * window: chunk s is in s mod (2 window) */
	char *sums;                          /* a chunk for each version */
	char *copies;                        /* a chunk for each version and rank */
	struct parked *parked;               /* for each version and rank */
};

uint64_t nezha_ina_slots_bytes(int ranks, uint32_t window, uint32_t chunk)
{
	return 2 * (uint64_t)window * (sizeof(struct version) + (uint64_t)ranks * sizeof(struct parked) +
	                               ((uint64_t)ranks + 1) * chunk);
}

int nezha_ina_slots_create(struct nezha_ina_budget *budget, int ranks, uint32_t window, uint32_t chunk,
                           bool gaps, struct nezha_ina_slots **out)
{
	uint64_t need = nezha_ina_slots_bytes(ranks, window, chunk);
	struct nezha_ina_slots *slots;

	if (need > budget->limit - budget->used)
		return NEZHA_ERR_NOMEM;
	slots = calloc(1, sizeof *slots);
	if (!slots)
		return NEZHA_ERR_NOMEM;
	slots->versions = calloc(2 * (size_t)window, sizeof *slots->versions);
	slots->sums = calloc(2 * (size_t)window * chunk, (size_t)ranks + 1);
	slots->parked = calloc(2 * (size_t)window * (size_t)ranks, sizeof *slots->parked);
	if (!slots->versions || !slots->sums || !slots->parked) {
		free(slots->versions);
		free(slots->sums);
		free(slots->parked);
		free(slots);
		return NEZHA_ERR_NOMEM;
	}
	slots->copies = slots->sums + 2 * (size_t)window * chunk;
	slots->budget = budget;
	slots->ranks = ranks;
	slots->gaps = gaps;
	slots->window = window;
	slots->chunk = chunk;
	budget->used += need;
	*out = slots;
	return NEZHA_OK;
}

static void let_go(struct parked *parked)
{
	if (parked->in)
		nezha_ina_buffer_release(parked->in);
	*parked = (struct parked){ NULL, NULL };
}

void nezha_ina_slots_destroy(struct nezha_ina_slots *slots)
{
	if (!slots)
		return;
	for (size_t i = 0; i < 2 * (size_t)slots->window * (size_t)slots->ranks; i++)
		let_go(&slots->parked[i]);
	slots->budget->used -= nezha_ina_slots_bytes(slots->ranks, slots->window, slots->chunk);
	free(slots->versions);
	free(slots->sums);
	free(slots->parked);
	free(slots);
}

static uint32_t index_of(const struct nezha_ina_slots *slots, uint32_t seq)
{
	return seq & (2 * slots->window - 1);
}

static bool has(const struct version *version, int rank)
{
	return version->in[rank / 64] >> rank % 64 & 1;
}

/* Whether chunk `seq` may begin where this version is: it is the first one there, or the next but one of the slot; and the
 * sender has the result of the slot's chunk in between. */
static bool may_begin(const struct nezha_ina_slots *slots, const struct version *version, uint32_t seq)
{
	const struct version *between = &slots->versions[index_of(slots, seq - slots->window)];

	if (slots->gaps)
		return !version->used || (version->complete && (int32_t)(seq - version->header.seq) > 0);
	if (version->used ? seq - version->header.seq != 2 * slots->window || !version->complete
	                  : seq >= 2 * slots->window)
		return false;
	if (!version->used && seq < slots->window)
		return true;
	return between->used && between->complete && between->header.seq == seq - slots->window;
}

static void begin(struct version *version, const struct nezha_ina_header *header)
{
	memset(version, 0, sizeof *version);
	version->used = true;
	version->header = *header;
}

static bool agrees(const struct version *version, const struct nezha_ina_header *header)
{
	const struct nezha_ina_header *first = &version->header;

	return first->call == header->call && first->block == header->block && first->type == header->type &&
	       first->op == header->op && first->length == header->length;
}

static struct parked *parked_of(const struct nezha_ina_slots *slots, const struct version *version, int rank)
{
	return &slots->parked[(size_t)(version - slots->versions) * (size_t)slots->ranks + (size_t)rank];
}

/* The contribution that is the n-th to be folded. */
static struct parked *nth(const struct nezha_ina_slots *slots, const struct version *version, int n)
{
	uint32_t ranks = (uint32_t)slots->ranks;

	return parked_of(slots, version, (int)((version->header.block % ranks + 1 + (uint32_t)n) % ranks));
}

/* The contribution stays where it is, if it may, or is copied. */
static void keep(struct nezha_ina_slots *slots, const struct version *version, struct parked *parked,
                 struct nezha_ina_buffer *in)
{
	char *copy = slots->copies + (size_t)(parked - slots->parked) * slots->chunk;

	if (in && nezha_ina_buffer_hold(in)) {
		parked->in = in;
		return;
	}
	memcpy(copy, parked->data, version->header.length);
	parked->data = copy;
}

/* Folds those that have their turn.  The first one waits for the second, so that it need not be copied to begin the sum. */
static void fold_ready(struct nezha_ina_slots *slots, struct version *version)
{
	const struct nezha_ina_header *header = &version->header;
	nezha_reduce_fn *kernel = nezha_reduce_kernel(header->type, header->op);
	size_t count = header->length / nezha_type_size(header->type);
	char *sum = slots->sums + (size_t)(version - slots->versions) * slots->chunk;
	struct parked *next;

	if (!version->folded) {
		struct parked *first = nth(slots, version, 0), *second = nth(slots, version, 1);

		if (!first->data || !second->data)
			return;
		kernel(sum, first->data, second->data, count);
		let_go(first);
		let_go(second);
		version->folded = 2;
	}
	while (version->folded < slots->ranks && (next = nth(slots, version, version->folded))->data) {
		kernel(sum, sum, next->data, count);
		let_go(next);
		version->folded++;
	}
	version->complete = version->folded == slots->ranks;
}

/* Folds the contribution and those parked that follow it, or parks it. */
static void fold(struct nezha_ina_slots *slots, struct version *version, int rank, const void *payload,
                 struct nezha_ina_buffer *in)
{
	struct parked *own = parked_of(slots, version, rank);

	version->in[rank / 64] |= (uint64_t)1 << rank % 64;
	*own = (struct parked){ payload, NULL };
	fold_ready(slots, version);
	if (own->data)
		keep(slots, version, own, in);
}

static void tell(const struct nezha_ina_slots *slots, const struct version *version, struct nezha_ina_sum *out)
{
	out->header = version->header;
	out->header.kind = NEZHA_INA_RESULT;
	out->header.flags = 0;
	out->header.rank = 0;
	out->asked = false;
	out->data = slots->sums + (size_t)(version - slots->versions) * slots->chunk;
}

enum nezha_ina_taken nezha_ina_slots_take(struct nezha_ina_slots *slots, const struct nezha_ina_header *header,
                                          const void *payload, struct nezha_ina_buffer *in, struct nezha_ina_sum *out)
{
	struct version *version = &slots->versions[index_of(slots, header->seq)];

	if (header->rank >= slots->ranks || header->length > slots->chunk)
		return NEZHA_INA_OUTSIDE;
	if (!version->used || version->header.seq != header->seq) {
		if (!may_begin(slots, version, header->seq))
			return NEZHA_INA_OUTSIDE;
		begin(version, header);
	} else if (!agrees(version, header)) {
		return NEZHA_INA_DISAGREE;
	}
	if (version->complete) {
		uint64_t *asked = &version->asked[header->rank / 64], bit = (uint64_t)1 << header->rank % 64;

		tell(slots, version, out);
		out->asked = (*asked & bit) != 0;
		*asked |= bit;
		return NEZHA_INA_KEPT;
	}
	if (has(version, header->rank))
		return NEZHA_INA_TWICE;
	fold(slots, version, header->rank, payload, in);
	if (!version->complete)
		return NEZHA_INA_TAKEN;
	tell(slots, version, out);
	return NEZHA_INA_COMPLETE;
}

bool nezha_ina_slots_kept(const struct nezha_ina_slots *slots, uint32_t at, struct nezha_ina_sum *out)
{
	const struct version *version = &slots->versions[at];

	if (!version->used || !version->complete)
		return false;
	tell(slots, version, out);
	return true;
}

void nezha_ina_slots_missing(const struct nezha_ina_slots *slots, uint32_t seq, struct nezha_ina_missing *out)
{
	const struct version *version = &slots->versions[index_of(slots, seq)];
	bool begun = version->used && version->header.seq == seq;

	memset(out, 0, sizeof *out);
	for (int r = 0; r < slots->ranks; r++)
		if (!begun || !has(version, r))
			out->bits[r / 8] |= (uint8_t)(1u << r % 8);
}
