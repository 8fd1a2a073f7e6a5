/* SPDX-License-Identifier: BSD-3-Clause
 * One allreduce in progress on one rank: the blocks' states and the moves of the block ring (doc/design.md, "The block ring").
 *
 * Block b has the owner b mod N.  Its partial starts at rank owner+1 and goes right, every rank folding its own
 * contribution in, to the owner, which makes it final; the final goes right, to the owner's left neighbour.  There are no
 * global steps.  All functions: the engine's lock is held. */
#ifndef NEZHA_RAILS_CALL_H
#define NEZHA_RAILS_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rails/rail.h"
#include "rails/reduce.h"
#include "tuning/grid.h"
#include "tuning/model.h"

struct nezha_team;

/* Values of a note: the model's, then the collective rails'. */
#define NEZHA_CALL_VALUES (NEZHA_NOTE_VALUES + NEZHA_RAIL_VALUES)

/* One block to be sent in one phase.  It is in one list at most. */
enum nezha_tx_where {
	NEZHA_TX_IDLE,      /* not yet wanted, or taken in by the peer */
	NEZHA_TX_HELD,      /* the neighbour has not entered the call, or does not take the block yet: team->held */
	NEZHA_TX_QUEUED,    /* link->queue */
	NEZHA_TX_SENDING,   /* path->current */
	NEZHA_TX_SENT,      /* path->sent: handed over, not known to have been taken in */
};

struct nezha_tx {
	TAILQ_ENTRY(nezha_tx) entry;
	struct nezha_team *team;
	uint64_t end;       /* SENT: taken in once the peer has taken in so many bytes of the connection */
	uint32_t block, length, origin;
	uint8_t kind;       /* NEZHA_WIRE_PARTIAL or _FINAL */
	uint8_t where;      /* enum nezha_tx_where */
	uint8_t wrong;      /* how often it came wrong, up to 255 */
	bool counted;       /* its bytes have left link->expected */
};
TAILQ_HEAD(nezha_tx_list, nezha_tx);

enum nezha_block_state {
	NEZHA_BLOCK_FOLDED = 1,   /* its partial has come and contains our contribution */
	NEZHA_BLOCK_FINAL = 2,    /* its result lies in the receive buffer */
	NEZHA_BLOCK_LANDING = 4,  /* its final is arriving: nothing else may write there */
	NEZHA_BLOCK_ON_RAIL = 8,  /* a collective rail has it */
	NEZHA_BLOCK_RETURNED = 16,/* a collective rail gave it back */
	NEZHA_BLOCK_WANTED = 32,  /* the right neighbour lacks its final */
};

/* Who makes blocks final: the links; from NEZHA_SIDE_RAIL on, the team's collective rails. */
enum { NEZHA_SIDE_LINKS, NEZHA_SIDE_RAIL, NEZHA_SIDES = NEZHA_SIDE_RAIL + NEZHA_COLLECTIVES_MAX };

struct nezha_call {
	struct nezha_team *team;
	bool active;
	uint32_t op;              /* sequence number within the team */
	uint32_t rails;           /* bit r: our rail r may carry its blocks; while one of these is up, no other does */
	uint32_t spare_rails;     /* those that may, too, once the collective rail has handed blocks back */
	struct nezha_grid grid;
	enum nezha_type type;
	enum nezha_op reduction;
	nezha_reduce_fn *kernel;
	uint32_t element;         /* bytes, of the vector */
	const char *sendbuf;
	char *recvbuf;
	bool noted;               /* one more block after the grid's, folded with MIN: */
	uint64_t note[NEZHA_CALL_VALUES], note_own[NEZHA_CALL_VALUES];  /* what all, what this rank contributes to it */
	uint32_t waiting[NEZHA_SIDES];      /* blocks of each side that are not final, but for the note */
	uint64_t began, ended[NEZHA_SIDES]; /* ns: when it began, when each side's blocks were final (0: not yet, or it had none) */
	uint32_t finals;          /* blocks that are FINAL */
	uint32_t leading;         /* blocks from the first on of which that is known */
	bool gradual;             /* the contribution comes to be there while the call is in progress: */
	uint32_t ready, offered;  /* ... of so many blocks, from the first on, it is; the left neighbour was told of so many */
	bool done_sent;           /* the left neighbour was told so */
	uint32_t room;            /* blocks that the arrays below are made for */
	uint8_t *state;           /* per block: enum nezha_block_state bits */
	uint32_t *folded;         /* per block: bytes of the arriving partial already folded */
	struct nezha_tx *tx;      /* two per block: [2b] partial, [2b+1] final */
};

/* Prepares for a call; allocates only if it has more blocks than any before.  note: NEZHA_CALL_VALUES numbers of which
 * each becomes the least of all ranks (in call->note), or NULL, as on the other ranks.  NEZHA_ERR_NOMEM. */
int nezha_call_begin(struct nezha_call *call, const struct nezha_grid *grid, enum nezha_type type, enum nezha_op op,
                     const void *sendbuf, void *recvbuf, const uint64_t *note);

/* Blocks [first, first + count) are those of the team's i-th collective rail. */
void nezha_call_share(struct nezha_call *call, int i, uint32_t first, uint32_t count);

/* Whose block it is now. */
int nezha_call_side(const struct nezha_call *call, uint32_t b);

/* How many blocks go around, the note included. */
static inline uint32_t nezha_call_blocks(const struct nezha_call *call)
{
	return call->grid.blocks + call->noted;
}

static inline bool nezha_call_is_note(const struct nezha_call *call, uint32_t b)
{
	return b >= call->grid.blocks;
}

/* Bytes of block b, and of one of its elements; where its result comes to lie. */
uint32_t nezha_call_length(const struct nezha_call *call, uint32_t b);
uint32_t nezha_call_element(const struct nezha_call *call, uint32_t b);
char *nezha_call_place(const struct nezha_call *call, uint32_t b);

/* How many bytes of the receive buffer, from the first on, are final. */
uint64_t nezha_call_final_bytes(struct nezha_call *call);

/* Sends off the blocks that begin here, all but those that are ON_RAIL; of a gradual call those that are ready. */
void nezha_call_start(struct nezha_call *call);

/* After nezha_call_begin: the call is a gradual one, of which `bytes` are ready. */
void nezha_call_be_gradual(struct nezha_call *call, uint64_t bytes);

/* `bytes` of it, never fewer than before, are ready: sends off what begins here.  False: no further block is. */
bool nezha_call_make_ready(struct nezha_call *call, uint64_t bytes);

/* Whether this rank's contribution to b is there. */
static inline bool nezha_call_is_ready(const struct nezha_call *call, uint32_t b)
{
	return b < call->ready || nezha_call_is_note(call, b);
}

/* Payload bytes that this rank sends in the call, if no rail fails. */
uint64_t nezha_call_bytes(const struct nezha_call *call);

/* Block `b`'s partial is folded, or its final has landed. */
void nezha_call_folded(struct nezha_call *call, uint32_t b);
void nezha_call_landed(struct nezha_call *call, uint32_t b, uint32_t origin);

/* Folds bytes [from, from + n) of block b's incoming partial (n a multiple of the element). */
void nezha_call_fold(struct nezha_call *call, uint32_t b, uint32_t from, const void *partial, uint32_t n);

/* The whole of block b's partial has come: folds what of it is not yet folded. */
void nezha_call_fold_rest(struct nezha_call *call, uint32_t b, const char *partial);

/* A collective rail has made b final, or gives it back. */
void nezha_call_final(struct nezha_call *call, uint32_t b);
void nezha_call_return(struct nezha_call *call, uint32_t b);

/* The right neighbour asks for b. */
void nezha_call_wanted(struct nezha_call *call, uint32_t b);

/* Tells the left neighbour again which blocks are missed, after a lost path. */
void nezha_call_want_again(struct nezha_call *call);

/* Whether sending it still serves anyone. */
bool nezha_call_tx_useful(const struct nezha_call *call, const struct nezha_tx *tx);

/* Where the bytes of a block to be sent lie. */
const char *nezha_call_tx_payload(const struct nezha_call *call, const struct nezha_tx *tx);

/* How many more hops the block goes after it has reached the right neighbour. */
int nezha_call_hops_left(const struct nezha_call *call, const struct nezha_tx *tx);

void nezha_call_free(struct nezha_call *call);

#endif
