/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation daemon: reduces the chunks that the ranks of a team send it and gives each of them the result.  One
 * thread, any number of jobs and communicators; ina_wire.h tells what is said, ina_slots.h how it is folded. */
#ifndef NEZHA_RAILS_AGGD_H
#define NEZHA_RAILS_AGGD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct nezha_aggd;

struct nezha_aggd_config {
	struct in_addr address;  /* of this host, network byte order: where ranks send to, and what groups are sent from */
	uint16_t port;           /* UDP and TCP; 0: any (tests) */
	uint64_t memory;         /* bytes for the slots of all sessions */
	bool multicast;          /* false: results go to each rank */
	const char *devices;     /* that the XDP program is attached to, separated by commas; NULL: no XDP */
};

/* Listens.  NEZHA_ERR_SYSTEM (one line logged), NEZHA_ERR_NOMEM. */
int nezha_aggd_create(const struct nezha_aggd_config *config, struct nezha_aggd **out);

uint16_t nezha_aggd_port(const struct nezha_aggd *aggd);

/* Serves until it is told to stop, or has drained. */
void nezha_aggd_run(struct nezha_aggd *aggd);

/* What the thread in nezha_aggd_run shall do; any thread, also in a signal handler. */
enum nezha_aggd_order {
	NEZHA_AGGD_STOP = 1,     /* at once */
	NEZHA_AGGD_DRAIN = 2,    /* take no more jobs, and stop when those that are in have left, or after 10 s */
	NEZHA_AGGD_REPORT = 4,   /* print statistics to standard output */
};
void nezha_aggd_order(struct nezha_aggd *aggd, enum nezha_aggd_order order);

/* Since it was created. */
struct nezha_aggd_stats {
	uint64_t packets, bytes;    /* contributions that were taken in, their payload */
	uint64_t results;           /* chunks that were completed */
	uint64_t again;             /* contributions that came twice, and results that were sent again */
	uint64_t deferred;          /* results that a member's full port held up */
	uint64_t garbage;           /* packets and records that make no sense */
	uint64_t foreign;           /* packets of no session, or from another address than its rank's */
	uint64_t outside;           /* packets of a session that do not fit its state: old ones, mostly */
	uint64_t sessions, refused; /* opened; joins that were refused */
	uint64_t xdp_packets, xdp_results, xdp_again;    /* of those above, the XDP program's */
	uint64_t xdp_passed;        /* packets that it has taken, but left to the daemon to answer */
};
void nezha_aggd_stats(const struct nezha_aggd *aggd, struct nezha_aggd_stats *out);   /* while it does not run */

/* Not while it runs.  NULL is allowed. */
void nezha_aggd_destroy(struct nezha_aggd *aggd);

#endif
