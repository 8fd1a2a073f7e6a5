/* SPDX-License-Identifier: BSD-3-Clause
 * A team whose calls cannot be finished any more: how a rank finds that a neighbour is lost, and how all others learn of it, so that
 * none waits for ever.  A broken team stays broken; each rank's call ends with an error, and so does each later one.
 *
 * Who has found out tells its left neighbour (BROKEN), which tells its own, around to the right neighbour of what is lost.  A
 * record that is lost on the way does no harm: who hears nothing asks its right neighbour (QUERY), and the answer says it.
 * The engine's lock is held in all functions. */
#ifndef NEZHA_RAILS_BREAKDOWN_H
#define NEZHA_RAILS_BREAKDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/wire.h"

struct nezha_engine;
struct nezha_team;

/* Whether a neighbour has been out of reach for too long: the team is broken then, and one line names process, host, rails and
 * causes. */
bool nezha_breakdown_look(struct nezha_team *team, uint64_t now);

/* No call can be finished, as process `found_by` has found out: `lost` is gone, or (NEZHA_NOBODY) it is something else.  Only the first
 * time counts. */
void nezha_breakdown(struct nezha_team *team, uint32_t found_by, uint32_t lost);

/* The right neighbour says so. */
void nezha_breakdown_heard(struct nezha_team *team, uint32_t found_by, uint32_t lost);

/* Says it again to the left neighbour, if the team is broken. */
void nezha_breakdown_say(struct nezha_team *team);

/* Fills *state if its team is broken, or was when it was freed; else false. */
bool nezha_breakdown_tell(struct nezha_engine *engine, struct nezha_wire *state);

/* The team is freed: a neighbour may still ask. */
void nezha_breakdown_keep(struct nezha_team *team);

#endif
