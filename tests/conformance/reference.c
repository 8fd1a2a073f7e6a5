/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/reference.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/grid.h"
#include "tuning/status.h"

#define SLOTS 64                /* references at a time: of the calls that are being checked, and of some that not all ranks made */

struct reference {
	struct reference_of of;
	void *data;
	int holders, takes;
	uint64_t last;          /* taken as the ... th of all */
};

/* Memory of one thread alone; watching each element of it would be most of a ThreadSanitizer's work. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

UNWATCHED static unsigned mix(uint64_t i, int rank, unsigned seed)
{
	uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)(rank + 1) * 0xc2b2ae3d27d4eb4full ^ seed;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return (unsigned)(h >> 32);
}

/* The low `size` bytes of `value`. */
UNWATCHED static void put(char *at, size_t size, uint64_t value)
{
	switch (size) {
	case 1: *(uint8_t *)at = (uint8_t)value; break;
	case 2: *(uint16_t *)at = (uint16_t)value; break;
	case 4: *(uint32_t *)at = (uint32_t)value; break;
	default: *(uint64_t *)at = value;
	}
}

UNWATCHED void world_fill(void *buffer, enum nezha_type type, uint64_t count, int rank, unsigned seed)
{
	size_t size = nezha_type_size(type);

	for (uint64_t i = 0; i < count; i++) {
		unsigned h = mix(i, rank, seed);
		char *at = (char *)buffer + i * size;

		if (type == NEZHA_FLOAT32)
			*(float *)at = (float)((int)(h & 0xffffff) - 0x800000) / (float)(1 << (h >> 28));
		else if (type == NEZHA_FLOAT64)
			*(double *)at = (double)((int)(h & 0xffffff) - 0x800000) / (double)(1 << (h >> 28));
		else
			put(at, size, h | (uint64_t)mix(i, rank, seed + 1) << 32);
	}
}

void world_reference(void *out, enum nezha_type type, enum nezha_op op, uint64_t count, uint32_t block, int ranks,
                     unsigned seed)
{
	size_t size = nezha_type_size(type), bytes = count * size;
	char *input[WORLD_MOST];
	struct nezha_grid grid;

	for (int k = 0; k < ranks; k++) {
		input[k] = malloc(bytes);
		world_fill(input[k], type, count, k, seed);
	}
	if (nezha_grid_make(bytes, block, &grid) != NEZHA_OK)
		abort();
	for (uint32_t b = 0; b < grid.blocks; b++) {
		uint64_t at = nezha_grid_offset(&grid, b);
		uint32_t length = nezha_grid_length(&grid, b);
		int start = (int)(b % (uint32_t)ranks) + 1;

		memcpy((char *)out + at, input[start % ranks] + at, length);
		for (int k = 1; k < ranks; k++)
			nezha_reduce_kernel(type, op)((char *)out + at, (char *)out + at,
			                              input[(start + k) % ranks] + at, length / size);
	}
	for (int k = 0; k < ranks; k++)
		free(input[k]);
}

/* ---- computed once for all ranks ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reference slots[SLOTS];
static uint64_t taken;

static bool is_of(const struct reference *reference, const struct reference_of *of)
{
	const struct reference_of *has = &reference->of;

	return reference->data && has->type == of->type && has->op == of->op && has->count == of->count &&
	       has->block == of->block && has->ranks == of->ranks && has->seed == of->seed;
}

static void forget(struct reference *reference)
{
	free(reference->data);
	*reference = (struct reference){ 0 };
}

/* The slot that has been of no use for longest. */
static struct reference *free_slot(void)
{
	struct reference *found = NULL;

	for (int i = 0; i < SLOTS; i++)
		if (!slots[i].holders && (!found || slots[i].last < found->last))
			found = &slots[i];
	if (!found)
		abort();
	forget(found);
	return found;
}

static struct reference *compute(const struct reference_of *of)
{
	struct reference *reference = free_slot();

	reference->of = *of;
	reference->data = malloc(of->count * nezha_type_size(of->type) + 1);
	world_reference(reference->data, of->type, of->op, of->count, of->block, of->ranks, of->seed);
	return reference;
}

struct reference *reference_take(const struct reference_of *of)
{
	struct reference *found = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < SLOTS && !found; i++)
		if (is_of(&slots[i], of))
			found = &slots[i];
	if (!found)
		found = compute(of);
	found->holders++;
	found->takes++;
	found->last = ++taken;
	pthread_mutex_unlock(&lock);
	return found;
}

const void *reference_data(const struct reference *reference)
{
	return reference->data;
}

void reference_release(struct reference *reference)
{
	pthread_mutex_lock(&lock);
	if (!--reference->holders && reference->takes >= reference->of.ranks)
		forget(reference);
	pthread_mutex_unlock(&lock);
}
