/* SPDX-License-Identifier: BSD-3-Clause
 * Who of those that shake hands has to go when there are too many.  Pure.
 *
 * Nobody is turned away at the door, since nobody knows who is there; so whoever stands in it longest makes room, but first
 * where one address has more than the others: a crowd from one host pushes out only itself.  Hosts of the job come last of
 * all. */
#ifndef NEZHA_RAILS_STRANGERS_H
#define NEZHA_RAILS_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_STRANGERS_MOST 256     /* that the choice can be among */

struct nezha_stranger {
	uint32_t address;    /* IPv4, any byte order */
	bool ours;           /* a process of the job, or one that has joined, has this address */
	uint64_t since;      /* ns */
};

/* The index of the one that goes; count is 1 to NEZHA_STRANGERS_MOST. */
size_t nezha_strangers_choose(const struct nezha_stranger *strangers, size_t count);

#endif
