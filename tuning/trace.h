/* SPDX-License-Identifier: BSD-3-Clause
 * The timeline of one process (NEZHA_TRACE): calls, blocks, paths lost and regained, printed as a Chrome trace, which
 * Perfetto (ui.perfetto.dev) and chrome://tracing show.  Pure data: it is told things and prints them.
 *
 * The last events are kept, the ones before are overwritten and counted: memory is bounded.  Any thread may record. */
#ifndef NEZHA_TUNING_TRACE_H
#define NEZHA_TUNING_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tuning/plan.h"

#define NEZHA_TRACE_EVENTS 65536u    /* that a process keeps: 5.5 MiB */
#define NEZHA_TRACE_RAILS 16
#define NEZHA_TRACE_TEXT 40

enum nezha_trace_kind {
	NEZHA_TRACE_CALL,        /* on a thread of the program */
	NEZHA_TRACE_LIBRARY,     /* ... in it: the MPI library's part of a call */
	NEZHA_TRACE_SENT,        /* a block, from its first byte to its last one handed to the path */
	NEZHA_TRACE_RECEIVED,    /* ... read from it */
	NEZHA_TRACE_REDUCED,     /* blocks that a collective rail made final */
	NEZHA_TRACE_LOST,        /* a moment: a path was lost */
	NEZHA_TRACE_DOWN,        /* from then until it was back */
	NEZHA_TRACE_WRONG,       /* a moment: a block came with a wrong CRC */
	NEZHA_TRACE_KINDS
};

struct nezha_trace_event {
	uint64_t begin, end;     /* ns of CLOCK_MONOTONIC */
	uint64_t bytes;          /* of the vector; of the block; LOST: that are sent again over other paths */
	uint8_t kind;            /* enum nezha_trace_kind */
	uint8_t rail;            /* but for CALL, LIBRARY: < NEZHA_TRACE_RAILS */
	uint8_t incoming;        /* of paths: 1 from the peer, 0 to it */
	uint8_t alg, reason;     /* CALL: enum nezha_algorithm, enum nezha_reason */
	uint8_t final;           /* of blocks: 1 the final, 0 the partial */
	int32_t peer;            /* of paths: the other process.  CALL, LIBRARY: the thread */
	uint32_t op, block;      /* of blocks: the call's number in its communicator, the block's in the call */
	uint32_t count;          /* LOST: blocks that are sent again; REDUCED: how many from `block` on */
	char text[NEZHA_TRACE_TEXT];  /* LOST, DOWN: the cause */
};

struct nezha_trace;

/* `events` > 0 is how many are kept.  NEZHA_ERR_NOMEM. */
int nezha_trace_create(size_t events, struct nezha_trace **out);
void nezha_trace_free(struct nezha_trace *trace);    /* NULL is allowed */

void nezha_trace_record(struct nezha_trace *trace, const struct nezha_trace_event *event);

/* The name of rail `rail`, copied. */
void nezha_trace_name(struct nezha_trace *trace, unsigned rail, const char *name);

/* What the timeline is of. */
struct nezha_trace_process {
	int rank;
	const char *host;
	int64_t shift;           /* ns to be added to this process's clock; what it then shows is in the trace */
	uint64_t error;          /* ns by which the clocks of two processes may differ in it */
};

/* Prints all that is kept, oldest first; the trace stays as it is, and may be recorded to meanwhile (what is printed is a copy).
 * Of a name that is not UTF-8, '?' stands for what is not ASCII.  *lost: events that were overwritten.  NEZHA_ERR_NOMEM,
 * NEZHA_ERR_SYSTEM (errno). */
int nezha_trace_print(struct nezha_trace *trace, const struct nezha_trace_process *process, FILE *out, uint64_t *lost);

#endif
