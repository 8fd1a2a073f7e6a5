/* SPDX-License-Identifier: BSD-3-Clause
 * The plan: what one call does.  A small value, computed from data that is identical on all
 * ranks (scale, bytes, table), so that all ranks take the same path without talking. */
#ifndef NEZHA_TUNING_PLAN_H
#define NEZHA_TUNING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nezha_rail_set;
struct nezha_table;

/* The scale of a communicator, the same on all of its ranks. */
struct nezha_scale {
	int ranks;   /* >= 1 */
	int nodes;   /* >= 1: hosts that its ranks run on */
	int ppn;     /* >= 1: the most ranks of it on one host */
};

/* Why a call went where it went: name for programs (JSON), text for people.  A plan uses only
 * RULE to NO_RULE and COUNT; the others are pmpi's and the team's. */
#define NEZHA_REASONS(X) \
	X(RULE,         "rule",         "the table's rule") \
	X(TUNE,         "tune",         "NEZHA_TUNE's rule") \
	X(SMALL,        "small",        "too small for the rails to pay") \
	X(ONE_NODE,     "one-node",     "all ranks are on one node") \
	X(SHARED_NODE,  "shared-node",  "several ranks on a node, which the table does not know") \
	X(NO_RULE,      "no-rule",      "no rule of the table fits") \
	X(LEARNT,       "learnt",       "measured: the fastest, or tried: the MPI library, or both") \
	X(DISABLED,     "disabled",     "switched off by NEZHA_ENABLE, Pcontrol or the communicator's info") \
	X(NO_RAIL,      "no-rail",      "no rail joins all ranks") \
	X(OPEN_FAILED,  "open-failed",  "no rail could be opened: a firewall, or want of descriptors or memory") \
	X(TYPE,         "type",         "the datatype is not one that Nezha reduces") \
	X(OP,           "op",           "the operation is not one that Nezha does on this type") \
	X(COUNT,        "count",        "the count is zero, negative or too large") \
	X(BUFFER,       "buffer",       "buffers that are null, overlap or lie on a GPU") \
	X(COMM,         "comm",         \
	  "the communicator is null, self, an intercommunicator or reaches outside COMM_WORLD") \
	X(LIBRARY,      "library",      "called from inside the MPI library") \
	X(STATE,        "state",        "MPI is not initialised, is finalised, or this is a forked child")

enum nezha_reason {
#define X(id, name, text) NEZHA_REASON_##id,
	NEZHA_REASONS(X)
#undef X
	NEZHA_REASONS_END    /* how many there are */
};

const char *nezha_reason_name(enum nezha_reason reason);   /* "small"; static storage */
const char *nezha_reason_text(enum nezha_reason reason);   /* for people; static storage */

enum nezha_algorithm {
	NEZHA_ALG_NATIVE,    /* hand the call to the MPI library */
	NEZHA_ALG_RING,      /* the block ring over the rails in common */
	NEZHA_ALG_MIX,       /* both at once, each with its share */
	NEZHA_ALG_COUNT
};

const char *nezha_algorithm_name(enum nezha_algorithm alg);  /* "native", "ring", "mix" */

#define NEZHA_SHARE_WHOLE 1000u   /* the library's share of a mix is told in so many parts of the vector */

struct nezha_plan {
	enum nezha_algorithm alg;
	enum nezha_reason reason;
	uint32_t block;          /* bytes; 0 if native */
	uint64_t native;         /* of a mix: bytes, from the first on, that the MPI library reduces; else 0 */
	bool nonblocking;        /* of a mix: the library does them in nonblocking pieces (pmpi/nonblocking.h) */
	uint16_t share;          /* of a mix by a rule: what that says, from which `native` follows (rules.h); 0: it was learnt */
	const struct nezha_rail_set *rails;  /* what the ring is restricted to, the table's; NULL: nothing */
};

/* The plan for `bytes` at `scale`: the first rule of `table` that matches (table.h).  Never fails: what no
 * rule matches goes native (NEZHA_REASON_NO_RULE), and so do an empty vector and one that
 * has too many blocks (NEZHA_REASON_COUNT).  A plan that is not native always makes a grid.  Pure,
 * allocation-free, callable from any thread. */
void nezha_plan_make(const struct nezha_table *table, const struct nezha_scale *scale,
                     uint64_t bytes, struct nezha_plan *out);

/* The largest T such that every call of fewer than T bytes at `scale` goes native: what the
 * call path compares with first.  UINT64_MAX if all do. */
uint64_t nezha_plan_native_below(const struct nezha_table *table, const struct nezha_scale *scale);

/* Whether two plans do the same, for the same reason. */
bool nezha_plan_equal(const struct nezha_plan *a, const struct nezha_plan *b);

/* Prints "ring, blocks of 64 KiB (the table's rule)", "ring, blocks of 64 KiB, tcp:10.1.0.0/16 (the table's rule)" or
 * "mix, 61.3 % native, blocks of 64 KiB (the table's rule)" into buf, cut to len. */
void nezha_plan_print(const struct nezha_plan *plan, char *buf, size_t len);

#endif
