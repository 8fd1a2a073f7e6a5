/* SPDX-License-Identifier: BSD-3-Clause
 * A payload goes into a TCP connection without being copied: its pages are put into a pipe (vmsplice(2)), and from there into the
 * socket (splice(2)), which holds them until they are acknowledged.  MSG_ZEROCOPY would do the same, but copies after all where sender and
 * receiver share a kernel, and tells by messages when a page is free, which is not needed here: memory of a call stays as it is until the
 * neighbour has taken the block in, and what changes later would go out as a duplicate only, which TCP or Nezha drops.
 *
 * A page costs less than its copy, but each piece costs some system calls: it pays for blocks of 192 KiB and more (doc/design.md). */
#ifndef NEZHA_RAILS_LEND_H
#define NEZHA_RAILS_LEND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NEZHA_LEND_LEAST (192u << 10)   /* bytes for which it pays */

/* All zero at the beginning; one for each engine, whose lock is held. */
struct nezha_lender {
	int from, to;           /* the pipe's ends, while it is open */
	size_t piece;           /* bytes that go through it at once */
	bool open;
	bool refused;           /* this system does not do it, or has no large pipe for this user */
};

/* Hands some of the `bytes` (> 0) at `payload` to the nonblocking socket.  Returns how many, or -1 with errno: EOPNOTSUPP if they have
 * to be copied (this memory cannot be lent, or no memory here; nothing was handed over), else as send(2).  Raises no SIGPIPE. */
ssize_t nezha_lend(struct nezha_lender *lender, int socket, const void *payload, size_t bytes);

void nezha_lender_close(struct nezha_lender *lender);

#endif
