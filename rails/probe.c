/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/probe.h"

#define EVERY (16u << 20)       /* bytes without a measurement that are followed by a probe, ... */
#define DOUBLINGS 2             /* ... twice and then four times as many before the next ones, if no doubt arises */
#define DOUBTED (1u << 20)      /* bytes that get the chance to settle a doubt by themselves, as large calls do */
#define PAUSE (4u << 20)        /* bytes between two probes at least, however often there is a doubt */

bool nezha_probe_is_due(struct nezha_probe *probe, struct nezha_estimator *estimator, bool able)
{
	bool doubt, due;

	if (!estimator->doubt)
		probe->doubted = 0;
	if (probe->measured != estimator->measured)
		probe->unmeasured = 0;
	probe->measured = estimator->measured;
	doubt = probe->doubted > DOUBTED && probe->unprobed > PAUSE;
	due = able && (doubt || probe->unmeasured > (uint64_t)EVERY << probe->certain);
	if (due) {
		probe->certain = doubt ? 0 : probe->certain < DOUBLINGS ? probe->certain + 1 : DOUBLINGS;
		probe->unmeasured = probe->unprobed = probe->doubted = 0;
		estimator->doubt = false;
	}
	return due;
}

void nezha_probe_count(struct nezha_probe *probe, const struct nezha_estimator *estimator, uint64_t bytes)
{
	probe->unmeasured += bytes;
	probe->unprobed += bytes;
	probe->doubted += estimator->doubt ? bytes : 0;
}
