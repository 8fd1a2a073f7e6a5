/* SPDX-License-Identifier: BSD-3-Clause
 * Aggregation daemons for the conformance suite, processes of their own on loopback: the i-th has an address in rail i's subnet. */
#ifndef NEZHA_TESTS_DAEMONS_H
#define NEZHA_TESTS_DAEMONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rails/ina_address.h"

#define DAEMONS NEZHA_INA_MAX

extern struct nezha_ina_address daemons_where[DAEMONS];
extern pid_t daemons[DAEMONS];

/* Before all others; false: there is no nezha-aggd (said aloud). */
bool daemons_find(void);

/* One of them, with so much memory, until it listens; the first one. */
void daemons_start_one(int i, const char *memory);
void daemons_start(const char *memory);

/* ns that it has waited for a processor so far (proc(5), schedstat). */
uint64_t daemons_waited(int i);

/* Ends it by a signal. */
void daemons_end_one(int i, int signal);
void daemons_end(int signal);

/* The first ones, with enough memory. */
void daemons_start_several(int count);
void daemons_end_several(int count);

/* Those that are started from now on have a bad network, see lossy.c, until LD_PRELOAD is unset; false: it is not built. */
bool daemons_make_lossy(const char *how);

void pause_ms(long ms);

#endif
