/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEZHA_RAILS_PATH_SAMPLE_H
#define NEZHA_RAILS_PATH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* What a path's transport tells of itself at one moment.  Byte counts since the path was opened. */
struct nezha_path_sample {
	uint64_t time;        /* ns, nezha_now() */
	uint64_t written;     /* bytes handed to the transport */
	uint64_t sent;        /* of these: that the transport has begun to send */
	uint64_t acked;       /* of these: known to have arrived */
	uint64_t left;        /* of these: known to have left this host, somewhat too few while others wait; 0: the transport does not tell */
	uint64_t shut;        /* us so far in which the receiver's window was shut */
	uint64_t quiet;       /* ns since the peer's host last answered anything; 0: the transport does not tell, and looks to that itself */
	uint64_t window;      /* bytes that may be sent and not acknowledged, for all that the way allows; 0: the transport does not tell */
	uint32_t rtt;         /* us: the shortest round trip seen, what an empty path takes */
	bool narrow;          /* the receiver's window holds the sender back at this moment */
	bool in_flight;       /* something was sent and is not acknowledged */
	bool recovering;      /* the transport makes up for a loss that stopped it */
};

#endif
