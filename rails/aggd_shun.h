/* SPDX-License-Identifier: BSD-3-Clause
 * The addresses whose packets have come to the daemon past the XDP program.  Once may be chance (a port that goes down lets a
 * packet or two by), so the first time only ends the session; who does it again is left to the daemon for longer each time.
 * Pure. */
#ifndef NEZHA_RAILS_AGGD_SHUN_H
#define NEZHA_RAILS_AGGD_SHUN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define AGGD_SHUN_MOST 64

/* All zero at the beginning.  Times are nezha_now(). */
struct aggd_shun {
	struct aggd_shun_entry {
		struct in_addr address;
		uint64_t pause;          /* ns */
		uint64_t until;
	} list[AGGD_SHUN_MOST];
	int count;
};

/* A packet of `address` has come past the program.  False: there is no more room, until some of the others were good for a
 * while; till then everybody is shunned. */
bool aggd_shun_add(struct aggd_shun *shun, struct in_addr address, uint64_t now);

/* Whether sessions with a rank at `address` are the daemon's alone. */
bool aggd_shun_has(const struct aggd_shun *shun, struct in_addr address, uint64_t now);

#endif
