/* SPDX-License-Identifier: BSD-3-Clause
 * How fast a path's bytes leave this host while its interface holds them.  What had been given to the interface at one look and is
 * still there at the next has waited all the time between: so it was the interface, not we, that set the pace.  That takes neither
 * a long queue nor punctual acknowledgements, and so measures calls too short for either; their stretches are put together.
 * A path that a switch or its receiver holds back has nothing waiting here, and is not measured so.  Pure. */
#ifndef NEZHA_RAILS_DEPARTURES_H
#define NEZHA_RAILS_DEPARTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/path_sample.h"

/* All zero at the beginning, and for each new connection. */
struct nezha_departures {
	double bytes, time;     /* what left in the stretches so far, and their seconds; the user puts both to 0 */
	uint64_t since;         /* what was written when they began */
	uint64_t left;          /* the most that was seen to have left in this stretch */
	double silence;         /* s of this stretch since the last departure */
	bool running;           /* a stretch has begun: it reaches from departure to departure */
};

/* The interval between two looks.  counts: nothing else speaks against it.  longest: seconds without a departure that are no stall. */
void nezha_departures_add(struct nezha_departures *departures, const struct nezha_path_sample *from,
                          const struct nezha_path_sample *to, bool counts, double longest);

#endif
