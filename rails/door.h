/* SPDX-License-Identifier: BSD-3-Clause
 * The door: a socket for each rail that peers connect to, and who of the strangers that shake hands there has to go when there are
 * too many.  After it is opened used by the service thread only. */
#ifndef NEZHA_RAILS_DOOR_H
#define NEZHA_RAILS_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/contact.h"
#include "rails/siege.h"

struct nezha_door {
	struct nezha_engine *engine;
	struct nezha_contact_list *contacts;  /* the service thread's: who comes in is added, a stranger that has to go is destroyed */
	int listeners[NEZHA_RAILS_MAX];       /* of the card's rails */
	uint64_t deaf_until;                  /* ns: nobody is accepted before */
	uint64_t counted_since;               /* ns */
	uint32_t turned_away;                 /* strangers, since then */
	struct nezha_siege siege;
};

/* Listens on the engine's rails and fills engine->card: a rail that cannot listen, or whose device cannot be opened, is left out with
 * a warning, so that the engine's rails become those of the card. */
void nezha_door_open(struct nezha_door *door, struct nezha_engine *engine, struct nezha_contact_list *contacts);

/* Closes the sockets; the devices stay the engine's. */
void nezha_door_close(struct nezha_door *door);

/* Whether it waits for a descriptor to accept with, so that the sockets are not to be polled; lowers *next (ns) to when that ends. */
bool nezha_door_deaf(const struct nezha_door *door, uint64_t *next);

/* Somebody is at the door of the card's rail: all who are come in. */
void nezha_door_accept(struct nezha_door *door, int rail);

/* A stranger could not say what those of the job can, and has gone: many of them, one after the other, are a crowd, too. */
void nezha_door_turned_away(struct nezha_door *door);

#endif
