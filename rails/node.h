/* SPDX-License-Identifier: BSD-3-Clause
 * The memory that the ranks of a communicator on one node share: made by the first of them, anonymous (a memfd, so nothing
 * can be left behind), of bounded size, gone with the last mapping.  What passes through it and when is nodecall.h's; here is
 * where things lie, and how a rank sleeps until another one has something for it.
 *
 *   in      NEZHA_NODE_IN slots, used in turn; each has room for one cell of every rank: the contributions
 *   out     NEZHA_NODE_OUT slots of one cell for each carrier, used in turn: the results
 *
 * All counters only grow, over all calls.  They may be read by any rank, and are written by the one that they belong to. */
#ifndef NEZHA_RAILS_NODE_H
#define NEZHA_RAILS_NODE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/model.h"

#define NEZHA_NODE_IN 8
#define NEZHA_NODE_OUT 4
#define NEZHA_NODE_RANKS_MAX 256     /* on one node */
#define NEZHA_NODE_LINE 64           /* bytes: what one rank writes and another one reads does not share a line */

/* What a rank may be asleep for. */
enum nezha_node_want {
	NEZHA_NODE_WANT_SLOT = 1,        /* a free slot for its contribution */
	NEZHA_NODE_WANT_INPUT = 2,       /* a carrier: contributions to fold */
	NEZHA_NODE_WANT_RESULT = 4,      /* results to collect */
	NEZHA_NODE_WANT_ROOM = 8,        /* a carrier: a free slot for a result */
};

/* In shared memory: one for each rank. */
struct nezha_node_rank {
	alignas(NEZHA_NODE_LINE) _Atomic uint64_t in;  /* cells that it has contributed */
	alignas(NEZHA_NODE_LINE) _Atomic uint32_t bell;    /* what it sleeps on */
	_Atomic uint32_t wants;          /* enum nezha_node_want bits; 0: it is awake */
	_Atomic int32_t pid;             /* 0: has not come yet */
	alignas(NEZHA_NODE_LINE) uint64_t note[NEZHA_NOTE_VALUES];  /* its own, of the call it is in */
	uint64_t bytes;                  /* of the vector of that call, */
	uint32_t element;                /* ... and of an element */
};

/* In shared memory: a counter alone in its line. */
struct nezha_node_count {
	alignas(NEZHA_NODE_LINE) _Atomic uint64_t value;
};

/* One process's view. */
struct nezha_node {
	int ranks, carriers, local;      /* `local` is this process's place among the ranks */
	uint32_t cell;                   /* bytes */
	size_t length;                   /* of the mapping */
	int fd;                          /* the maker's until nezha_node_seal; else -1 */
	char *base;                      /* the mapping, and what lies in it: */
	_Atomic uint32_t *failed;        /* a call has failed on one rank: none can go on */
	_Atomic uint64_t *told;          /* calls with a note of which that is known: */
	uint64_t *note;                  /* NEZHA_NOTE_VALUES: of all nodes */
	struct nezha_node_rank *rank;    /* [ranks] */
	struct nezha_node_count *folded; /* [NEZHA_NODE_IN]: 1 + the number of the last cell that was folded in the slot */
	struct nezha_node_count *out;    /* [carriers]: cells whose results it has put out */
	struct nezha_node_count *taken;  /* [ranks * carriers]: cells of carrier c that rank r has collected */
	char *in_data, *out_data;
	uint64_t notes;                  /* of earlier calls: those with a note */
	uint64_t in_base;                /* ... cells contributed */
	uint64_t *out_base;              /* ... owned, [carriers]: cells put out */
	uint32_t *collected;             /* owned, [carriers]: room for a call */
};

/* What the maker tells the others. */
struct nezha_node_offer {
	int32_t pid, fd;
	char name[56];                   /* unguessable; the kernel's name of the memory, by which the others know it */
};

/* Bytes of a cell, and of the whole, of which only what is used takes memory.  A pure function of its arguments; 0: too many
 * ranks. */
uint32_t nezha_node_cell(int ranks, int carriers);
size_t nezha_node_length(int ranks, int carriers, uint32_t cell);

/* By the node's first rank; `cell` may be any number of bytes that is a multiple of 4 KiB, nezha_node_cell's or less.
 * NEZHA_ERR_NOMEM; NEZHA_ERR_SYSTEM (logged at info: the communicator stays with the MPI library); errno says why. */
int nezha_node_make(int ranks, int carriers, uint32_t cell, struct nezha_node_offer *offer, struct nezha_node **out);

/* By the other ones, with the same numbers, while the maker has not sealed it.  Errors as above. */
int nezha_node_join(const struct nezha_node_offer *offer, int ranks, int carriers, uint32_t cell, int local,
                    struct nezha_node **out);

/* All have joined: nobody else can.  For all, any number of times. */
void nezha_node_seal(struct nezha_node *node);

/* Unmaps; the others go on with theirs.  NULL is allowed. */
void nezha_node_free(struct nezha_node *node);

/* Where rank r's contribution lies in a slot, where carrier c's result does. */
static inline char *nezha_node_in(const struct nezha_node *node, uint64_t slot, int r)
{
	return node->in_data + ((size_t)slot * (size_t)node->ranks + (size_t)r) * node->cell;
}

static inline char *nezha_node_out(const struct nezha_node *node, int c, uint64_t slot)
{
	return node->out_data + ((size_t)c * NEZHA_NODE_OUT + (size_t)slot) * node->cell;
}

static inline _Atomic uint64_t *nezha_node_taken(const struct nezha_node *node, int r, int c)
{
	return &node->taken[(size_t)r * (size_t)node->carriers + (size_t)c].value;
}

/* There is something for rank r that it may be asleep for; after what it waits for was stored. */
void nezha_node_wake(struct nezha_node *node, int r, enum nezha_node_want what);
void nezha_node_wake_all(struct nezha_node *node, enum nezha_node_want what);

/* In two steps, so that no wake is lost: the rank says what it wants, looks once more, and then sleeps, for timeout ns at most,
 * or stays awake (timeout 0). */
uint32_t nezha_node_doze(struct nezha_node *node, uint32_t wants);
void nezha_node_sleep(struct nezha_node *node, uint32_t bell, uint64_t timeout);

/* Ends the call that the ranks are in, and all later ones, with an error. */
void nezha_node_fail(struct nezha_node *node);

/* A rank whose process is no more, -1: none is known. */
int nezha_node_gone(const struct nezha_node *node);

#endif
