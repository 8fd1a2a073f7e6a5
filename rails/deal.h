/* SPDX-License-Identifier: BSD-3-Clause
 * Which path of a link carries which block: the policy applied to the link's queue.  A block is bound to a path as
 * late as possible, when that path has room.  The engine's lock is held in all functions. */
#ifndef NEZHA_RAILS_DEAL_H
#define NEZHA_RAILS_DEAL_H

#include "rails/link.h"

/* A call begins that will give the link `bytes`; or gives it so many fewer. */
void nezha_deal_expect(struct nezha_team *team, uint64_t bytes);
void nezha_deal_expect_less(struct nezha_team *team, uint64_t bytes);

/* Puts the block at the end of the link's queue. */
void nezha_deal_block(struct nezha_link *link, struct nezha_tx *tx);

/* Takes the next block that still serves anyone out of the queue if the policy gives it to this path; else NULL.
 * *other: the policy gives it to another path. */
struct nezha_tx *nezha_deal_next(struct nezha_path *path, bool *other);

/* The team's call is over: what it still has in the queue goes. */
void nezha_deal_forget(struct nezha_link *link, struct nezha_team *team);

/* All paths' shares begin at zero again. */
void nezha_deal_anew(struct nezha_link *link);

#endif
