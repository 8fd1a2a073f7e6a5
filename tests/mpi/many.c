/* SPDX-License-Identifier: BSD-3-Clause
 * Many communicators in use at once, in a shuffled order; the values follow from the seed, so two jobs with different seeds would
 * notice each other's.
 *   many [-c COMMUNICATORS] [-r ROUNDS] [-m BYTES] [-s SEED] */
#include <getopt.h>

#include "tests/mpi/common.h"

#define COMMS_MAX 512

static uint64_t seed = 1;

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b << 17 ^ seed << 40) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

/* Element k of the contribution of world rank r; a double that is a whole number, so every order gives the same sum. */
static double value(uint64_t call, int r, size_t k)
{
	return (double)(int64_t)(mix(call * 64 + (uint64_t)r, k) >> 24) - 0x1p39;
}

/* All ranks, all in the other order, or all but the last: then that one has MPI_COMM_NULL. */
static MPI_Comm make(int i)
{
	MPI_Comm comm;

	if (i % 3 == 0)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	else if (i % 3 == 1)
		MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
	else
		MPI_Comm_split(MPI_COMM_WORLD, world_size > 2 && world_rank == world_size - 1 ? MPI_UNDEFINED : 0, world_rank,
		               &comm);
	return comm;
}

static int members(int i)
{
	return i % 3 == 2 && world_size > 2 ? world_size - 1 : world_size;
}

static void call_one(MPI_Comm comm, int i, uint64_t call, size_t count, double *in, double *out)
{
	bool in_place = call % 2;
	double *from = in_place ? out : in;

	for (size_t k = 0; k < count; k++)
		from[k] = value(call, world_rank, k);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, (int)count, MPI_DOUBLE, MPI_SUM, comm);
	for (size_t k = 0; k < count; k++) {
		double sum = 0;

		for (int r = 0; r < members(i); r++)
			sum += value(call, r, k);
		if (out[k] != sum) {
			fail("communicator %d, call %llu: element %zu is %g, not %g", i, (unsigned long long)call, k, out[k], sum);
			return;
		}
	}
}

int main(int argc, char **argv)
{
	static MPI_Comm comms[COMMS_MAX];
	long count = 32, rounds = 10, bytes = 65536, step;
	double *in, *out;
	int option;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	while ((option = getopt(argc, argv, "c:r:m:s:")) != -1)
		switch (option) {
		case 'c': count = number(optarg, "-c", 1, COMMS_MAX); break;
		case 'r': rounds = number(optarg, "-r", 1, 1000000); break;
		case 'm': bytes = number(optarg, "-m", 8, 1 << 28); break;
		case 's': seed = (uint64_t)number(optarg, "-s", 0, 1 << 20); break;
		default: return 2;
		}
	step = count % 7 ? 7 : 1;
	in = grab((size_t)bytes);
	out = grab((size_t)bytes);
	for (long i = 0; i < count; i++)
		comms[i] = make((int)i);
	for (long round = 0; round < rounds; round++) {
		watch(60, "a round over all communicators");
		for (long n = 0; n < count; n++) {
			/* the same order on all ranks, another one in each round; 7 is a prime, so all have their turn */
			long i = (n * step + round * 13) % count;
			uint64_t call = (uint64_t)(round * count + n);
			size_t length = (size_t)bytes / 8 - mix(call, 9) % ((size_t)bytes / 32 + 1);

			if (comms[i] != MPI_COMM_NULL)
				call_one(comms[i], (int)i, call, length, in, out);
		}
	}
	for (long i = 0; i < count; i++)
		if (comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
	free(in);
	free(out);
	return finish("many");
}
