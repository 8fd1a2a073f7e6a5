/* SPDX-License-Identifier: BSD-3-Clause
 * The MPI library's own MPI_Allreduce, for our own small agreements: PMPI_Allreduce is the stub's. */
#ifndef NEZHA_PMPI_NATIVE_H
#define NEZHA_PMPI_NATIVE_H

#include <mpi.h>

#include "pmpi/context.h"

/* An MPI error code. */
static inline int nezha_native_allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op,
                                         MPI_Comm comm)
{
	return nezha_native(NEZHA_CALL_Allreduce)((nezha_word)mine, (nezha_word)all, (nezha_word)count,
	                                          (nezha_word)type, (nezha_word)op, (nezha_word)comm, 0);
}

#endif
