/* SPDX-License-Identifier: BSD-3-Clause
 * A crowd at the doors.  While it lasts, the kernel lets nobody in but the hosts that have to: those of the teams' left neighbours (sieve.h).
 * From time to time all are let in again, to see whether the crowd has gone, and since a neighbour's address might not be the
 * one that its card says.  The service thread only. */
#ifndef NEZHA_RAILS_SIEGE_H
#define NEZHA_RAILS_SIEGE_H

#include <stdbool.h>
#include <stdint.h>

struct nezha_engine;

/* All zero: there has been none. */
struct nezha_siege {
	bool on;                 /* others are kept out, or it was tried in vain */
	uint64_t until, pause;   /* ns: how long, and until when */
	uint32_t known;          /* engine->known when the kernel was told last */
};

/* There are too many strangers at the sockets, one for each of the engine's card's rails.  The lock is not held. */
void nezha_siege_begin(struct nezha_siege *siege, struct nezha_engine *engine, const int *listeners, uint64_t now);

/* Tells the kernel of new neighbours, and lets all in when it is time; lowers *next to when that will be.  The lock is not held. */
void nezha_siege_turn(struct nezha_siege *siege, struct nezha_engine *engine, const int *listeners, uint64_t now, uint64_t *next);

#endif
