/* SPDX-License-Identifier: BSD-3-Clause
 * The service thread: asleep in the kernel unless something comes.  It accepts and makes connections (first ones and
 * those that replace lost ones), answers what a neighbour asks about a team while this process computes, and watches the
 * links' carrier.  It never touches user data and never calls MPI. */
#ifndef NEZHA_RAILS_SERVICE_H
#define NEZHA_RAILS_SERVICE_H

#include <stdbool.h>
#include <time.h>

struct nezha_engine;
struct nezha_service;

/* Listens on the engine's rails (filling engine->card; a rail that cannot listen is dropped with a warning) and
 * starts the thread, which blocks all signals. */
int nezha_service_start(struct nezha_engine *engine, struct nezha_service **out);

/* Ends the thread and closes what it holds; the engine's lock is not held. */
void nezha_service_stop(struct nezha_service *service);

/* Before and after a fork: the thread stands still in between, so that the child finds its lists whole.  false: it did not by
 * `until` (CLOCK_REALTIME), and goes on. */
bool nezha_service_hold(struct nezha_service *service, const struct timespec *until);
void nezha_service_release(struct nezha_service *service);

/* In a forked child, where the thread does not exist: close the descriptors. */
void nezha_service_abandon(struct nezha_service *service);

/* There is something to do: a path to connect, a team with `query` set.  Any thread, with or without the lock. */
void nezha_service_kick(struct nezha_service *service);

#endif
