/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of random sizes over several communicators, with ranks that come late at random: what each communicator
 * learns must stay the same on all its ranks (run with NEZHA_CHECK=plan, which compares).
 *   agree [-n CALLS] [-m MAX_BYTES] [-s SEED]
 *   agree -w       rank 1 calls with another size than the others, who must all get an error, and go on */
#include <getopt.h>

#include "tests/mpi/common.h"

#define COMMS 4
#define RENEWED 400            /* calls after which a communicator is replaced by a new one */
#define LATE_US 3000

static long calls = 1000, seed = 1;
static size_t largest = 4 << 20;
static int64_t *in, *out;

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
	return x ^ x >> 33;
}

static MPI_Comm make(int which)
{
	MPI_Comm comm;

	switch (which) {
	case 0: MPI_Comm_dup(MPI_COMM_WORLD, &comm); break;
	case 1: MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm); break;
	case 2: MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comm); break;
	default: MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0, 0, &comm); break;
	}
	return comm;
}

/* Elements of a call: 64 KiB to 128 KiB half of the time, each further doubling half as often as the one before. */
static int length(uint64_t bits)
{
	size_t bytes = (size_t)65536 << __builtin_ctzll(bits | 64);

	bytes += (bits >> 8) % bytes;
	return (int)((bytes < largest ? bytes : largest) / sizeof(int64_t));
}

static int64_t value(int rank, long call, int i)
{
	return rank * 1000003LL + call * 101 + i % 1009;
}

static void reduce(long call, MPI_Comm comm, uint64_t bits)
{
	int n = length(bits), rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < n; i++)
		in[i] = value(rank, call, i);
	if (mix(bits + (uint64_t)world_rank) % 16 == 0)
		usleep((useconds_t)(mix(bits ^ (uint64_t)world_rank) % LATE_US));
	MPI_Allreduce(in, out, n, MPI_INT64_T, MPI_SUM, comm);
	for (int i = 0; i < n; i++) {
		int64_t expected = size * value(0, call, i) + 1000003LL * size * (size - 1) / 2;

		if (out[i] != expected) {
			fail("call %ld, element %d of %d: %lld, not %lld", call, i, n, (long long)out[i],
			     (long long)expected);
			return;
		}
	}
}

static void randomised(void)
{
	MPI_Comm comms[COMMS];

	for (int i = 0; i < COMMS; i++)
		comms[i] = make(i);
	for (long call = 0; call < calls; call++) {
		uint64_t bits = mix((uint64_t)(seed * 10000019 + call));
		/* the halves of a split communicator have sizes of their own */
		int which = (int)(bits % COMMS), colour = which == 2 ? world_rank % 2 : which == 3 && world_rank == 0;

		watch(60, "a random call");
		reduce(call, comms[which], mix(bits + (uint64_t)colour));
		if (call % RENEWED == RENEWED - 1) {
			which = (int)(call / RENEWED % COMMS);
			MPI_Comm_free(&comms[which]);
			comms[which] = make(which);
		}
	}
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comms[i]);
}

static void one_rank_is_wrong(void)
{
	int n = 1 << 17, error;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 20; i++) {
		watch(60, "a call with sizes that differ");
		error = MPI_Allreduce(in, out, n - (i % 4 == 3 && world_rank == 1), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		if (!error != (i % 4 != 3))
			fail("call %d, sizes %s: error %d", i, i % 4 == 3 ? "differ" : "are the same", error);
	}
}

int main(int argc, char **argv)
{
	bool wrong = false;
	int option;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	while ((option = getopt(argc, argv, "n:m:s:w")) != -1)
		switch (option) {
		case 'n': calls = number(optarg, "-n", 1, 1000000); break;
		case 'm': largest = (size_t)number(optarg, "-m", 1 << 16, 1 << 26); break;
		case 's': seed = number(optarg, "-s", 0, 1 << 20); break;
		case 'w': wrong = true; break;
		default: return 2;
		}
	in = calloc(1, largest);
	out = calloc(1, largest);
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (wrong)
		one_rank_is_wrong();
	else
		randomised();
	free(in);
	free(out);
	return finish("agree");
}
