/* SPDX-License-Identifier: BSD-3-Clause
 * What the ranks of a team tell each other, over the ring, while the rail of SHARP is opened.  Ranks may be at different
 * points, since the library has failed on one of them only: so each exchange begins with a step, of the same form for
 * all, in which all see whether they are doing the same.  Collective; no lock is held; no call of the team is in progress. */
#ifndef NEZHA_RAILS_SHARP_EXCHANGE_H
#define NEZHA_RAILS_SHARP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/types.h"

struct nezha_team;

enum nezha_sharp_kind { NEZHA_SHARP_VOTE = 1, NEZHA_SHARP_BARRIER = 2, NEZHA_SHARP_BCAST = 4, NEZHA_SHARP_GATHER = 8 };

/* One of the library's calls.  gather: `to` has room for `bytes` of each rank on the root.  An error: ranks do different
 * things, or NEZHA_ERR_NOMEM, or the team's. */
int nezha_sharp_exchange(struct nezha_team *team, enum nezha_sharp_kind kind, int root, void *from, void *to, size_t bytes);

enum nezha_sharp_say { NEZHA_SHARP_YES, NEZHA_SHARP_NO, NEZHA_SHARP_NO_BY_OTHERS };  /* the last: since others have failed */

/* Whether all say yes.  *first (which may be NULL): the first rank that says no, if possible of itself, whose `why` (room for `size`
 * bytes) all get. */
bool nezha_sharp_vote(struct nezha_team *team, enum nezha_sharp_say say, int *first, char *why, size_t size);

/* The fold of each rank's value, after a vote. */
int nezha_sharp_fold(struct nezha_team *team, enum nezha_op op, uint64_t *value);

#endif
