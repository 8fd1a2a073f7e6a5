/* SPDX-License-Identifier: BSD-3-Clause
 * What a rank and an aggregator (nezha-aggd) say to each other.
 *
 * Over UDP, each packet a header of 32 bytes and a payload: the rank sends DATA, its contribution to one chunk; the
 * aggregator answers with RESULT, the fold of all ranks' contributions (to a group or to each rank), with ALIVE, who is
 * missing, and tries a group with BEACON.
 *
 * Over TCP, records of a fixed size, the control session of a rank:
 *
 *   aggregator -> CHALLENGE   a nonce
 *   rank       -> JOIN        team, rank, its UDP port, proof of the team's key
 *   aggregator -> WELCOME     when all ranks of the team are there; or REFUSED with a reason in words
 *   rank       -> HEARD       whether a BEACON came over the group
 *   aggregator -> READY       all are; by group if all have heard
 *   rank       -> LEAVE       the communicator is freed; the others are told so by the same record
 *   aggregator -> OVER        the session is over for all its ranks, with a reason; as when a rank's connection ends
 *
 * A team is known by an Ed25519 public key made from the job's key, which the aggregator never sees: only the job's
 * processes can sign the nonce, so no stranger joins.  The token of the session (64 random bits) and the sender's address
 * then guard the packets.  What is asked while a call waits (who is missing?) goes over UDP: a lost segment of TCP
 * comes again after 200 ms at the earliest, which is later than an aggregator counts as dead.
 *
 * Fields are in the byte order of the hosts of a job, little endian everywhere Nezha runs; the other order fails the check
 * of the magic number. */
#ifndef NEZHA_RAILS_INA_WIRE_H
#define NEZHA_RAILS_INA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/types.h"

#define NEZHA_INA_PORT 4790
#define NEZHA_INA_MAGIC 0x414eu
#define NEZHA_INA_RECORD_MAGIC 0x43414e5au
#define NEZHA_INA_VERSION 2
#define NEZHA_INA_RANKS_MAX 256
#define NEZHA_INA_WINDOW_MIN 16       /* slots of a session, a power of two */
#define NEZHA_INA_WINDOW_MAX 1024
#define NEZHA_INA_CHUNK_MIN 512       /* bytes of payload, a multiple of 8 */
#define NEZHA_INA_CHUNK_MAX 8192
#define NEZHA_INA_LISTEN_MAX 1000      /* ms */

enum nezha_ina_kind {
	NEZHA_INA_DATA = 1,
	NEZHA_INA_RESULT,
	NEZHA_INA_ALIVE,              /* payload: a bit for each rank, set if its contribution is missing */
	NEZHA_INA_BEACON,
};

#define NEZHA_INA_AGAIN 1u            /* flag of DATA: sent before; an answer is wanted whatever the state */

struct nezha_ina_header {
	uint16_t magic;
	uint8_t version;
	uint8_t kind;                 /* enum nezha_ina_kind */
	uint8_t flags;
	uint8_t type, op;             /* enum nezha_type, nezha_op */
	uint8_t zero;
	uint64_t token;               /* the session's */
	uint32_t seq;                 /* number of the chunk in the session, modulo 2^32, the same on all ranks */
	uint32_t call;                /* the team's sequence number of the call */
	uint32_t block;               /* of the call: gives the order of folding */
	uint16_t length;              /* bytes of payload */
	uint16_t rank;                /* DATA: the sender's; else 0 */
};
_Static_assert(sizeof(struct nezha_ina_header) == 32, "a header is 32 bytes");

struct nezha_ina_missing {
	uint8_t bits[NEZHA_INA_RANKS_MAX / 8];
};

/* Whether the packet of `size` bytes is one that may come from a rank, or from an aggregator.  Nothing of a packet may be
 * used before this.  `packet` may be unaligned; the header is copied to *out.  NEZHA_OK or NEZHA_ERR_PROTOCOL. */
int nezha_ina_check_upward(const void *packet, size_t size, struct nezha_ina_header *out);
int nezha_ina_check_downward(const void *packet, size_t size, struct nezha_ina_header *out);

enum nezha_ina_record_kind {
	NEZHA_INA_CHALLENGE = 1,
	NEZHA_INA_JOIN,
	NEZHA_INA_WELCOME,
	NEZHA_INA_REFUSED,
	NEZHA_INA_HEARD,
	NEZHA_INA_READY,
	NEZHA_INA_LEAVE,
	NEZHA_INA_OVER,
};

#define NEZHA_INA_TEAM_BYTES 32
#define NEZHA_INA_PROOF_BYTES 64
#define NEZHA_INA_NONCE_BYTES 32
#define NEZHA_INA_TEXT_BYTES 128

struct nezha_ina_record {
	uint32_t magic;
	uint8_t version;
	uint8_t kind;                 /* enum nezha_ina_record_kind */
	uint16_t zero;
	union {
		unsigned char nonce[NEZHA_INA_NONCE_BYTES];         /* CHALLENGE */
		struct nezha_ina_join {
			unsigned char team[NEZHA_INA_TEAM_BYTES];   /* the team's public key */
			uint16_t ranks, rank;
			uint16_t port;                              /* UDP, of the address that the session comes from */
			uint16_t chunk;                             /* bytes, the most that this rank can send */
			uint16_t window;                            /* slots wanted */
			uint16_t reserved;                          /* 0 */
			unsigned char proof[NEZHA_INA_PROOF_BYTES]; /* see nezha_ina_prove */
		} join;
		struct nezha_ina_welcome {
			uint64_t token;
			uint64_t epoch;                             /* of the daemon: another one has started anew */
			uint32_t group;                             /* IPv4, network byte order; 0: results come to each rank */
			uint16_t port;                              /* of the group */
			uint16_t chunk, window;                     /* those of the session */
			uint16_t listen;                            /* ms: how long to wait for a BEACON */
		} welcome;
		uint32_t yes;                                       /* HEARD, READY: 1 or 0 */
		char text[NEZHA_INA_TEXT_BYTES];                    /* REFUSED, OVER: printable, ends in NUL */
	};
};
_Static_assert(sizeof(struct nezha_ina_record) == 136, "a record has no holes");

/* Whether the record may come from a rank, or from an aggregator.  NEZHA_OK or NEZHA_ERR_PROTOCOL. */
int nezha_ina_record_check_upward(const struct nezha_ina_record *record);
int nezha_ina_record_check_downward(const struct nezha_ina_record *record);

/* An empty record, and one with a text, which is cut and cleaned as needed. */
void nezha_ina_record_make(enum nezha_ina_record_kind kind, struct nezha_ina_record *out);
void nezha_ina_record_text(enum nezha_ina_record_kind kind, const char *text, struct nezha_ina_record *out);

/* Fills team and proof of a JOIN whose other fields are set: the key pair follows from the job's key (NEZHA_KEY_BYTES)
 * and the team's id; the proof is its signature of the nonce and the join. */
void nezha_ina_prove(const unsigned char *key, uint64_t team, const unsigned char *nonce, struct nezha_ina_join *join);

/* NEZHA_OK: whoever sent the join holds the key of the team that it names. */
int nezha_ina_verify(const unsigned char *nonce, const struct nezha_ina_join *join);

static inline bool nezha_ina_missing_has(const struct nezha_ina_missing *missing, unsigned rank)
{
	return missing->bits[rank / 8] >> rank % 8 & 1;
}

#endif
