/* SPDX-License-Identifier: BSD-3-Clause
 * The report: what one process did with its calls, by communicator, size class and path, and why.  Pure
 * data: it is told things and prints them.
 *
 * Any thread may call anything; NULL for the report, and for a communicator, is allowed everywhere (it
 * then does nothing, or counts under "other calls").  Memory is bounded by the communicators that live:
 * closed ones are folded together. */
#ifndef NEZHA_TUNING_REPORT_H
#define NEZHA_TUNING_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tuning/plan.h"

#define NEZHA_REPORT_RAILS 12

struct nezha_report;
struct nezha_report_comm;

/* One call. */
struct nezha_report_call {
	uint64_t bytes;               /* of the vector; 0 also where it is not known */
	enum nezha_algorithm alg;
	enum nezha_reason reason;
	uint64_t ns;                  /* how long it took */
	const uint64_t *rail_bytes;   /* NEZHA_REPORT_RAILS: what this rank sent over each; NULL: nothing */
};

/* One rail, at the end. */
struct nezha_report_rail {
	char device[16], subnet[24];
	uint64_t bytes, resent;       /* payload sent; of it, again after a failure */
	uint64_t failures, returns;   /* connections lost and regained */
	uint64_t wrong;               /* blocks that came with a wrong CRC */
};

/* Memory that RDMA devices may reach: bytes at the end of the job, at most so far, and what is allowed at most. */
struct nezha_report_registered {
	uint64_t now, most, limit;
};

/* What the report is about; the texts are not copied and live as long as the report. */
struct nezha_report_job {
	const char *version, *mpi, *rails, *table;
	const char *tune;             /* the rule that goes before the table; "": none */
	char host[64];
	int ranks, nodes;
};

/* NEZHA_ERR_NOMEM. */
int nezha_report_create(struct nezha_report **out);
void nezha_report_free(struct nezha_report *report);

/* A communicator begins (`name` is copied, control characters made harmless) and ends.  NULL: no memory. */
struct nezha_report_comm *nezha_report_open(struct nezha_report *report, const char *name, int ranks,
                                            int nodes);
void nezha_report_close(struct nezha_report *report, struct nezha_report_comm *comm);

/* Counts one call; where there is no memory for a new row, among the lost ones, whose number is told. */
void nezha_report_count(struct nezha_report *report, struct nezha_report_comm *comm,
                        const struct nezha_report_call *call);

/* Sets what is known of rail `index` < NEZHA_REPORT_RAILS, of registered memory (all 0 before), and of the job. */
void nezha_report_rail(struct nezha_report *report, size_t index, const struct nezha_report_rail *rail);
void nezha_report_registered(struct nezha_report *report, const struct nezha_report_registered *registered);
void nezha_report_job(struct nezha_report *report, const struct nezha_report_job *job);

/* Forgets all calls; the communicators stay. */
void nezha_report_reset(struct nezha_report *report);

/* For people: lines of at most 80 columns (longer only where a name is). */
void nezha_report_text(struct nezha_report *report, FILE *out);

/* For programs: one JSON object.  NEZHA_ERR_NOMEM, NEZHA_ERR_SYSTEM (errno). */
int nezha_report_json(struct nezha_report *report, FILE *out);

#endif
