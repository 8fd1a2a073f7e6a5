/* SPDX-License-Identifier: BSD-3-Clause
 * What is said over a control connection, of which the left one of two neighbours asks.  Used by the service thread only. */
#ifndef NEZHA_RAILS_CONTACT_CONTROL_H
#define NEZHA_RAILS_CONTACT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct nezha_contact;

/* Whether it is a control connection that is ready. */
bool nezha_contact_is_control(const struct nezha_contact *contact);

/* Asks the peer about a team (state ASKING); an error: destroy it. */
int nezha_contact_ask(struct nezha_contact *contact, uint64_t team, uint32_t op);

/* Tells the peer that rail `rail`, which is not the one that this connection goes over, has its carrier back; nothing if the peer
 * does not have that rail.  An error: destroy it. */
int nezha_contact_tell_back(struct nezha_contact *contact, uint32_t rail);

/* A record has come whole; an error: destroy it. */
int nezha_contact_heard(struct nezha_contact *contact);

#endif
