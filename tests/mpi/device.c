/* SPDX-License-Identifier: BSD-3-Clause
 * Reductions of vectors in memory that the host cannot read, on some ranks, with a library that can copy it: this program's own
 * PMPI_Sendrecv stands before the library's.
 *   device RANKS [fails]    their numbers, with commas; the others' vectors are the host's; the library cannot copy after all: all ranks
 *                           get an error */
#include <dlfcn.h>
#include <sys/mman.h>

#include "tests/mpi/common.h"

#define COUNT 700001
#define BYTES ((size_t)1 << 24)

static char *device;                 /* BYTES of it; NULL: this rank has none */
static atomic_int copies;            /* from there or to there */
static bool fails;                   /* the library cannot make them */

static bool is_on_device(const void *address)
{
	return device && (const char *)address >= device && (const char *)address < device + BYTES;
}

static void unlock(bool open)
{
	if (device && mprotect(device, BYTES, open ? PROT_READ | PROT_WRITE : PROT_NONE))
		fail("mprotect: %s", strerror(errno));
}

int PMPI_Sendrecv(const void *from, int sent, MPI_Datatype sent_type, int to_rank, int sent_tag, void *to, int received,
                  MPI_Datatype received_type, int from_rank, int received_tag, MPI_Comm comm, MPI_Status *status)
{
	int (*library)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	bool own = is_on_device(from) || is_on_device(to);
	int error;

	*(void **)&library = dlsym(RTLD_NEXT, "PMPI_Sendrecv");
	if (own && fails)
		return MPI_ERR_OTHER;
	if (own)
		unlock(true);
	error = library(from, sent, sent_type, to_rank, sent_tag, to, received, received_type, from_rank, received_tag, comm, status);
	if (own)
		unlock(false);
	copies += own;
	return error;
}

static bool has_device(char *ranks)
{
	for (char *rank = strtok(ranks, ","); rank; rank = strtok(NULL, ","))
		if (number(rank, "RANKS", 0, 1000) == world_rank)
			return true;
	return false;
}

static int due(int i, int k)
{
	return world_size * (i % 101 + k) + 3 * world_size * (world_size - 1) / 2;
}

/* Call k, in place or not; `to` may be on the device, and so is `from` then. */
static void reduce(int *from, int *to, int k, bool in_place)
{
	unlock(true);
	for (int i = 0; i < COUNT; i++)
		(in_place ? to : from)[i] = world_rank * 3 + i % 101 + k;
	unlock(false);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : from, to, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	unlock(true);
	for (int i = 0; i < COUNT; i++)
		if (to[i] != due(i, k)) {
			fail("call %d: element %d is %d, not %d", k, i, to[i], due(i, k));
			break;
		}
	unlock(false);
}

/* One rank cannot even begin: the others must not wait for it. */
static void reduce_in_vain(int *from, int *to)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (MPI_Allreduce(from, to, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS)
		fail("no error");
}

int main(int argc, char **argv)
{
	int *from, *to;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc < 2)
		return 2;
	if (has_device(argv[1]))
		device = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	from = device ? (int *)device : grab(COUNT * sizeof *from);
	to = device ? (int *)(device + BYTES / 2) : grab(COUNT * sizeof *to);
	watch(60, "the reductions");
	for (int k = 0; k < 6; k++)
		reduce(from, to, k, k % 2);
	fails = argc > 2;
	if (fails)
		reduce_in_vain(from, to);
	if (!device != !copies)
		fail("%d copies", copies);
	return finish("device");
}
