/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation daemon in a thread, and sessions of ranks made up here.  The program's own sendmsg, poll and
 * clock_gettime stand before the C library's, so that ports can be full, runs of packets refused, groups die and time
 * pass as a test wants it. */
#ifndef NEZHA_TESTS_AGGD_BED_H
#define NEZHA_TESTS_AGGD_BED_H

#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rails/aggd.h"
#include "rails/ina_wire.h"
#include "rails/team.h"

#define BED_RANKS 2                      /* of a session; there are sessions 0 and 1 */
#define BED_FLOATS 128                   /* of a chunk */
#define BED_CHUNK (BED_FLOATS * 4)
#define BED_WINDOW 16                    /* of a session, in chunks */

/* What stands between the daemon and the ranks. */
struct bed_network {
	/* which a test sets */
	atomic_int full, refused;        /* a session (its number + 1) whose members' ports are full; to which no runs go */
	atomic_int deaf;                 /* a bit for each rank that its session's group does not reach */
	atomic_long ahead;               /* s, of the clock */
	/* which it looks at */
	atomic_int runs[2];              /* that went to a session's members */
	atomic_int to_groups;            /* messages with results */
	atomic_bool polled;              /* by the daemon, outside its loop */
};

extern struct bed_network bed_network;
extern struct nezha_aggd_stats bed_stats;   /* what the daemon had counted when it ended */

/* Setups of cmocka: a daemon that sends results to each rank, or to groups. */
int bed_start(void **state);
int bed_start_grouped(void **state);

/* The daemon stands still, and what comes meanwhile waits in its sockets; it goes on. */
void bed_hold(void);
void bed_go_on(void);

/* Ends the daemon. */
void bed_stop(void);

/* The daemon is told to take no more jobs, and to end of itself. */
void bed_drain(void);

/* It has ended of itself, within 5 s, which is less than it waits for jobs to leave, and what it had is freed; false: it goes on. */
bool bed_has_ended(void);

struct bed_rank {
	int session, number, control, udp;      /* the last two its sockets, which bed_leave closes */
	uint64_t token;
};

struct bed_packet {
	struct nezha_ina_header header;
	float data[BED_FLOATS];
};

/* The key of both sessions' teams. */
extern const unsigned char bed_key[NEZHA_KEY_BYTES];

/* The public half of a session's name, beside the key. */
uint64_t bed_name(int session);

/* A socket of SOCK_STREAM or SOCK_DGRAM to the daemon, that waits 10 s at most for what comes. */
int bed_connected(int type);

/* The next of the daemon's records, which is of this kind. */
void bed_hear(const struct bed_rank *rank, enum nezha_ina_record_kind kind, struct nezha_ina_record *out);

/* A rank that has asked to join, with the team's key `with`. */
struct bed_rank bed_join(int session, int number, const unsigned char *with);

void bed_open_session(int session, struct bed_rank ranks[BED_RANKS]);

void bed_leave(const struct bed_rank ranks[BED_RANKS]);

/* What a rank contributes to chunk `seq`. */
struct bed_packet bed_contribution(const struct bed_rank *rank, uint32_t seq);

/* Chunks [from, to), 16 at most, as one run of packets, which comes to the daemon as one. */
void bed_contribute(const struct bed_rank *rank, uint32_t from, uint32_t to);

/* The results of [from, to), 32 at most, come and are right, in any order and each once. */
void bed_expect(const struct bed_rank *rank, uint32_t from, uint32_t to);

void bed_expect_nothing(const struct bed_rank *rank);

/* Both ranks contribute [from, to), and get the results. */
void bed_exchange(const struct bed_rank ranks[BED_RANKS], uint32_t from, uint32_t to);

#endif
