/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors in memory that the host cannot read, as a GPU's: the MPI library, which must know such memory for the call to be legal at
 * all, copies them to the host's and back. */
#ifndef NEZHA_PMPI_STAGING_H
#define NEZHA_PMPI_STAGING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* A call's vectors; the buffers are the program's before, and the host's between begin and end. */
struct nezha_staging {
	const void *sendbuf;         /* may be MPI_IN_PLACE */
	void *recvbuf;
	MPI_Datatype datatype;
	int64_t count;
	uint64_t bytes;
	void *target;                /* the program's receive buffer */
	void *memory;                /* the host's; owned */
};

/* Whether one of the two (sendbuf may be MPI_IN_PLACE) cannot be read.  Only this rank knows, and no other needs to. */
bool nezha_staging_wanted(const void *sendbuf, const void *recvbuf);

/* Puts copies in place of the buffers.  NEZHA_ERR_NOMEM: the buffers are the program's still.  NEZHA_ERR_SYSTEM if the library cannot copy:
 * they are the host's, with whatever is in them.  The end is due in any case. */
int nezha_staging_begin(struct nezha_staging *staging);

/* Copies the result to the program's receive buffer, if there is one (`whole`), and frees the copies.  NEZHA_ERR_SYSTEM as above. */
int nezha_staging_end(struct nezha_staging *staging, bool whole);

#endif
