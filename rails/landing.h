/* SPDX-License-Identifier: BSD-3-Clause
 * Where the payload of an arriving block goes, and how far it has come.  One landing per receiving end.  A stream
 * transport asks room -> reads into it -> advance, until done.
 *
 * A partial is folded as it arrives, straight into the receive buffer; with MPI_IN_PLACE that destroys the own contribution, so the call keeps
 * for each block how far it was folded, and the copy that comes again over another path goes on from there.
 *
 * With NEZHA_CHECK=crc a partial lands in a store first, and is folded when the whole of it was verified: folding cannot be
 * undone.  A final needs no store: what is wrong in the receive buffer is overwritten when it comes again.  Nothing is
 * passed on before it was verified. */
#ifndef NEZHA_RAILS_LANDING_H
#define NEZHA_RAILS_LANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_SCRATCH (256u << 10)      /* bytes of a receiving end's scratch buffer: each reading costs an acknowledgement, and what was
                                         * read shall still be in the processor's cache when it is folded */

enum nezha_landing_mode {
	NEZHA_LAND_DROP,    /* a duplicate, a probe, or nobody wants it any more */
	NEZHA_LAND_FINAL,   /* straight into the receive buffer */
	NEZHA_LAND_FOLD,    /* through the scratch buffer */
	NEZHA_LAND_STORE,   /* into the receiving end's store, to be verified and then folded */
	NEZHA_LAND_EAGER,   /* into the team's store: this rank has not entered the call yet, or has no contribution yet */
};

struct nezha_team;

struct nezha_landing {
	enum nezha_landing_mode mode;
	struct nezha_team *team;    /* NULL if dropped */
	uint32_t op, block, origin;
	uint8_t kind;               /* enum nezha_wire_kind */
	uint32_t length, done;      /* bytes */
	uint32_t carry;             /* FOLD: bytes of an incomplete element at the head of the scratch */
	uint32_t crc;               /* of the payload, as the record says */
	char *base;                 /* FINAL, STORE, EAGER: where byte 0 goes */
	uint64_t began;             /* ns; only with a timeline */
	char *scratch;              /* NEZHA_SCRATCH bytes, the receiving end's */
};

/* Turns to dropping if another path, or the other phase, has made the rest superfluous. */
void nezha_landing_check(struct nezha_landing *landing);

/* The next piece of memory to fill: sets *at, returns its size (> 0 while done < length). */
size_t nezha_landing_room(struct nezha_landing *landing, void **at);

/* `n` bytes (<= what room said) have been written there. */
void nezha_landing_advance(struct nezha_landing *landing, size_t n);

/* The next `n` bytes (<= length - done) of the payload, out of memory of the rail's, aligned for any element: instead of
 * _room and _advance. */
void nezha_landing_put(struct nezha_landing *landing, const char *data, size_t n);

/* The call or the team ends: the rest of the payload is dropped, user memory is not touched again. */
static inline void nezha_landing_drop(struct nezha_landing *landing)
{
	landing->mode = NEZHA_LAND_DROP;
	landing->team = NULL;
}

#endif
