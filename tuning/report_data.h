/* SPDX-License-Identifier: BSD-3-Clause
 * What a report holds, for those that print it (report_text.c, report_json.c). */
#ifndef NEZHA_TUNING_REPORT_DATA_H
#define NEZHA_TUNING_REPORT_DATA_H

#include <pthread.h>
#include <sys/queue.h>

#include "tuning/report.h"

#define NEZHA_REPORT_NAME 64

/* Calls of one size class and fate.  Class 0 is no bytes, class k is [2^(k-1), 2^k) bytes. */
struct nezha_report_row {
	unsigned class;
	enum nezha_algorithm alg;
	enum nezha_reason reason;
	uint64_t calls, bytes;
	uint64_t ns, ns_min, ns_max;                   /* sum, shortest, longest */
	uint64_t rail_bytes[NEZHA_REPORT_RAILS];
};

/* In order of class, path, reason. */
struct nezha_report_rows {
	size_t count, room;
	struct nezha_report_row *row;
};

struct nezha_report_comm {
	TAILQ_ENTRY(nezha_report_comm) entry;
	char name[NEZHA_REPORT_NAME];
	int ranks, nodes;
	struct nezha_report_rows rows;
};
TAILQ_HEAD(nezha_report_comms, nezha_report_comm);

struct nezha_report {
	pthread_mutex_t lock;
	struct nezha_report_comms comms;               /* those that are open, in order of opening */
	uint64_t closed_count;
	struct nezha_report_rows closed;               /* of communicators that are gone */
	struct nezha_report_rows other;                /* of no communicator */
	uint64_t lost;                                 /* calls without memory for a row */
	struct nezha_report_rail rails[NEZHA_REPORT_RAILS];  /* device "": none */
	struct nezha_report_registered registered;
	struct nezha_report_job job;
};

/* The smallest and the largest size of a class. */
uint64_t nezha_report_class_low(unsigned class);
uint64_t nezha_report_class_high(unsigned class);

#endif
