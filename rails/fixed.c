/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/fixed.h"

#include <math.h>
#include <string.h>

#define SIGN32 0x80000000u
#define SIGN64 0x8000000000000000u
#define INFINITE32 0x7f800000u
#define INFINITE64 0x7ff0000000000000u

/* Without an alignment of their own. */
typedef float any_float __attribute__((aligned(1), may_alias));
typedef double any_double __attribute__((aligned(1), may_alias));
typedef uint32_t any_uint32 __attribute__((aligned(1), may_alias));
typedef uint64_t any_uint64 __attribute__((aligned(1), may_alias));
typedef int32_t any_int32 __attribute__((aligned(1), may_alias));
typedef int64_t any_int64 __attribute__((aligned(1), may_alias));

/* ---- exponents ---- */

/* Magnitudes have the order of their bits. */
static int32_t exponent32(const any_uint32 *bits, size_t n)
{
	uint32_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t one = bits[i] & ~SIGN32;

		most = one > most ? one : most;
	}
	return most >= INFINITE32 ? NEZHA_FIXED_ESCAPE : most ? (int32_t)(most >> 23) - 126 : NEZHA_FIXED_ZERO;
}

static int32_t exponent64(const any_uint64 *bits, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t one = bits[i] & ~SIGN64;

		most = one > most ? one : most;
	}
	return most >= INFINITE64 ? NEZHA_FIXED_ESCAPE : most ? (int32_t)(most >> 52) - 1022 : NEZHA_FIXED_ZERO;
}

int32_t nezha_fixed_exponent(enum nezha_type type, const void *data, size_t bytes)
{
	return type == NEZHA_FLOAT32 ? exponent32(data, bytes / sizeof(float)) : exponent64(data, bytes / sizeof(double));
}

int32_t nezha_fixed_agreed(enum nezha_type type, int32_t exponent)
{
	int32_t most = type == NEZHA_FLOAT32 ? 128 : 1024, least = 2 - most;

	if (exponent == NEZHA_FIXED_ZERO || (exponent >= least && exponent <= most))
		return exponent;
	return NEZHA_FIXED_ESCAPE;
}

/* ---- scaling ---- */

/* s of the header.  That of zeros only does not matter. */
static int scale_of(enum nezha_type type, int32_t exponent, int ranks)
{
	int log = 32 - __builtin_clz((unsigned)ranks - 1), bits = type == NEZHA_FLOAT32 ? 30 : 62;

	return bits - log - (exponent == NEZHA_FIXED_ZERO ? 0 : exponent);
}

/* 2^exponent; the exponent is that of a normal double. */
static double power(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + 1023) << 52;
	double result;

	memcpy(&result, &bits, sizeof result);
	return result;
}

/* Adding 1.5 * 2^52 rounds to the nearest integer, which then lies in the low bits: loops that compilers make vectors of. */
#define ROUND 0x1.8p52

static void pack32(double scale, const any_float *from, any_int32 *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double rounded = (double)from[i] * scale + ROUND;
		uint64_t bits;

		memcpy(&bits, &rounded, sizeof bits);
		to[i] = (int32_t)(uint32_t)bits;
	}
}

static void unpack32(double scale, const any_int32 *from, any_float *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (float)(from[i] * scale);
}

/* 2^s may be more than a double can be: two factors.  The first one is exact but for values that the second one makes less than
 * any half. */
static void pack64(double scale, double more, const any_double *from, any_int64 *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double scaled = from[i] * scale * more, large = copysign(0x1p52, scaled);
		double rounded = fabs(scaled) < 0x1p52 ? scaled + large - large : scaled;

		/* So large only if the exponents did not come from these values. */
		to[i] = fabs(rounded) < 0x1p63 ? (int64_t)rounded : 0;
	}
}

/* The first factor is exact, so what is rounded is the end of the second one. */
static void unpack64(double scale, double more, const any_int64 *from, any_double *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (double)from[i] * scale * more;
}

void nezha_fixed_pack(enum nezha_type type, int32_t exponent, int ranks, const void *from, void *to, size_t bytes)
{
	int scale = scale_of(type, exponent, ranks);

	if (exponent == NEZHA_FIXED_ESCAPE)
		memset(to, 0, bytes);
	else if (type == NEZHA_FLOAT32)
		pack32(power(scale), from, to, bytes / sizeof(float));
	else
		pack64(power(scale / 2), power(scale - scale / 2), from, to, bytes / sizeof(double));
}

void nezha_fixed_unpack(enum nezha_type type, int32_t exponent, int ranks, const void *from, void *to, size_t bytes)
{
	int scale = scale_of(type, exponent, ranks);

	if (exponent == NEZHA_FIXED_ESCAPE)
		return;
	if (type == NEZHA_FLOAT32)
		unpack32(power(-scale), from, to, bytes / sizeof(float));
	else
		unpack64(power(-(scale / 2)), power(scale / 2 - scale), from, to, bytes / sizeof(double));
}
