/* SPDX-License-Identifier: BSD-3-Clause
 * A path that is lost again and again soon after it came back is used less and less: each time it is left alone for longer,
 * so that a flapping rail does not cost every call a failure.  A path that was up for a while is taken back at once.  Pure. */
#ifndef NEZHA_RAILS_DAMPING_H
#define NEZHA_RAILS_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at the beginning.  Times are nezha_now(). */
struct nezha_damping {
	uint64_t up_since;
	uint64_t pause;     /* ns that it is left alone after a loss; 0: it is steady */
	uint64_t until;     /* no attempt to connect before this */
};

/* The path has come (back) up. */
void nezha_damping_up(struct nezha_damping *damping, uint64_t now);

/* The path is lost.  `dice` is any number: pauses of different paths shall differ.  Whether it was steady: it may be connected again at
 * once, whatever there was before. */
bool nezha_damping_lost(struct nezha_damping *damping, uint64_t now, uint64_t dice);

/* When to connect what would be due at `due`. */
static inline uint64_t nezha_damping_due(const struct nezha_damping *damping, uint64_t due)
{
	return due > damping->until ? due : damping->until;
}

#endif
