/* SPDX-License-Identifier: BSD-3-Clause
 * What goes over a connection of a link: records of 32 bytes, some followed by payload.
 *
 * Forward (from a rank to its right neighbour): PARTIAL, FINAL (payload: the block), PROBE (payload: zeros
 * that are measured and dropped), SYNC.  Backward on the same connection: GRANT, DONE, WANT, ACK.
 * On a control connection: QUERY forward, STATE backward.
 * Fields are in the host's byte order: the hello (hello.h) refuses a peer of another kind. */
#ifndef NEZHA_RAILS_WIRE_H
#define NEZHA_RAILS_WIRE_H

#include <stdint.h>

#define NEZHA_WIRE_MAGIC 0x5a4eu
#define NEZHA_NO_ORIGIN UINT32_MAX

enum nezha_wire_kind {
	NEZHA_WIRE_PARTIAL = 1,  /* a block on its way to its owner */
	NEZHA_WIRE_FINAL,        /* a finished block on its way around */
	NEZHA_WIRE_PROBE,        /* length bytes to be dropped; `block` is 1 on the last one */
	NEZHA_WIRE_SYNC,         /* a path was lost: say again what you have granted, done and want */
	NEZHA_WIRE_GRANT,        /* the sender of this has entered op `op` of `team` */
	NEZHA_WIRE_DONE,         /* ... has every final block of it */
	NEZHA_WIRE_WANT,         /* ... lacks `block`, which a collective rail failed to finish */
	NEZHA_WIRE_ACK,          /* `team` bytes of this connection have been taken in */
	NEZHA_WIRE_QUERY,        /* what do you know of `team`? */
	NEZHA_WIRE_STATE,        /* entered `op`, finished `block`; `origin` is 1 if the team is gone */
};

struct nezha_wire {
	uint16_t magic;
	uint8_t kind;
	uint8_t zero;
	uint32_t length;    /* bytes of payload that follow */
	uint64_t team;
	uint32_t op;        /* sequence number within the team, modulo 2^32 */
	uint32_t block;
	uint32_t origin;    /* FINAL: the rank from which it goes around, ending at that rank's left neighbour,
	                     * or NEZHA_NO_ORIGIN: it goes on only to those who WANT it */
	uint32_t reserved;  /* 0 */
};
_Static_assert(sizeof(struct nezha_wire) == 32, "a record is 32 bytes");

enum nezha_wire_channel { NEZHA_CHANNEL_FORWARD, NEZHA_CHANNEL_BACKWARD, NEZHA_CHANNEL_QUERY, NEZHA_CHANNEL_STATE };

/* Whether the record is one that may come on the channel, with a length that its kind allows.  Nothing else of
 * a record may be used before this.  Returns NEZHA_OK or NEZHA_ERR_PROTOCOL. */
int nezha_wire_check(const struct nezha_wire *record, enum nezha_wire_channel channel);

static inline struct nezha_wire nezha_wire_make(enum nezha_wire_kind kind, uint64_t team, uint32_t op)
{
	return (struct nezha_wire){ .magic = NEZHA_WIRE_MAGIC, .kind = kind, .team = team, .op = op };
}

/* Sequence numbers wrap: > 0 if a comes after b. */
static inline int32_t nezha_seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

#endif
