/* SPDX-License-Identifier: BSD-3-Clause
 * MPI's predefined types and operations as Nezha's.  Handles are only compared, never given to MPI:
 * anything that is not in the lists may be invalid, and is left to the MPI library. */
#ifndef NEZHA_PMPI_HANDLES_H
#define NEZHA_PMPI_HANDLES_H

#include <mpi.h>
#include <stddef.h>

#include "tuning/plan.h"
#include "tuning/types.h"

#define NEZHA_HANDLES_MAX 40

/* The types that this MPI library has, the common ones first. */
struct nezha_handles {
	size_t count;
	struct nezha_handle {
		MPI_Datatype handle;
		int family;               /* which operations are valid; handles.c's own */
		enum nezha_type type;
	} types[NEZHA_HANDLES_MAX];
};

/* Lists them; after MPI_Init.  Local. */
void nezha_handles_list(struct nezha_handles *out);

/* The bytes of an element; 0: it is none of the types.  Any thread. */
size_t nezha_handles_size(const struct nezha_handles *handles, MPI_Datatype datatype);

/* The type and the operation of a call that Nezha can do, or the reason why it is not one: returns
 * NEZHA_REASON_RULE (it is one; both are set), NEZHA_REASON_TYPE or NEZHA_REASON_OP (the type is set).
 * Any thread. */
enum nezha_reason nezha_handles_match(const struct nezha_handles *handles, MPI_Datatype datatype,
                                      MPI_Op operation, enum nezha_type *type, enum nezha_op *op);

#endif
