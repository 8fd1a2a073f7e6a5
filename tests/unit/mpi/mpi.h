/* SPDX-License-Identifier: BSD-3-Clause
 * As much of MPI as pmpi/allreduce.c, finalize.c, nonblocking.c and passes.c need, for tests that play the library. */
#ifndef NEZHA_TESTS_MPI_H
#define NEZHA_TESTS_MPI_H

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Request;
typedef int MPI_Status;
typedef int MPI_Comm_copy_attr_function(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag);
typedef int MPI_Comm_delete_attr_function(MPI_Comm comm, int keyval, void *value, void *extra);

#define MPI_SUCCESS 0
#define MPI_IN_PLACE ((void *)-1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_COMM_NULL 0
#define MPI_COMM_WORLD 1
#define MPI_COMM_SELF 2
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)

int PMPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request);
int PMPI_Wait(MPI_Request *request, MPI_Status *status);
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete, int *keyval, void *extra);
int PMPI_Comm_delete_attr(MPI_Comm comm, int keyval);
int PMPI_Comm_free(MPI_Comm *comm);
int PMPI_Comm_free_keyval(int *keyval);
int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value);

#endif
