/* SPDX-License-Identifier: BSD-3-Clause
 * The one process context of a backend. */
#ifndef NEZHA_PMPI_CONTEXT_H
#define NEZHA_PMPI_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pmpi/entry.h"
#include "pmpi/handles.h"
#include "pmpi/job.h"

struct nezha_comm;
struct nezha_engine;
struct nezha_learned;
struct nezha_report;
struct nezha_trace;

/* Smaller calls than the floor go to the MPI library without a further look; 0: all are looked at. */
#define NEZHA_FLOOR_ALL UINT64_MAX

struct nezha_context {
	const struct nezha_host *host;
	_Atomic uint64_t floor;           /* bytes; what the call path reads first */
	uint64_t table_floor;             /* the floor that the table gives */
	atomic_bool on;                   /* between the end of MPI_Init and the release in MPI_Finalize */
	atomic_bool hands_off;            /* communicators, teams and engine are left alone: this is a forked child and they are its
	                                   * parent's, or MPI was finalized in the midst of calls */
	atomic_bool failed;               /* a call has: some rank may be no more */
	atomic_int calls;                 /* that threads are in, of those that are looked at */
	atomic_bool paused;               /* by MPI_Pcontrol(0) */
	atomic_bool learning;             /* what was learnt goes before the built-in rules */
	atomic_bool warned;               /* that fewer rails are used than a host has */
	atomic_bool lacking;              /* ... that something of the system is used up */
	atomic_bool gpu;                  /* ... that a process has a GPU's library */
	atomic_bool unnamed;              /* ... that a rule names no rail of ours */
	struct nezha_job job;             /* the same on all ranks, fixed while `on` */
	int keyval;                       /* the communicators' attribute */
	int self_keyval;                  /* MPI_COMM_SELF's, whose end is ours */
	pthread_once_t self_once;
	MPI_Comm self;                    /* for copies by the library (staging.h); MPI_COMM_NULL: there is none */
	struct nezha_handles handles;     /* MPI's predefined types */
	const void *_Atomic outsiders[64]; /* addresses of code that is not the MPI library's, hashed; NULL: free */
	pthread_once_t error_once;        /* for our error codes: added when there is an error */
	int error_lost, error_memory, error_differ, error_wrong;
	struct nezha_report *report;      /* NULL: none is wanted */
	struct nezha_trace *trace;        /* NULL: none is wanted of this rank */
	int64_t trace_shift;              /* ns from this process's clock to the trace's (tuning/trace.h) */
	uint64_t trace_error;             /* ns by which clocks may differ in it */
	_Atomic int32_t trace_threads;    /* that were numbered */

	pthread_mutex_t lock;             /* of what follows; no MPI call under it */
	LIST_HEAD(nezha_comm_list, nezha_comm) comms;
	void *reserve;                    /* memory for a communicator's state when there is no other; NULL: it was used */
	struct nezha_engine *engine;      /* NULL: no team was opened yet */
	struct nezha_learned *learned;    /* NULL: none is wanted */
	uint32_t teams;                   /* opened with this process as the leader */
	struct nezha_lack lack;           /* what could not be had for a team that is being opened */
};

extern struct nezha_context nezha_context;

/* Of nezha_context.calls, those of this thread: its error handler may end MPI. */
extern _Thread_local int nezha_calls_here;

/* Sets the floor anew, and has calls looked at again: after `on`, `paused`, the table or the report changed. */
void nezha_context_aim(void);

/* The MPI library's own function. */
static inline nezha_call_fn *nezha_native(enum nezha_call call)
{
	return nezha_context.host->native[call];
}

#endif
