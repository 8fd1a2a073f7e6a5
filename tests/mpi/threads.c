/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_THREAD_MULTIPLE: as many threads as communicators, each call on another communicator than the last, in
 * an order of every rank's own, vectors of very unlike sizes.  All communicators are busy at once, so the
 * program is legal; a block that waits for one of them must not hold those of another.
 *   threads [-t THREADS] [-n ROUNDS] [-m MAX_BYTES] [-s SEED] */
#include <getopt.h>
#include <pthread.h>

#include "tests/mpi/common.h"

#define THREADS_MAX 8

struct worker {
	pthread_t id;
	int number;
	int64_t *in, *out;
};

static MPI_Comm comms[THREADS_MAX];
static int threads = 4;
static long rounds = 20, seed = 1;
static size_t largest = 4 << 20;
static pthread_barrier_t barrier;

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
	return x ^ x >> 33;
}

/* Which communicator thread `number` serves in this round: a permutation that every rank has of its own. */
static int choose(long round, int number)
{
	int order[THREADS_MAX];
	uint64_t state = mix((uint64_t)(seed * 1000 + round) * 64 + (uint64_t)world_rank);

	for (int i = 0; i < threads; i++)
		order[i] = i;
	for (int i = threads - 1; i > 0; i--, state = mix(state)) {
		int k = (int)(state % (uint64_t)(i + 1)), swap = order[i];

		order[i] = order[k];
		order[k] = swap;
	}
	return order[number];
}

/* The vector's length is the same on all ranks: from 1 element to the largest, small and large ones mixed. */
static int length(long round, int comm)
{
	uint64_t bits = mix((uint64_t)(seed * 77 + round * THREADS_MAX + comm));

	return (int)((largest >> (bits % 12)) / sizeof(int64_t) - bits % 2);
}

static int64_t value(int rank, long round, int comm, int i)
{
	return rank * 1000003LL + round * 101 + comm * 10007LL + i % 1009;
}

static void reduce(struct worker *worker, long round)
{
	int comm = choose(round, worker->number), n = length(round, comm), rank, size;

	MPI_Comm_rank(comms[comm], &rank);
	MPI_Comm_size(comms[comm], &size);
	for (int i = 0; i < n; i++)
		worker->in[i] = value(rank, round, comm, i);
	MPI_Allreduce(worker->in, worker->out, n, MPI_INT64_T, MPI_SUM, comms[comm]);
	for (int i = 0; i < n; i++) {
		int64_t expected = size * value(0, round, comm, i) + 1000003LL * size * (size - 1) / 2;

		if (worker->out[i] != expected) {
			fail("round %ld, communicator %d, element %d of %d: %lld, not %lld", round, comm, i,
			     n, (long long)worker->out[i], (long long)expected);
			return;
		}
	}
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (long round = 0; round < rounds; round++) {
		if (worker->number == 0)
			watch(60, "a round of threads");
		reduce(worker, round);
		/* a communicator is free for another thread only when its last call is over */
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* Duplicates, with every other one reversed and every third one of half the ranks. */
static void make_communicators(void)
{
	for (int i = 0; i < threads; i++)
		if (i % 3 == 2)
			MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comms[i]);
		else
			MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -world_rank : world_rank, &comms[i]);
}

int main(int argc, char **argv)
{
	struct worker workers[THREADS_MAX];
	int option;

	begin(&argc, &argv, MPI_THREAD_MULTIPLE);
	while ((option = getopt(argc, argv, "t:n:m:s:")) != -1)
		switch (option) {
		case 't': threads = (int)number(optarg, "-t", 1, THREADS_MAX); break;
		case 'n': rounds = number(optarg, "-n", 1, 1000000); break;
		case 'm': largest = (size_t)number(optarg, "-m", 1 << 15, 1 << 30); break;
		case 's': seed = number(optarg, "-s", 0, 1 << 20); break;
		default: return 2;
		}
	watch(60, "the communicators");
	make_communicators();
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		workers[i].number = i;
		workers[i].in = grab(largest);
		workers[i].out = grab(largest);
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&workers[i].id, NULL, work, &workers[i])) {
			fprintf(stderr, "no thread\n");
			exit(2);
		}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].id, NULL);
		free(workers[i].in);
		free(workers[i].out);
	}
	pthread_barrier_destroy(&barrier);
	for (int i = 0; i < threads; i++)
		MPI_Comm_free(&comms[i]);
	return finish("threads");
}
