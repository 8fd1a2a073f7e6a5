/* SPDX-License-Identifier: BSD-3-Clause
 * Partials that come before their call was entered here, or of a gradual one before this rank's contribution is there: stored, within
 * NEZHA_EAGER_BYTES for a link's calls that were not entered and for each team's that was, and folded when it is.  The engine's lock
 * is held in all functions. */
#ifndef NEZHA_RAILS_EARLY_H
#define NEZHA_RAILS_EARLY_H

#include <stdbool.h>

struct nezha_inpath;
struct nezha_landing;
struct nezha_team;

/* The block whose record has come over inpath is one of the call that the team enters next, or is in: sets up its landing.
 * NEZHA_ERR_PROTOCOL: it makes no sense or is too much; NEZHA_ERR_NOMEM. */
int nezha_early_land(struct nezha_inpath *inpath, struct nezha_team *team);

/* It has come whole, and is right. */
void nezha_early_landed(struct nezha_landing *landing);

/* The call is over or, with `all`, the team. */
void nezha_early_forget(struct nezha_team *team, bool all);

#endif
