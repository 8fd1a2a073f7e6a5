/* SPDX-License-Identifier: BSD-3-Clause
 * A team's collective rails in a call: which of them take part, which blocks each one has, what they tell each other in
 * the call's note.  The engine's lock is held in all functions.
 *
 * Agreement: which blocks a rail has is the same on all ranks because it follows from what all ranks know alike: the
 * token that all of them hold (the mask of the opening, then the calls' notes, folded with MIN) and the measured times that
 * travel with the notes (split.h).  A rank whose rail is lost since then takes part by handing the blocks back. */
#ifndef NEZHA_RAILS_COLLECTIVE_H
#define NEZHA_RAILS_COLLECTIVE_H

#include "rails/rail.h"
#include "rails/split.h"

struct nezha_team;
struct nezha_way;

/* One of the team's; in the same order on all ranks. */
struct nezha_collective {
	const struct nezha_collective_ops *ops;
	void *rail;
	uint32_t ours;                   /* bit r: it uses our rail r, which the links leave to it while it has blocks */
	uint32_t common;                 /* the same by the team's common rails, alike on all ranks */
	uint64_t agreed;                 /* the token that all ranks held at the last agreement, 0: none */
	bool noted;                      /* a note told of that, and not the opening: its value is alike on all ranks */
	uint32_t first, count;           /* its blocks of the call in progress */
};

/* What a call's note tells of: an earlier call and its times. */
struct nezha_collective_account {
	bool valid;
	struct nezha_grid grid;
	struct nezha_parts parts;
};

/* Lends the team one more rail (`member`: ops, rail, ours, common), until it is detached.  NEZHA_ERR_UNSUPPORTED: it has too
 * many; NEZHA_ERR_NOMEM. */
int nezha_team_attach(struct nezha_team *team, const struct nezha_collective *member);

/* Takes the last one that was attached away. */
void nezha_team_detach(struct nezha_team *team);

/* At the team's opening: which rails are there on this rank, bit i for the team's i-th; that they are on all ranks. */
uint32_t nezha_collective_present(const struct nezha_team *team);
void nezha_collective_open(struct nezha_team *team, uint32_t present);

/* Whether the next call's note has something of theirs (the same on all ranks), which is put into `values`; what all have said:
 * the least of each value. */
bool nezha_collective_tell(struct nezha_team *team, const struct nezha_grid *grid, uint64_t values[NEZHA_RAIL_VALUES]);
void nezha_collective_learn(struct nezha_team *team, const uint64_t values[NEZHA_RAIL_VALUES]);

/* The team's call begins: gives the rails their blocks and says which of our rails are left to the links (of `allowed`).
 * Then, when all else is ready: has them begin. */
uint32_t nezha_collective_share(struct nezha_team *team, const struct nezha_way *way, uint32_t allowed);
void nezha_collective_post(struct nezha_team *team);

void nezha_collective_progress(struct nezha_team *team);

/* Block `block`, which is ON_RAIL, is needed now. */
void nezha_collective_cancel(struct nezha_team *team, uint32_t block);

/* The call is over. */
void nezha_collective_finish(struct nezha_team *team);

#endif
