/* SPDX-License-Identifier: BSD-3-Clause
 * The rail of InfiniBand switches that reduce by themselves (NVIDIA SHARP), through libsharp_coll: a collective rail of a
 * ring whose ranks are their nodes' leaders.  Opt-in, by its name in NEZHA_RAILS: the switch has a fold order of its own.
 *
 * A request cannot be cancelled.  So it never touches the user's memory, only buffers of ours, and a request that does not end
 * leaves all that belongs to SHARP where it is for the rest of the process's life: nothing of it is freed or used again. */
#ifndef NEZHA_RAILS_SHARP_H
#define NEZHA_RAILS_SHARP_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/rail.h"
#include "rails/sharp_api.h"

struct nezha_engine;
struct nezha_team;

#define NEZHA_SHARP_TOKEN 0x5ca1ab1eu    /* of a rail that is there */
#define NEZHA_SHARP_SLOTS 4              /* requests at a time */
#define NEZHA_SHARP_BLOCK (512u << 10)   /* bytes of the largest block that it takes */

struct nezha_sharp {
	const struct nezha_sharp_api *api;
	struct nezha_engine *engine;
	struct nezha_team *team;
	void *context, *group, *registration;    /* the library's; NULL: not yet */
	char *staging;                           /* a block from us and one to us for each slot; registered */
	uint64_t types, operations;              /* what all ranks' libraries support: bit k for number k */
	struct nezha_sharp_aside *aside;         /* for its library's calls that may block; owned */
	bool lost;                               /* to the team: for good */

	/* the call in progress */
	struct nezha_sharp_slot {
		void *request;                   /* NULL: none is under way */
		uint32_t block;
	} slots[NEZHA_SHARP_SLOTS];
	uint32_t first, count, next, open;       /* blocks; the next one to be begun; those neither final nor returned */
	bool *settled;                           /* per block; `room` entries */
	uint32_t room, finals;
	uint64_t looked, waited;                 /* ns: last look at the time; without an end of a request */
};

extern const struct nezha_collective_ops nezha_sharp_rail;

/* At the end of a team's opening, by all of its ranks: gives it the rail if all of them can, else one line says why not.  No lock
 * is held. */
void nezha_sharp_open(struct nezha_team *team);

/* Takes it away again, if it has one (the last of its rails); the lock is held.  What this returns, or NULL, is to be closed
 * without the lock. */
struct nezha_sharp *nezha_sharp_detach(struct nezha_team *team);
void nezha_sharp_close(struct nezha_sharp *sharp);

/* ---- sharp.c, for sharp_open.c ---- */

/* Begins a reduction of what lies in slot `i`; an error of the library's. */
int nezha_sharp_begin(struct nezha_sharp *sharp, int i, size_t elements, int type, int operation, size_t bytes);

/* Where slot i's contribution and its result lie. */
char *nezha_sharp_from(const struct nezha_sharp *sharp, int i);
char *nezha_sharp_to(const struct nezha_sharp *sharp, int i);

/* Whether slot i's request has come to its end; then it has none any more. */
bool nezha_sharp_ended(struct nezha_sharp *sharp, int i);

#endif
