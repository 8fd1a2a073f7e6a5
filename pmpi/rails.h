/* SPDX-License-Identifier: BSD-3-Clause
 * This process's rails: chosen by the job's settings, and the engine that drives them. */
#ifndef NEZHA_PMPI_RAILS_H
#define NEZHA_PMPI_RAILS_H

#include <stdbool.h>

struct nezha_engine;
struct nezha_fingerprint;

/* Collective over MPI_COMM_WORLD, at start: whether the rails that the user named exist.  A malformed
 * name, a device that a host lacks and an entry that no host has are errors (NEZHA_ERR_INVALID on all
 * ranks), which one rank tells; it gets *told. */
int nezha_rails_check(bool *told);

/* The process's engine, made at the first call; any thread.  It has no rails if none could be chosen. */
int nezha_rails_engine(struct nezha_engine **out);

/* What this host is like with the job's rails (rails/fingerprint.h), but for the MPI library: with those that the engine was
 * made with, before there is one with those that would be chosen now.  Local; takes nezha_context.lock. */
void nezha_rails_describe(struct nezha_fingerprint *out);

/* Lets go of the engine; no team is left. */
void nezha_rails_end(void);

#endif
