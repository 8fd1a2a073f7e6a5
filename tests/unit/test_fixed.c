/* SPDX-License-Identifier: BSD-3-Clause
 * Floats as fixed point: random units of all magnitudes and numbers of ranks stay within the error that fixed.h states, against exact
 * sums in long double (64 bits of mantissa or more). */
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "rails/fixed.h"

#define RANKS 256

/* The sum needs twice a double's bits to be exact enough for float64. */
#if LDBL_MANT_DIG >= 64

static uint64_t seed = 1;

static uint64_t random_bits(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Of magnitude 2^(most - spread) to 2^most. */
static double random_value(int most, int spread)
{
	double mantissa = (double)(random_bits() >> 11) * 0x1p-54 + 0.5;

	return ldexp(random_bits() & 1 ? mantissa : -mantissa, most - (int)(random_bits() % (unsigned)(spread + 1)));
}

#define FLOATS(name, float_type, integer, type_number, most, least, bits, ulp) \
	static float_type name##_in[RANKS][NEZHA_FIXED_UNIT / sizeof(float_type)]; \
	static int32_t name##_agree(int ranks, size_t n) \
	{ \
		int32_t exponent = NEZHA_FIXED_UNKNOWN; \
		for (int r = 0; r < ranks; r++) { \
			int32_t own = nezha_fixed_exponent(type_number, name##_in[r], n * sizeof(float_type)); \
			exponent = own > exponent ? own : exponent; \
		} \
		return nezha_fixed_agreed(type_number, exponent); \
	} \
	static void name##_sum(int32_t exponent, int ranks, size_t n, float_type *out) \
	{ \
		integer sum[NEZHA_FIXED_UNIT / sizeof(integer)] = { 0 }, packed[NEZHA_FIXED_UNIT / sizeof(integer)]; \
		for (int r = 0; r < ranks; r++) { \
			nezha_fixed_pack(type_number, exponent, ranks, name##_in[r], packed, n * sizeof(float_type)); \
			for (size_t i = 0; i < n; i++) \
				assert_false(__builtin_add_overflow(sum[i], packed[i], &sum[i])); \
		} \
		nezha_fixed_unpack(type_number, exponent, ranks, sum, out, n * sizeof(float_type)); \
	} \
	static void name##_within(int ranks, size_t n) \
	{ \
		float_type out[NEZHA_FIXED_UNIT / sizeof(float_type)]; \
		int32_t exponent = name##_agree(ranks, n); \
		int log = (int)ceil(log2(ranks)); \
		long double step = exponent == NEZHA_FIXED_ZERO ? 0 : ldexpl(1, exponent + log - (bits)); \
		assert_int_not_equal(exponent, NEZHA_FIXED_ESCAPE); \
		name##_sum(exponent, ranks, n, out); \
		for (size_t i = 0; i < n; i++) { \
			long double exact = 0, error, rounding; \
			for (int r = 0; r < ranks; r++) \
				exact += (long double)name##_in[r][i]; \
			if (isinf(out[i])) { \
				assert_true(fabsl(exact) + ranks * step / 2 >= (long double)(most) * (1 - ldexpl(1, -20))); \
				continue; \
			} \
			error = fabsl((long double)out[i] - exact); \
			rounding = fabsl((long double)out[i]) * (ulp) + (least); \
			assert_true(error <= ranks * step / 2 + rounding); \
			assert_true(exact != 0 || out[i] != 0 || !signbit(out[i])); \
		} \
	} \
	static void name##_fill(int ranks, size_t n, int top, int spread) \
	{ \
		for (int r = 0; r < ranks; r++) \
			for (size_t i = 0; i < n; i++) \
				name##_in[r][i] = random_bits() % 16 ? (float_type)random_value(top, spread) : (float_type)(r % 2 ? -0.0 : 0.0); \
	}

FLOATS(f32, float, int32_t, NEZHA_FLOAT32, FLT_MAX, 0x1p-149L, 30, 0x1p-24L)
FLOATS(f64, double, int64_t, NEZHA_FLOAT64, DBL_MAX, 0x1p-1074L, 62, 0x1p-53L + 0x1p-60L)

static const int ranks_of[] = { 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 255, 256 };

static void sums_are_within_the_stated_error(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof ranks_of / sizeof *ranks_of; k++)
		for (int times = 0; times < 40; times++) {
			int spread = (int)(random_bits() % 60);

			f32_fill(ranks_of[k], 256, (int)(random_bits() % 275) - 147, spread);
			f32_within(ranks_of[k], 256);
			f64_fill(ranks_of[k], 128, (int)(random_bits() % 2090) - 1066, spread);
			f64_within(ranks_of[k], 128);
		}
}

/* All ranks have the greatest value there is, of one sign or of two; or the least. */
static void extremes_do_not_overflow(void **state)
{
	static const double factors[] = { 1, -1, 0.5, 0x1p-20 };

	(void)state;
	for (size_t k = 0; k < sizeof ranks_of / sizeof *ranks_of; k++)
		for (size_t f = 0; f < 4; f++) {
			for (int r = 0; r < ranks_of[k]; r++)
				for (int i = 0; i < 128; i++) {
					f32_in[r][i] = f32_in[r][i + 128] = (float)(FLT_MAX * factors[f]) * (i % 2 && r % 2 ? -1 : 1);
					f64_in[r][i] = DBL_MAX * factors[f] * (i % 2 && r % 2 ? -1 : 1);
				}
			f32_within(ranks_of[k], 256);
			f64_within(ranks_of[k], 128);
			for (int r = 0; r < ranks_of[k]; r++)
				for (int i = 0; i < 128; i++) {
					f32_in[r][i] = f32_in[r][i + 128] = (float)(FLT_TRUE_MIN * (i - 3 * r));
					f64_in[r][i] = DBL_TRUE_MIN * (i - 3 * r);
				}
			f32_within(ranks_of[k], 256);
			f64_within(ranks_of[k], 128);
		}
}

static void subnormals_and_small_integers_are_exact(void **state)
{
	float out[256];

	(void)state;
	for (int r = 0; r < 4; r++)
		for (int i = 0; i < 256; i++)
			f32_in[r][i] = (float)(i * (r + 1));
	f32_sum(f32_agree(4, 256), 4, 256, out);
	for (int i = 0; i < 256; i++)
		assert_true(out[i] == (float)(i * 10));
	for (int r = 0; r < 4; r++)
		for (int i = 0; i < 256; i++)
			f32_in[r][i] = (float)(i * (r + 1)) * FLT_TRUE_MIN;
	f32_sum(f32_agree(4, 256), 4, 256, out);
	for (int i = 0; i < 256; i++)
		assert_true(out[i] == (float)(i * 10) * FLT_TRUE_MIN);
}

static void zeros_have_an_exponent_of_their_own(void **state)
{
	float out[256];

	(void)state;
	memset(f32_in, 0, sizeof f32_in);
	f32_in[1][7] = -0.0f;
	assert_int_equal(f32_agree(2, 256), NEZHA_FIXED_ZERO);
	f32_sum(NEZHA_FIXED_ZERO, 2, 256, out);
	for (int i = 0; i < 256; i++)
		assert_true(out[i] == 0 && !signbit(out[i]));
	f32_in[0][9] = FLT_TRUE_MIN;
	assert_int_equal(f32_agree(2, 256), -126);
}

/* One is enough, on any rank, and then integers are zeros; nothing that the other side says makes another exponent. */
static void what_is_not_finite_escapes(void **state)
{
	static const double odd[] = { INFINITY, -INFINITY, NAN };
	float out[256];
	int32_t packed[256];

	(void)state;
	for (int k = 0; k < 3; k++) {
		f32_fill(3, 256, 3, 9);
		f64_fill(3, 128, 3, 9);
		f32_in[2][255] = (float)odd[k];
		f64_in[1][0] = odd[k];
		assert_int_equal(f32_agree(3, 256), NEZHA_FIXED_ESCAPE);
		assert_int_equal(f64_agree(3, 128), NEZHA_FIXED_ESCAPE);
	}
	nezha_fixed_pack(NEZHA_FLOAT32, NEZHA_FIXED_ESCAPE, 3, f32_in[0], packed, sizeof packed);
	for (int i = 0; i < 256; i++)
		assert_int_equal(packed[i], 0);
	memset(out, 0x5a, sizeof out);
	nezha_fixed_unpack(NEZHA_FLOAT32, NEZHA_FIXED_ESCAPE, 3, packed, out, sizeof out);
	assert_memory_equal(out, memset(packed, 0x5a, sizeof packed), sizeof out);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT32, 128), 128);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT32, 129), NEZHA_FIXED_ESCAPE);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT32, -126), -126);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT32, -127), NEZHA_FIXED_ESCAPE);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT64, 1024), 1024);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT64, 1025), NEZHA_FIXED_ESCAPE);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT64, -1023), NEZHA_FIXED_ESCAPE);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT64, NEZHA_FIXED_UNKNOWN), NEZHA_FIXED_ESCAPE);
	assert_int_equal(nezha_fixed_agreed(NEZHA_FLOAT64, NEZHA_FIXED_ZERO), NEZHA_FIXED_ZERO);
}

/* Buffers need no alignment, and units may be of any number of floats. */
static void odd_places(void **state)
{
	char from[64 + 1], to[64 + 1], back[64 + 1];

	(void)state;
	for (size_t n = 1; n <= 16; n++) {
		for (size_t i = 0; i < n; i++)
			memcpy(from + 1 + 4 * i, &(float){ (float)i - 3 }, 4);
		nezha_fixed_pack(NEZHA_FLOAT32, 5, 2, from + 1, to + 1, 4 * n);
		nezha_fixed_unpack(NEZHA_FLOAT32, 5, 2, to + 1, back + 1, 4 * n);
		assert_memory_equal(back + 1, from + 1, 4 * n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_within_the_stated_error),
		cmocka_unit_test(extremes_do_not_overflow),
		cmocka_unit_test(subnormals_and_small_integers_are_exact),
		cmocka_unit_test(zeros_have_an_exponent_of_their_own),
		cmocka_unit_test(what_is_not_finite_escapes),
		cmocka_unit_test(odd_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77;
}

#endif
