/* SPDX-License-Identifier: BSD-3-Clause
 * When the tcp rail reads what has come of a block.  The block is of use only when it has come whole, but each packet wakes the
 * process up, and each time that something is read the kernel acknowledges.
 *
 * - Of a block of up to 64 KiB the kernel is asked to wait for the end (SO_RCVLOWAT).  It then acknowledges each packet at once.  Some kernels
 *   before 5.7 do not wake up who waits for more than the receive buffer holds of short packets; so after some 20 ms it is read all the same.
 * - Of a longer one what has come is left unread until it is a piece of up to 64 KiB, or the rest: so the kernel acknowledges
 *   the piece as one, for one packet in four of 16 KiB, and the other direction has the room.  The sender says in the
 *   block's record how long a piece may be (0: none): no longer than half of what it may send without an acknowledgement,
 *   and what its path carries in 2 ms.  The receive buffer has to hold several pieces; and what has lain for
 *   some ms is read whatever it is.
 *
 * The engine's lock is held in all functions. */
#ifndef NEZHA_RAILS_AWAIT_H
#define NEZHA_RAILS_AWAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/wire.h"

struct nezha_path;
struct nezha_inpath;

struct nezha_await {
	int awaited;      /* bytes: so many have to come before the kernel says so, if not the end */
	uint32_t room;    /* bytes: how long a piece the receive buffer allows; 0: not known yet */
	uint64_t until;   /* ns: when what is left unread is read whatever it is; 0: nothing is, as far as is known */
	uint32_t failed;  /* blocks in a row of which a piece did not come in time */
	uint32_t without; /* blocks to come that are read without pieces, therefore */
};

/* The sender's: how long the pieces of a block of `length` bytes may be that begins on the path at time `now`; 0: it has none. */
uint32_t nezha_await_piece(const struct nezha_path *path, uint32_t length, uint64_t now);

/* Of a connection that has not received yet. */
void nezha_await_begin(struct nezha_await *await);

/* A block's record has come. */
void nezha_await_block(struct nezha_inpath *inpath);

/* Before the connection is read: whether what there is of it stays there for now. */
bool nezha_await_leaves(struct nezha_inpath *inpath);

/* What there was of the connection has been read: tells the kernel what has to come before the engine hears of it again.
 * NEZHA_ERR_CLOSED. */
int nezha_await(struct nezha_inpath *inpath);

/* Whether what is left unread has lain too long, at time `now`: it is to be read without an event. */
bool nezha_await_is_over(const struct nezha_await *await, uint64_t now);

#endif
