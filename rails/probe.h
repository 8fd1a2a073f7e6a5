/* SPDX-License-Identifier: BSD-3-Clause
 * When is a path's rate measured by a probe again?  Pure; kept for each path, asked whenever a call begins.  A probe makes
 * the call that it meets wait for its 6 ms, so calls that measure a path by themselves get none. */
#ifndef NEZHA_RAILS_PROBE_H
#define NEZHA_RAILS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/estimator.h"

/* All zero at the beginning.  Bytes are those given to the path's link since there is one, over whichever path they go. */
struct nezha_probe {
	uint64_t given;         /* bytes in all, */
	uint64_t seen;          /* and when last looked at while able */
	uint64_t measured;      /* the estimator's count when last looked at, */
	uint64_t unmeasured;    /* and the bytes since it changed */
	uint64_t unprobed;      /* bytes since the last probe */
	uint64_t doubted;       /* bytes since the estimator has a doubt */
	int certain;            /* probes since there was a doubt, up to a limit */
};

/* Whether it is time for one; if `able` to send it now, that is taken for done, and the doubt for settled.  link: bytes per second of
 * all its paths that are up. */
bool nezha_probe_is_due(struct nezha_probe *probe, struct nezha_estimator *estimator, double link, bool able);

/* So many bytes were given to the link. */
void nezha_probe_count(struct nezha_probe *probe, const struct nezha_estimator *estimator, uint64_t bytes);

#endif
