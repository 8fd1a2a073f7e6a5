/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/mpi/values.h"

#include <float.h>
#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t bits_of(uint64_t seed, int rank, size_t index)
{
	return mix(seed * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xd1342543de82ef95u + index + 1);
}

/* The contribution as an integer; the caller cuts it to the type's size. */
static uint64_t integer(uint64_t bits, struct value_kind kind, enum value_op op)
{
	switch (op) {
	case OP_SUM:
		if (!kind.tame)
			return bits;
		return kind.family == 'i' ? bits % 7 - 3 : bits % 7;
	case OP_PROD: /* odd, or every product would soon be 0 */
		if (!kind.tame)
			return bits | 1;
		return kind.family == 'i' && bits % 3 == 0 ? UINT64_MAX : 1;
	case OP_LAND:
		return bits % 16 ? bits | 1 : 0;
	case OP_LOR:
		return bits % 16 ? 0 : bits | 1;
	case OP_LXOR:
		return bits & 1 << 20 ? bits | 1 : 0;
	default:
		return bits;
	}
}

/* Magnitudes from 2^-12 to 2^12 for sums, so that the order of folding shows in the bits; near 1 for
 * products. */
static double floating(uint64_t bits, enum value_op op)
{
	double fraction = (double)(bits >> 11) * 0x1p-53;
	double sign = bits & 1 ? -1 : 1;

	if (op == OP_PROD)
		return sign * (0.75 + fraction / 2);
	return sign * ldexp(0.5 + fraction / 2, (int)(bits >> 1 & 0x1f) % 25 - 12);
}

void values_fill(void *buf, size_t first, size_t n, struct value_kind kind, enum value_op op, uint64_t seed,
                 int rank)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = bits_of(seed, rank, first + i);

		if (kind.family == 'f') {
			double value = floating(bits, op);

			if (kind.size == 4)
				((float *)buf)[i] = (float)value;
			else
				((double *)buf)[i] = value;
			continue;
		}
		uint64_t value = integer(bits, kind, op);
		switch (kind.size) {
		case 1: ((uint8_t *)buf)[i] = (uint8_t)value; break;
		case 2: ((uint16_t *)buf)[i] = (uint16_t)value; break;
		case 4: ((uint32_t *)buf)[i] = (uint32_t)value; break;
		default: ((uint64_t *)buf)[i] = value; break;
		}
	}
}

/* sum|x| or prod|x| over the ranks, of element `index`. */
static double magnitude(size_t index, enum value_op op, uint64_t seed, int ranks)
{
	double all = op == OP_SUM ? 0 : 1;

	for (int r = 0; r < ranks; r++) {
		double x = fabs(floating(bits_of(seed, r, index), op));

		all = op == OP_SUM ? all + x : all * x;
	}
	return all;
}

static size_t first_unlike(const unsigned char *a, const unsigned char *b, size_t n, size_t size)
{
	size_t i = 0;

	if (memcmp(a, b, n * size) == 0)
		return n;
	while (a[i] == b[i])
		i++;
	return i / size;
}

size_t values_differ(const void *a, const void *b, size_t n, struct value_kind kind, enum value_op op,
                     uint64_t seed, int ranks)
{
	double eps = kind.size == 4 ? FLT_EPSILON : DBL_EPSILON;

	if (kind.family != 'f' || op > OP_PROD)
		return first_unlike(a, b, n, (size_t)kind.size);
	for (size_t i = 0; i < n; i++) {
		double x = kind.size == 4 ? (double)((const float *)a)[i] : ((const double *)a)[i];
		double y = kind.size == 4 ? (double)((const float *)b)[i] : ((const double *)b)[i];

		if (x == y)
			continue;
		/* not <=: a NaN must fail */
		if (!(fabs(x - y) <= 2 * (ranks - 1) * eps * magnitude(i, op, seed, ranks)))
			return i;
	}
	return n;
}

uint64_t values_digest(uint64_t digest, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t word;

	digest = mix(digest + length + 0x9e3779b97f4a7c15u);
	for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		digest = (digest ^ word) * 0xff51afd7ed558ccdu;
		digest ^= digest >> 32;
	}
	word = 0;
	memcpy(&word, at, length);
	return mix(digest ^ word);
}
