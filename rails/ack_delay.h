/* SPDX-License-Identifier: BSD-3-Clause
 * What is not acknowledged, and yet not before a path's next byte any more.  Acknowledgements come back on the rail's own network, behind what
 * the neighbour sends there itself: 3 to 4 ms for a path of ours that has run dry meanwhile.  Held for full it would get nothing and look slow,
 * while those whose acknowledgements come at once get too much; around the ring that goes in turn.  So what is known to have left the
 * host does not count, up to what such a delay is worth.  That is right only where the host's own interface is what holds the path
 * back: where a switch or the receiver does, what has left the host waits there, and next to nothing is ever found here.  Pure. */
#ifndef NEZHA_RAILS_ACK_DELAY_H
#define NEZHA_RAILS_ACK_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/estimator.h"

/* All zero at the beginning, and for each new connection. */
struct nezha_ack_delay {
	double away;    /* the part of the latest looks at which all that was sent, and much not acknowledged, had left the host, 0 to 1 */
};

/* There is a new sample. */
void nezha_ack_delay_look(struct nezha_ack_delay *delay, const struct nezha_path_sample *sample);

/* Whether the path is held back elsewhere than at the host's own interface. */
bool nezha_ack_delay_is_away(const struct nezha_ack_delay *delay);

/* Of what is not acknowledged in the path's latest sample, the bytes that are not before its next one, at a rate of `rate` bytes per second. */
uint64_t nezha_ack_delay_bytes(const struct nezha_ack_delay *delay, const struct nezha_path_sample *latest, double rate);

#endif
