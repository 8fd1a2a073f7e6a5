/* SPDX-License-Identifier: BSD-3-Clause
 * The carrier of the rails' interfaces.  The kernel tells of a change by netlink, but holds such news back for up to a second
 * after the last one, of whatever interface; so a path that stalls has its interface asked at once. */
#ifndef NEZHA_RAILS_CARRIER_H
#define NEZHA_RAILS_CARRIER_H

#include <stdint.h>

struct nezha_engine;

/* A netlink socket that tells of changes; -1: there is none (told at info). */
int nezha_carrier_open(void);

/* Takes in what there is on it.  The engine's lock is not held. */
void nezha_carrier_read(int carrier, struct nezha_engine *engine);

/* Asks the interfaces of the rails in the mask; if one has no carrier, all paths over it are lost.  fd: any socket.  The lock is
 * not held: the kernel may let the caller wait while it configures some interface. */
void nezha_carrier_ask(struct nezha_engine *engine, uint32_t rails, int fd);

/* Asks those that have had none whether they have one again; their paths are then tried at once.  Otherwise as above. */
void nezha_carrier_ask_dark(struct nezha_engine *engine, uint32_t rails, int fd);

#endif
