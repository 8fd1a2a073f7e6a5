/* SPDX-License-Identifier: BSD-3-Clause
 * What the aggregation daemon and its XDP program (ina_xdp.bpf.c) share: the maps' entries, and who does what.
 *
 * The program folds the chunks of a session in the kernel where the order of folding cannot be told from the result:
 * integers of 4 and 8 bytes.  The daemon does all else, and tells the program of its sessions.  Which of the two does a chunk
 * follows from its type and operation alone. */
#ifndef NEZHA_RAILS_INA_XDP_H
#define NEZHA_RAILS_INA_XDP_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "rails/ina_wire.h"

#define NEZHA_XDP_CHUNK 1440             /* bytes: the most of a chunk, what fits a packet of 1500 bytes */
#define NEZHA_XDP_PORTS 256              /* the most devices */

/* Whether the program folds it: any order gives the same bits. */
static inline bool nezha_xdp_folds(uint8_t type, uint8_t op)
{
	return type >= NEZHA_INT32 && type <= NEZHA_UINT64 &&
	       (op <= NEZHA_MAX || (op >= NEZHA_BAND && op <= NEZHA_BXOR));
}

struct nezha_xdp_member {
	uint32_t address;                /* network byte order, like all below that are on the wire */
	uint16_t port;
	uint16_t zero;
};

/* A session, by its token. */
struct nezha_xdp_session {
	uint32_t base;                   /* its first version of 2 * window */
	uint32_t window, ranks, chunk;   /* as in the welcome */
	uint32_t address, group;         /* the aggregator's, and where results go */
	uint16_t port, group_port;
	uint32_t zero;
	struct nezha_xdp_member members[NEZHA_INA_RANKS_MAX];
};

/* As in ina_slots.h; the lock guards all of it, but for the sum of a complete one, which stays. */
struct nezha_xdp_version {
	struct bpf_spin_lock lock;
	uint32_t used, complete;         /* complete: a flag of its own */
	uint32_t count;                  /* contributions */
	struct nezha_ina_header header;  /* of its chunk, as the first rank said; its token is the owner's, also if unused */
	uint64_t in[NEZHA_INA_RANKS_MAX / 64];
	uint64_t sum[NEZHA_XDP_CHUNK / 8];
};

/* Counted on each core. */
struct nezha_xdp_counts {
	uint64_t packets, bytes, results, again, outside;   /* as in struct nezha_aggd_stats */
	uint64_t passed;                                    /* packets of its sessions that are left to the daemon */
};

/* Whether a contribution is to the chunk that the version holds. */
static inline bool nezha_xdp_agrees(const struct nezha_ina_header *first, const struct nezha_ina_header *header)
{
	return first->call == header->call && first->block == header->block && first->type == header->type &&
	       first->op == header->op && first->length == header->length;
}

#endif
