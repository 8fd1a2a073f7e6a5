/* SPDX-License-Identifier: BSD-3-Clause
 * How pauses between attempts grow: the one rule for all that is tried again.  Pure. */
#ifndef NEZHA_TUNING_PAUSE_H
#define NEZHA_TUNING_PAUSE_H

#include <stdint.h>

/* The pause after one more attempt in vain: `least` after the first one (pause 0), then twice the one before, but no more than
 * `most`.  In whatever unit. */
static inline uint64_t nezha_pause_longer(uint64_t pause, uint64_t least, uint64_t most)
{
	uint64_t next = pause ? 2 * pause : least;

	return next < most ? next : most;
}

#endif
