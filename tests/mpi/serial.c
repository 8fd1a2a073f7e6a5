/* SPDX-License-Identifier: BSD-3-Clause
 * An MPI for a single process, as programs bring with them: to be preloaded behind Nezha, it calls itself and ends with status 0 if
 * each call came through.  With VERSION defined, which it then calls itself, it is an MPI library like others, but of an ABI of its own. */
#include <string.h>
#include <unistd.h>

static int calls;

/* By way of the loader, also where the compiler (clang) would take the functions in. */
#define APART __attribute__((noinline))

APART int MPI_Init(int *argc, char ***argv);
APART int MPI_Allreduce(const void *from, void *to, int count, int type, int op, int comm);
APART int PMPI_Allreduce(const void *from, void *to, int count, int type, int op, int comm);
APART int MPI_Finalize(void);

int MPI_Init(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	calls++;
	return 0;
}

int PMPI_Allreduce(const void *from, void *to, int count, int type, int op, int comm)
{
	(void)type, (void)op;
	calls += count + comm;
	*(int *)to = *(const int *)from;
	return 0;
}

int MPI_Allreduce(const void *from, void *to, int count, int type, int op, int comm)
{
	return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Finalize(void)
{
	calls++;
	return 0;
}

#ifdef VERSION
int PMPI_Init(int *argc, char ***argv);
int PMPI_Finalize(void);
int PMPI_Get_library_version(char *version, int *length);

/* They are what Nezha calls for MPI_Init and MPI_Finalize. */
int PMPI_Init(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	calls++;
	return 0;
}

int PMPI_Finalize(void)
{
	calls++;
	return 0;
}

int PMPI_Get_library_version(char *version, int *length)
{
	strcpy(version, VERSION "\nof another kind");
	*length = (int)strlen(version);
	return 0;
}
#endif

__attribute__((constructor)) static void call(void)
{
	int from = 7, to = 0, errors = 0;

	errors += MPI_Init(NULL, NULL);
	errors += MPI_Allreduce(&from, &to, 1, 0, 0, 9);
	errors += MPI_Finalize();
	_exit(errors || calls != 12 || to != 7);
}
