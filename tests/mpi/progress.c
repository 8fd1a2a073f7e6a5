/* SPDX-License-Identifier: BSD-3-Clause
 * Legal programs in which one rank can only enter MPI_Allreduce once MPI itself has moved on another rank
 * that waits in MPI_Allreduce already.  Each shape must end, with the right data.
 *   progress [-n REPEATS] [-m BYTES_OF_THE_VECTOR] [-f FLAG]      at least 2 ranks; others only reduce
 * FLAG: a file that all see and that is not there; with it, and 3 ranks, one more shape is tried. */
#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include "tests/mpi/common.h"

#define MESSAGE (1 << 20) /* bytes: far above every eager limit */

static char *message;
static int *in, *out;
static int vector; /* elements */
static const char *shape;
static const char *flag;

/* The reduction that all shapes share: element i of rank r is r + i % 11. */
static void reduce(MPI_Comm comm)
{
	int n;

	MPI_Comm_size(comm, &n);
	for (int i = 0; i < vector; i++)
		in[i] = world_rank + i % 11;
	MPI_Allreduce(in, out, vector, MPI_INT, MPI_SUM, comm);
	for (int i = 0; i < vector; i++)
		if (out[i] != n * (n - 1) / 2 + n * (i % 11)) {
			fail("%s: element %d is %d", shape, i, out[i]);
			return;
		}
}

static void check_message(char value)
{
	for (int i = 0; i < MESSAGE; i++)
		if (message[i] != value) {
			fail("%s: byte %d of the message is %d", shape, i, message[i]);
			return;
		}
	memset(message, 0, MESSAGE);
}

/* 0 starts a send and reduces; 1 must receive all of it before it reduces. */
static void isend(void)
{
	MPI_Request request;

	if (world_rank == 0) {
		memset(message, 1, MESSAGE);
		MPI_Isend(message, MESSAGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
	} else if (world_rank == 1) {
		MPI_Recv(message, MESSAGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_message(1);
	}
	reduce(MPI_COMM_WORLD);
	if (world_rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* 0 has posted a receive and reduces; 1 sends synchronously before it reduces. */
static void irecv(void)
{
	MPI_Request request;

	if (world_rank == 0) {
		MPI_Irecv(message, MESSAGE, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
	} else if (world_rank == 1) {
		memset(message, 2, MESSAGE);
		MPI_Ssend(message, MESSAGE, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
	}
	reduce(MPI_COMM_WORLD);
	if (world_rank == 0) {
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check_message(2);
	}
}

/* A buffered send leaves when MPI gets time to. */
static void bsend(void)
{
	int size = MESSAGE + MPI_BSEND_OVERHEAD;
	char *buffer = NULL;

	if (world_rank == 0) {
		buffer = grab((size_t)size);
		MPI_Buffer_attach(buffer, size);
		memset(message, 3, MESSAGE);
		MPI_Bsend(message, MESSAGE, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
	} else if (world_rank == 1) {
		MPI_Recv(message, MESSAGE, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_message(3);
	}
	reduce(MPI_COMM_WORLD);
	if (world_rank == 0) {
		MPI_Buffer_detach(&buffer, &size);
		free(buffer);
	}
}

/* Everybody but 0 waits for a broadcast that 0 has only started. */
static void ibcast(void)
{
	MPI_Request request;

	if (world_rank == 0)
		memset(message, 4, MESSAGE);
	MPI_Ibcast(message, MESSAGE, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
	if (world_rank != 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	reduce(MPI_COMM_WORLD);
	if (world_rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_message(4);
}

/* A chain: each rank receives, passes on without waiting, reduces. */
static void chain(void)
{
	MPI_Request request = MPI_REQUEST_NULL;

	if (world_rank == 0)
		memset(message, 5, MESSAGE);
	else
		MPI_Recv(message, MESSAGE, MPI_CHAR, world_rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (world_rank + 1 < world_size)
		MPI_Isend(message, MESSAGE, MPI_CHAR, world_rank + 1, 5, MPI_COMM_WORLD, &request);
	reduce(MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_message(5);
}

/* The send's completion is needed on one communicator while the reduction is on another. */
static void two_communicators(void)
{
	MPI_Comm other;
	MPI_Request request;

	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	if (world_rank == 1) {
		memset(message, 6, MESSAGE);
		MPI_Isend(message, MESSAGE, MPI_CHAR, 0, 6, other, &request);
	} else if (world_rank == 0) {
		MPI_Recv(message, MESSAGE, MPI_CHAR, 1, 6, other, MPI_STATUS_IGNORE);
		check_message(6);
	}
	reduce(MPI_COMM_WORLD);
	if (world_rank == 1)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	reduce(other);
	MPI_Comm_free(&other);
}

/* 1 is done with the reduction and blocks in a send that needs 0, which comes out of the reduction last. */
static void straight_on(void)
{
	reduce(MPI_COMM_WORLD);
	if (world_rank == 1) {
		memset(message, 7, MESSAGE);
		MPI_Ssend(message, MESSAGE, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
	} else if (world_rank == 0) {
		MPI_Recv(message, MESSAGE, MPI_CHAR, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_message(7);
	}
}

/* 2 receives what 0 has begun to send, and says so past MPI; until then 0 and 1 do nothing but reduce, again and again. */
static void outsider(void)
{
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Comm pair;

	if (!flag || world_size < 3)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
	if (world_rank == 0) {
		memset(message, 8, MESSAGE);
		MPI_Isend(message, MESSAGE, MPI_CHAR, 2, 8, MPI_COMM_WORLD, &request);
	} else if (world_rank == 2) {
		int file;

		MPI_Recv(message, MESSAGE, MPI_CHAR, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_message(8);
		file = open(flag, O_CREAT | O_WRONLY, 0600);
		if (file < 0)
			fail("%s: %s: %m", shape, flag);
		else
			close(file);
	}
	if (world_rank < 2) {
		memset(in, 0, (size_t)vector * sizeof *in);
		do {
			in[0] = !access(flag, F_OK);
			MPI_Allreduce(in, out, vector, MPI_INT, MPI_MAX, pair);
		} while (!out[0]);
		MPI_Comm_free(&pair);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (world_rank == 0)
		unlink(flag);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} shapes[] = {
		{ "Isend, Allreduce | Recv, Allreduce", isend },
		{ "Irecv, Allreduce | Ssend, Allreduce", irecv },
		{ "Bsend, Allreduce | Recv, Allreduce", bsend },
		{ "Ibcast, Allreduce | Wait, Allreduce", ibcast },
		{ "chain", chain },
		{ "two communicators", two_communicators },
		{ "straight on", straight_on },
		{ "a rank outside of it receives what a rank sends that only reduces", outsider },
	};
	long repeats = 3, bytes = 1 << 20;
	int option;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	while ((option = getopt(argc, argv, "n:m:f:")) != -1)
		if (option == 'n')
			repeats = number(optarg, "-n", 1, 100000);
		else if (option == 'm')
			bytes = number(optarg, "-m", 4, 1 << 30);
		else if (option == 'f')
			flag = optarg;
		else
			return 2;
	if (world_size < 2) {
		printf("progress: needs 2 ranks at least\n");
		MPI_Finalize();
		return 2;
	}
	vector = (int)(bytes / 4);
	message = grab(MESSAGE);
	in = grab((size_t)bytes);
	out = grab((size_t)bytes);
	for (long k = 0; k < repeats; k++)
		for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
			shape = shapes[s].name;
			watch(30, shape);
			shapes[s].run();
			if (world_rank == 0 && k == 0)
				printf("%s: ended\n", shape);
		}
	free(message);
	free(in);
	free(out);
	return finish("progress");
}
