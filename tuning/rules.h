/* SPDX-License-Identifier: BSD-3-Clause
 * What a table holds, for those that make it (table.c) and look things up in it (plan.c). */
#ifndef NEZHA_TUNING_RULES_H
#define NEZHA_TUNING_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/plan.h"
#include "tuning/rail_set.h"

/* Bounds on what a table file may ask for; a lookup goes through groups and rules in order. */
#define NEZHA_TABLE_BYTES  (1u << 20)
#define NEZHA_TABLE_GROUPS 128
#define NEZHA_TABLE_RULES  128         /* of one group */
#define NEZHA_TABLE_TEXT   256         /* bytes of a header field */
#define NEZHA_BLOCK_DEFAULT (64u << 10)

/* What a table may say about itself: optional, kept and printed, without influence on a plan; the first four
 * are compared with the job (fingerprint.h). */
#define NEZHA_TABLE_HEADERS(X) X(mpi) X(host) X(topology) X(rails) X(date) X(comment)

enum nezha_table_header {
#define X(name) NEZHA_TABLE_HEADER_##name,
	NEZHA_TABLE_HEADERS(X)
#undef X
	NEZHA_TABLE_HEADER_COUNT
};

struct nezha_rule {
	uint64_t msg_size_min, msg_size_max;   /* bytes, inclusive; UINT64_MAX: no bound */
	enum nezha_algorithm alg;
	enum nezha_reason reason;              /* _RULE, _TUNE (nothing is learnt of these sizes), or for native also _SMALL, _ONE_NODE,
	                                        * _SHARED_NODE */
	uint32_t block;                        /* bytes; 0 if native */
	uint16_t share;                        /* of a mix: the MPI library's part of the vector, from 1 to NEZHA_SHARE_WHOLE - 1; else 0 */
	bool blocking;                         /* of a mix: the library does it by its blocking call, not in nonblocking pieces */
	struct nezha_rail_set rails;           /* what the ring, or a mix's, is restricted to; empty: all */
};

struct nezha_rule_group {
	int comm_size_min, comm_size_max;      /* inclusive; INT_MAX: no bound; so the others */
	int nodes_min, nodes_max;
	int ppn_min, ppn_max;
	int measured, measured_ppn;            /* ranks that nezha-tune measured it with, and how many of them on a
	                                        * node; 0: not told */
	size_t rule_count;
	struct nezha_rule *rules;              /* owned */
};

struct nezha_table {
	char *header[NEZHA_TABLE_HEADER_COUNT];  /* owned; NULL: not given */
	size_t group_count;
	struct nezha_rule_group *groups;       /* owned */
};

/* What decides at this scale, and in it: the first that fits (table.h); NULL: none does. */
const struct nezha_rule_group *nezha_rule_group_find(const struct nezha_table *table, const struct nezha_scale *scale);
const struct nezha_rule *nezha_rule_find(const struct nezha_rule_group *group, uint64_t bytes);

#endif
