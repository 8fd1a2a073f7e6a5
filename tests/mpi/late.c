/* SPDX-License-Identifier: BSD-3-Clause
 * A rank that is late holds only the communicators that it is in.  The last rank sleeps outside MPI and then
 * waits for a message that the others send when they are through with the communicator that it has no part
 * in; only then it enters the reduction that a second thread of each of them has been waiting in all the
 * time.  If its absence held the first communicator up, nobody would ever go on.  No clock decides.
 *   late [-s SECONDS] [-n CALLS] [-m BYTES] [-1]      -1: one thread only */
#include <getopt.h>
#include <pthread.h>

#include "tests/mpi/common.h"

static MPI_Comm all, punctual;
static int elements = 1 << 19;

static void reduce(MPI_Comm comm, int *buffer, const char *what, long k)
{
	int size, rank;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < elements; i++)
		buffer[i] = (int)k + rank * 3 + i % 5;
	MPI_Allreduce(MPI_IN_PLACE, buffer, elements, MPI_INT, MPI_SUM, comm);
	for (int i = 0; i < elements; i++)
		if (buffer[i] != size * ((int)k + i % 5) + 3 * size * (size - 1) / 2) {
			fail("%s, call %ld: element %d is %d", what, k, i, buffer[i]);
			return;
		}
}

static void *reduce_with_all(void *buffer)
{
	reduce(all, buffer, "with the late rank", 0);
	return NULL;
}

int main(int argc, char **argv)
{
	long seconds = 3, calls = 20;
	bool threads = true;
	int option, late, *first, *second;
	pthread_t waiting;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-1"))
			threads = false;
	begin(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
	while ((option = getopt(argc, argv, "s:n:m:1")) != -1)
		switch (option) {
		case 's': seconds = number(optarg, "-s", 0, 3600); break;
		case 'n': calls = number(optarg, "-n", 1, 100000); break;
		case 'm': elements = (int)number(optarg, "-m", 4, 1 << 30) / 4; break;
		case '1': break;
		default: return 2;
		}
	if (world_size < 3) {
		printf("late: needs 3 ranks at least\n");
		MPI_Finalize();
		return 2;
	}
	late = world_size - 1;
	first = grab((size_t)elements * sizeof(int));
	second = grab((size_t)elements * sizeof(int));
	watch(60, "both communicators used once");
	MPI_Comm_dup(MPI_COMM_WORLD, &all);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank == late, 0, &punctual);
	reduce(all, first, "everybody", 1);
	reduce(punctual, first, "without the late rank", 1);

	if (world_rank == late) {
		sleep((unsigned)seconds);
		watch(60, "the message that the others went on without the late rank");
		MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		reduce_with_all(second);
	} else {
		watch((unsigned)seconds + 60, "a communicator that the late rank is not in");
		if (threads && pthread_create(&waiting, NULL, reduce_with_all, second))
			return 2;
		for (long k = 2; k < calls + 2; k++)
			reduce(punctual, first, "without the late rank", k);
		if (world_rank == 0)
			MPI_Send(NULL, 0, MPI_INT, late, 1, MPI_COMM_WORLD);
		if (threads)
			pthread_join(waiting, NULL);
		else
			reduce_with_all(second);
	}
	watch(60, "the end");
	MPI_Comm_free(&all);
	MPI_Comm_free(&punctual);
	free(first);
	free(second);
	return finish("late");
}
