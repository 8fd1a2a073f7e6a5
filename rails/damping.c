/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/damping.h"

#include "rails/clock.h"
#include "tuning/pause.h"

#define STEADY (5 * NEZHA_SEC)          /* up for so long, it is believed to stay */
#define PAUSE_LEAST (50 * NEZHA_MSEC)
#define PAUSE_MOST (2 * NEZHA_SEC)

void nezha_damping_up(struct nezha_damping *damping, uint64_t now)
{
	damping->up_since = now;
}

bool nezha_damping_lost(struct nezha_damping *damping, uint64_t now, uint64_t dice)
{
	/* The first loss, and one after a good while, tell nothing of the next. */
	if (!damping->until || now - damping->up_since >= STEADY) {
		damping->pause = 0;
		damping->until = now;
		return true;
	}
	damping->pause = nezha_pause_longer(damping->pause, PAUSE_LEAST, PAUSE_MOST);
	damping->until = now + damping->pause * 3 / 4 + dice % (damping->pause / 2);
	return false;
}
