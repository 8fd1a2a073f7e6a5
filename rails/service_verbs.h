/* SPDX-License-Identifier: BSD-3-Clause
 * The service thread's part of verbs rails: what closed paths have left behind, and events of the devices.  Takes the engine's
 * lock where it needs it. */
#ifndef NEZHA_RAILS_SERVICE_VERBS_H
#define NEZHA_RAILS_SERVICE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

struct nezha_engine;

/* Destroys retired ends and looks after failed devices and ports; lowers *next to when there is more to do. */
void nezha_service_verbs_turn(struct nezha_engine *engine, uint64_t now, uint64_t *next);

/* Whether connections over rail r make sense: it is of another kind, or its port is up. */
bool nezha_service_verbs_usable(const struct nezha_engine *engine, uint32_t r);

/* The descriptor to watch for rail r, -1: none. */
int nezha_service_verbs_watch(const struct nezha_engine *engine, uint32_t r);

/* It is readable. */
void nezha_service_verbs_event(struct nezha_engine *engine, uint32_t r);

#endif
