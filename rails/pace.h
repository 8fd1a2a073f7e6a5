/* SPDX-License-Identifier: BSD-3-Clause
 * When a thread that waits lets MPI progress.  Somebody may need that before he can come to what is waited for: it is done often then.
 * Once all are there only others can need it: it is done seldom, but for ever, also if each call is a short one, so the time
 * counts that was spent in calls since the last time.  Each time costs Open MPI some 14 us, which ranks that share processors
 * miss.  Pure; times in ns. */
#ifndef NEZHA_RAILS_PACE_H
#define NEZHA_RAILS_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/clock.h"

#define NEZHA_PACE_OFTEN (NEZHA_MSEC / 2)
#define NEZHA_PACE_SELDOM (4 * NEZHA_MSEC)

struct nezha_pace {
	uint64_t began;         /* this wait */
	uint64_t last;          /* when MPI got time last, moved on by what was not spent in waits */
	uint64_t spent;         /* in waits since then, at the end of the last one */
};

static inline void nezha_pace_begin(struct nezha_pace *pace, uint64_t now)
{
	pace->began = now;
	pace->last = now - pace->spent;
}

static inline void nezha_pace_end(struct nezha_pace *pace, uint64_t now)
{
	pace->spent = now - pace->last;
}

/* Whether it is time again, within this wait after `pause`, and after NEZHA_PACE_SELDOM in any case. */
static inline bool nezha_pace_is_due(const struct nezha_pace *pace, uint64_t now, uint64_t pause)
{
	return now - pace->last >= NEZHA_PACE_SELDOM || (now - pace->last >= pause && now - pace->began >= pause);
}

static inline void nezha_pace_done(struct nezha_pace *pace, uint64_t now)
{
	pace->last = now;
}

#endif
