/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/staging.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmpi/context.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define PIECE (1 << 28)                  /* elements that are copied at once */
#define TAGS 32768                       /* that every MPI has */

/* Threads may copy at the same time, and must not get each other's messages. */
static atomic_uint copies;

/* The kernel reads the 8 bytes for us before it looks at the rest, which makes no sense: EINVAL if it could, EFAULT if not. */
static bool is_readable(const void *address)
{
	int before = errno;
	bool readable = syscall(SYS_rt_sigprocmask, -1, (uintptr_t)address & ~(uintptr_t)7, NULL, 8) == 0 || errno != EFAULT;

	errno = before;
	return readable;
}

bool nezha_staging_wanted(const void *sendbuf, const void *recvbuf)
{
	return !is_readable(recvbuf) || (sendbuf != MPI_IN_PLACE && !is_readable(sendbuf));
}

/* Messages of ours must not meet the program's.  A split one, since a dup would copy the program's attributes, and call back for them. */
static void make_self(void)
{
	if (PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &nezha_context.self) != MPI_SUCCESS)
		nezha_context.self = MPI_COMM_NULL;
	else
		PMPI_Comm_set_errhandler(nezha_context.self, MPI_ERRORS_RETURN);
}

static int copy(const struct nezha_staging *staging, const void *from, void *to)
{
	uint64_t size = staging->bytes / (uint64_t)staging->count;
	int tag = (int)(atomic_fetch_add(&copies, 1) % TAGS);

	pthread_once(&nezha_context.self_once, make_self);
	if (nezha_context.self == MPI_COMM_NULL)
		return NEZHA_ERR_SYSTEM;
	for (int64_t at = 0; at < staging->count; at += PIECE) {
		int count = staging->count - at < PIECE ? (int)(staging->count - at) : PIECE;

		if (PMPI_Sendrecv((const char *)from + (uint64_t)at * size, count, staging->datatype, 0, tag,
		                  (char *)to + (uint64_t)at * size, count, staging->datatype, 0, tag, nezha_context.self,
		                  MPI_STATUS_IGNORE) != MPI_SUCCESS) {
			nezha_error("the MPI library cannot copy a buffer that the host cannot read");
			return NEZHA_ERR_SYSTEM;
		}
	}
	return NEZHA_OK;
}

int nezha_staging_begin(struct nezha_staging *staging)
{
	bool in_place = staging->sendbuf == MPI_IN_PLACE;
	const void *source = in_place ? staging->recvbuf : staging->sendbuf;
	char *memory = malloc(in_place ? staging->bytes : 2 * staging->bytes);

	staging->memory = memory;
	if (!memory)
		return NEZHA_ERR_NOMEM;
	staging->target = staging->recvbuf;
	staging->sendbuf = in_place ? MPI_IN_PLACE : memory;
	staging->recvbuf = in_place ? memory : memory + staging->bytes;
	return copy(staging, source, memory);
}

int nezha_staging_end(struct nezha_staging *staging, bool whole)
{
	int status = whole ? copy(staging, staging->recvbuf, staging->target) : NEZHA_OK;

	free(staging->memory);
	return status;
}
