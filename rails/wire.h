/* SPDX-License-Identifier: BSD-3-Clause
 * What goes over a connection of a link: records of 40 bytes, some followed by payload.
 *
 * Forward (from a rank to its right neighbour): PARTIAL, FINAL (payload: the block), PROBE (payload: zeros
 * that are measured and dropped), SYNC.  Backward on the same connection: GRANT, DONE, WANT, ACK, LOST, BROKEN, AGAIN.
 * On a control connection: QUERY forward, STATE backward, BACK both ways.
 * Fields are in the host's byte order: the hello (hello.h) refuses a peer of another kind.
 *
 * With NEZHA_CHECK=crc a record bears its own CRC32C and that of its payload.  They are apart since a record must be
 * believed before the first byte of its payload is put anywhere. */
#ifndef NEZHA_RAILS_WIRE_H
#define NEZHA_RAILS_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define NEZHA_WIRE_MAGIC 0x5a4eu
#define NEZHA_NO_ORIGIN UINT32_MAX
#define NEZHA_PIECE_MOST 65536u
#define NEZHA_NOBODY UINT32_MAX      /* no process */

enum nezha_wire_kind {
	NEZHA_WIRE_PARTIAL = 1,  /* a block on its way to its owner */
	NEZHA_WIRE_FINAL,        /* a finished block on its way around */
	NEZHA_WIRE_PROBE,        /* length bytes to be dropped; `block` is 1 on the last one */
	NEZHA_WIRE_SYNC,         /* a path was lost: say again what you have granted, done and want.  `block`: 1 + the receiver's
	                          * rail of that path (0: none is named), `op`: which connection it was */
	NEZHA_WIRE_GRANT,        /* the sender of this has entered op `op` of `team`, and takes the partials of its first `block` blocks */
	NEZHA_WIRE_DONE,         /* ... has every final block of it */
	NEZHA_WIRE_WANT,         /* ... lacks `block`, which a collective rail failed to finish */
	NEZHA_WIRE_ACK,          /* `team` bytes of this connection have been taken in */
	NEZHA_WIRE_LOST,         /* the sender of this has given up connection `op` over its rail `block`, of which `team` bytes
	                          * were taken in */
	NEZHA_WIRE_QUERY,        /* what do you know of `team`? */
	NEZHA_WIRE_STATE,        /* entered `op`, finished `block`; `origin` is enum nezha_wire_end */
	NEZHA_WIRE_BROKEN,       /* no call of the team can be finished any more: process `op` has found out that process
	                          * `block` is lost, or (NEZHA_NOBODY) that something else is wrong */
	NEZHA_WIRE_AGAIN,        /* `block` of `op` came with a wrong payload, as PARTIAL or FINAL (`origin`): send it again */
	NEZHA_WIRE_BACK,         /* rail `block`, by the numbers of the right one of the two, has its carrier back at the sender's end */
};

/* What has become of the team that a STATE is about. */
enum nezha_wire_end {
	NEZHA_WIRE_LIVES,
	NEZHA_WIRE_GONE,         /* it was freed there: every call of it is finished */
	NEZHA_WIRE_FELL,         /* it is broken there; `op` and `block` are those of BROKEN */
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
	uint32_t payload_crc;  /* PARTIAL, FINAL: CRC32C of the payload; 0 without NEZHA_CHECK=crc */
	uint32_t crc;       /* CRC32C of the record with 0 in this place; 0 without NEZHA_CHECK=crc */
	uint32_t piece;     /* PARTIAL, FINAL: so many bytes of the payload may lie unread at the receiver (await.h); else 0 */
};
_Static_assert(sizeof(struct nezha_wire) == 40, "a record is 40 bytes");

enum nezha_wire_channel { NEZHA_CHANNEL_FORWARD, NEZHA_CHANNEL_BACKWARD, NEZHA_CHANNEL_QUERY, NEZHA_CHANNEL_STATE };

/* Whether the record is one that may come on the channel, with a length that its kind allows, and with the right CRC
 * if `crc`.  Nothing else of a record may be used before this.  Returns NEZHA_OK or NEZHA_ERR_PROTOCOL. */
int nezha_wire_check(const struct nezha_wire *record, enum nezha_wire_channel channel, bool crc);

/* Gives the record, which is complete, its CRC; nothing unless `crc`. */
void nezha_wire_seal(struct nezha_wire *record, bool crc);

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
