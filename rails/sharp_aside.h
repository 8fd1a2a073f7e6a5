/* SPDX-License-Identifier: BSD-3-Clause
 * The calls of SHARP's library that may block: a thread of their own makes them, so that they can be given up; what the library wants
 * to tell other ranks meanwhile is done by the thread that opens the team, which alone may use the ring. */
#ifndef NEZHA_RAILS_SHARP_ASIDE_H
#define NEZHA_RAILS_SHARP_ASIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/sharp_api.h"
#include "rails/sharp_exchange.h"

struct nezha_sharp;

#define NEZHA_SHARP_WHY 160

/* What the two threads have in common.  It is the library's context, too, and so lives as long as that. */
struct nezha_sharp_aside {
	struct nezha_sharp *sharp;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*work)(struct nezha_sharp_aside *aside);
	uint64_t job;                    /* what the library calls this one */
	char why[NEZHA_SHARP_WHY];       /* "": it went well */
	bool done, closed;               /* the work; nobody serves exchanges any more */
	bool asks;                       /* an exchange is wanted: */
	enum nezha_sharp_kind kind;
	int root;
	void *from, *to;
	size_t bytes;
	int answer;
	bool alone;                      /* other ranks did something else */
};

/* NULL: no memory. */
struct nezha_sharp_aside *nezha_sharp_aside_create(struct nezha_sharp *sharp);
void nezha_sharp_aside_free(struct nezha_sharp_aside *aside);

/* How the library talks to other ranks; its context is the aside. */
extern const struct nezha_sharp_outside nezha_sharp_outside;

/* Has the work done.  NEZHA_OK; NEZHA_INPROGRESS: it takes longer than `limit` (ns, without a word to other ranks), and is left to
 * itself: nothing of the aside or of SHARP may be freed any more; NEZHA_ERR_SYSTEM: there is no thread for it, nothing was begun. */
int nezha_sharp_aside_do(struct nezha_sharp_aside *aside, void (*work)(struct nezha_sharp_aside *aside), uint64_t limit);

/* Nobody serves what the library still asks for. */
void nezha_sharp_aside_close(struct nezha_sharp_aside *aside);

#endif
