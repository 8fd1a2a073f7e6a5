/* SPDX-License-Identifier: BSD-3-Clause
 * A rail whose carrier is back is used again at once, by both its ends.  Only the host that had lost it is told by its kernel; it tells
 * its neighbours, whose carriers never went, over the control connections of other rails (BACK).
 *
 * That alone is not enough.  With the carrier the kernel forgets where the neighbours are, and the next packet to one of them,
 * which TCP sends again by itself a few milliseconds later, makes it ask for that one in vain.  Linux asks again only a second after
 * that, and until then nothing goes out.  But a host that asks for anyone tells its own place to all: so each end makes its
 * kernel ask.  Service thread only. */
#ifndef NEZHA_RAILS_REGAIN_H
#define NEZHA_RAILS_REGAIN_H

#include <stdint.h>

struct nezha_contact_list;
struct nezha_engine;
struct nezha_link;

/* What the service thread does about carriers whenever it turns: asks the interfaces that are doubted, and from time to time those that
 * have none (fd: any socket), and tells the neighbours of what is back; attempts to connect that began before are ended, so that
 * new ones begin.  Lowers *next to when it has to be done again; with all carriers there it does nothing.  The lock is not held. */
void nezha_regain_turn(struct nezha_engine *engine, struct nezha_contact_list *contacts, int fd, uint64_t now, uint64_t *next);

/* The peer of `link` (NULL: a left neighbour) says that its rail, `rail` of ours, has its carrier back.  The lock is not held. */
void nezha_regain_heard(struct nezha_engine *engine, struct nezha_link *link, uint32_t rail);

#endif
