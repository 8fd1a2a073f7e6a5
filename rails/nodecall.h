/* SPDX-License-Identifier: BSD-3-Clause
 * One allreduce within a node, on one of its ranks: the contributions go through shared memory (node.h) to the carriers of
 * their pieces, which fold them in the order of the ranks; something else makes a carrier's sums final (the rails), in the
 * carrier's receive buffer; the results go through shared memory to all.
 *
 * Nothing in here waits: each rank makes moves while there is one, of a cell's length, so that they can be fitted in between
 * other work.  All ranks agree on the numbers of the cells: cell j of piece c is number j * pieces + c of the call. */
#ifndef NEZHA_RAILS_NODECALL_H
#define NEZHA_RAILS_NODECALL_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/node.h"
#include "rails/pieces.h"
#include "rails/reduce.h"

struct nezha_nodecall {
	struct nezha_node *node;
	const struct nezha_pieces *pieces;
	nezha_reduce_fn *kernel;
	uint32_t element;        /* bytes */
	const char *sendbuf;
	char *recvbuf;
	bool noted;
	bool past;               /* what is copied goes past the caches */
	bool carrier;            /* piece number node->local is this rank's */
	uint32_t total;          /* cells of the call */
	uint32_t contributed;    /* ... that this rank has contributed to, its own included */
	uint32_t folded, put;    /* cells of the own piece whose sum, whose result has gone to the receive buffer, to the others */
	int seen;                /* ranks whose contribution to the cell to be folded next is there: those before this one */
	int next;                /* the carrier to look at first for results */
	uint32_t missing;        /* results of others that this rank has not collected */
	uint64_t ahead;          /* bytes of the own piece that may be folded by now */
	uint64_t final;          /* bytes of the own piece that are final */
};

/* Begins a call: `pieces` are the same on all ranks of the node and stay until the end.  note: what this rank contributes, NULL:
 * nothing, as on the others. */
void nezha_nodecall_begin(struct nezha_nodecall *call, struct nezha_node *node, const struct nezha_pieces *pieces,
                          nezha_reduce_fn *kernel, uint32_t element, const void *sendbuf, void *recvbuf,
                          const uint64_t *note);

/* Makes one move; false: there is none now. */
bool nezha_nodecall_move(struct nezha_nodecall *call);

/* A carrier: how many bytes of its piece are folded and lie in the receive buffer; that so many of them are final. */
uint64_t nezha_nodecall_folded(const struct nezha_nodecall *call);
void nezha_nodecall_final(struct nezha_nodecall *call, uint64_t bytes);

/* A carrier: no more than so many bytes of its piece, rounded up to a cell, are to be folded for now. */
void nezha_nodecall_hold(struct nezha_nodecall *call, uint64_t bytes);

/* Carrier 0, once something is folded: the least of the node's notes; then, what it is of all nodes.  All, when the call is over:
 * what that was. */
void nezha_nodecall_note(const struct nezha_nodecall *call, uint64_t note[NEZHA_NOTE_VALUES]);
void nezha_nodecall_tell_note(struct nezha_nodecall *call, const uint64_t note[NEZHA_NOTE_VALUES]);
void nezha_nodecall_hear_note(const struct nezha_nodecall *call, uint64_t note[NEZHA_NOTE_VALUES]);

/* Sleeps until there may be a move, for timeout ns at most.  True: it has made one. */
bool nezha_nodecall_wait(struct nezha_nodecall *call, uint64_t timeout);

/* Whether nothing is left to do for this rank; and then it ends. */
bool nezha_nodecall_over(const struct nezha_nodecall *call);
void nezha_nodecall_end(struct nezha_nodecall *call);

#endif
