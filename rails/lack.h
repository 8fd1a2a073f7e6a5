/* SPDX-License-Identifier: BSD-3-Clause
 * What a process could not get of the system (descriptors, memory, threads), kept for the one line that says why its
 * communicator stays with the MPI library.  Any thread. */
#ifndef NEZHA_RAILS_LACK_H
#define NEZHA_RAILS_LACK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct nezha_lack {
	_Atomic(const char *) what;   /* NULL: nothing was wanting; static storage */
	atomic_int error;             /* errno; 0: `what` says it all */
};

/* Whether the error says that something is used up, and not that a peer is out of reach. */
static inline bool nezha_lack_is(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == EAGAIN ||
	       error == ENOSPC || error == EADDRNOTAVAIL;
}

/* Notes it; lack may be NULL. */
static inline void nezha_lack_note(struct nezha_lack *lack, const char *what, int error)
{
	if (!lack)
		return;
	atomic_store(&lack->error, error);
	atomic_store(&lack->what, what);
}

static inline void nezha_lack_clear(struct nezha_lack *lack)
{
	atomic_store(&lack->what, NULL);
}

#endif
