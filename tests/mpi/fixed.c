/* SPDX-License-Identifier: BSD-3-Clause
 * Sums of floats that an aggregator adds as fixed point (ina:ADDRESS,fixed): within the stated error of the exact sums, the same bits on all
 * ranks; Inf and NaN are what float addition gives.  Prints a digest of the results.
 *   fixed strict    the aggregator takes all of a vector: rails/fixed.h's error holds for each element
 *   fixed loose     links take parts of it: theirs, that of adding floats in the ring, is allowed, too
 *   fixed odd       as loose, and some values are Inf or NaN */
#include "tests/mpi/common.h"

#include <math.h>

#define COUNT 300001
#define UNIT 1024                /* bytes with an exponent of their own */

static void *in, *out;
static double (*all)[COUNT];     /* every rank's values */
static bool strict, odd;

static uint64_t hash(uint64_t x)
{
	x = (x + 1) * 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

/* Units differ in their magnitude, values within a unit, too; some are zero. */
static double value(size_t i, int rank, size_t per_unit)
{
	uint64_t h = hash(i * 64 + (uint64_t)rank);
	int power = (int)(hash(i / per_unit) % 80) - 40 - (int)(h >> 58) / 2;

	if (odd && hash(i) % 50021 == 0 && rank == (int)(i % (size_t)world_size))
		return h & 1 ? NAN : h & 2 ? INFINITY : -INFINITY;
	return h % 19 ? ldexp((double)(int32_t)(h >> 16), power - 31) : 0;
}

static bool near(double got, size_t i, double power, int bits)
{
	int log = (int)ceil(log2(world_size));
	long double exact = 0, fixed = ldexpl(world_size / 2.0L * power, log - bits), most = 0;
	long double ulp = bits == 30 ? 0x1p-24L : 0x1p-53L;

	for (int r = 0; r < world_size; r++) {
		exact += (long double)all[r][i];
		most += fabsl((long double)all[r][i]);
	}
	if (!isfinite(exact))
		return isnan(exact) ? isnan(got) : (long double)got == exact;
	return fabsl((long double)got - exact) <= fixed + fabsl((long double)got) * ulp * 1.01L + (strict ? 0 : world_size * most * ulp);
}

static double power_of_unit(size_t first, size_t n)
{
	double most = 0;
	int power;

	for (int r = 0; r < world_size; r++)
		for (size_t i = first; i < first + n; i++)
			most = isfinite(all[r][i]) ? fmax(most, fabs(all[r][i])) : most;
	frexp(most, &power);
	return ldexp(1, power);
}

static void check(bool wide, const char *what)
{
	size_t per_unit = UNIT / (wide ? 8 : 4), wrong = 0, first = 0;

	for (size_t u = 0; u < COUNT; u += per_unit) {
		size_t n = COUNT - u < per_unit ? COUNT - u : per_unit;
		double power = power_of_unit(u, n);

		for (size_t i = u; i < u + n; i++)
			if (!near(wide ? ((double *)out)[i] : (double)((float *)out)[i], i, power, wide ? 62 : 30) && !wrong++)
				first = i;
	}
	if (wrong)
		fail("%s: %zu of %d elements are wrong, such as %zu: %.17g", what, wrong, COUNT, first,
		     wide ? ((double *)out)[first] : (double)((float *)out)[first]);
}

/* NaNs have many bit patterns, which all ranks must have alike, too. */
static uint64_t digest(size_t bytes)
{
	uint64_t sum = 0, roots;

	for (size_t i = 0; i < bytes; i += 4) {
		uint32_t word;

		memcpy(&word, (char *)out + i, 4);
		sum = hash(sum ^ word);
	}
	roots = sum;
	MPI_Bcast(&roots, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	if (roots != sum)
		fail("other bits than on rank 0");
	return roots;
}

static uint64_t sum(bool wide, bool in_place, const char *what)
{
	size_t size = wide ? 8 : 4;
	void *from = in_place ? out : in;

	for (int r = 0; r < world_size; r++)
		for (size_t i = 0; i < COUNT; i++)
			all[r][i] = wide ? value(i, r, UNIT / 8) : (double)(float)value(i, r, UNIT / 4);
	for (size_t i = 0; i < COUNT; i++)
		if (wide)
			((double *)from)[i] = all[world_rank][i];
		else
			((float *)from)[i] = (float)all[world_rank][i];
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, COUNT, wide ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	check(wide, what);
	return digest(COUNT * size);
}

int main(int argc, char **argv)
{
	uint64_t digests[4];

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	strict = argc > 1 && !strcmp(argv[1], "strict");
	odd = argc > 1 && !strcmp(argv[1], "odd");
	in = malloc(COUNT * sizeof(double));
	out = malloc(COUNT * sizeof(double));
	all = malloc((size_t)world_size * sizeof *all);
	watch(60, "the sums");
	digests[0] = sum(false, false, "float");
	digests[1] = sum(false, true, "float, in place");
	digests[2] = sum(true, false, "double");
	digests[3] = sum(true, true, "double, in place");
	if (digests[0] != digests[1] || digests[2] != digests[3])
		if (strict)
			fail("other bits in place");
	if (world_rank == 0)
		printf("digest-fixed %016llx %016llx\n", (unsigned long long)digests[0], (unsigned long long)digests[2]);
	return finish("fixed");
}
