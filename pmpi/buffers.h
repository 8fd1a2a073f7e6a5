/* SPDX-License-Identifier: BSD-3-Clause
 * Whether the buffers of a call are the MPI library's to complain of. */
#ifndef NEZHA_PMPI_BUFFERS_H
#define NEZHA_PMPI_BUFFERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Null or overlapping: erroneous, so that MPI shall say what it says. */
static inline bool nezha_buffers_bad(const void *sendbuf, const void *recvbuf, uint64_t bytes)
{
	uintptr_t send = (uintptr_t)sendbuf, receive = (uintptr_t)recvbuf;
	uintptr_t apart = send < receive ? receive - send : send - receive;

	if (!recvbuf || recvbuf == MPI_IN_PLACE)
		return true;
	if (sendbuf == MPI_IN_PLACE)
		return false;
	return !sendbuf || apart < bytes;
}

#endif
