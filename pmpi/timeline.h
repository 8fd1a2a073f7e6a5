/* SPDX-License-Identifier: BSD-3-Clause
 * The job's timeline (NEZHA_TRACE): which ranks write one, on which clock, when.  What it holds is tuning/trace.h's. */
#ifndef NEZHA_PMPI_TIMELINE_H
#define NEZHA_PMPI_TIMELINE_H

#include <stdint.h>

#include "tuning/trace.h"

/* Collective over MPI_COMM_WORLD, once the settings are agreed; nothing unless NEZHA_TRACE is set.  NEZHA_ERR_NOMEM.  A rank whose
 * file cannot be written warns and goes without. */
int nezha_timeline_begin(void);

/* What the calling thread did from `begin` until now, ns of CLOCK_MONOTONIC.  LIBRARY: reason is ignored.  Only while
 * nezha_context.trace is set. */
void nezha_timeline_add(enum nezha_trace_kind kind, uint64_t begin, uint64_t bytes, enum nezha_algorithm alg,
                        enum nezha_reason reason);

/* Writes the file, over what an earlier one has written.  Any thread. */
void nezha_timeline_write(void);

/* The last one; the engine is gone. */
void nezha_timeline_end(void);

#endif
