/* SPDX-License-Identifier: BSD-3-Clause
 * Measuring a path with bytes that the receiver drops: when it is opened, and a shorter time in the midst of calls (when: probe.h). */
#ifndef NEZHA_RAILS_PROBING_H
#define NEZHA_RAILS_PROBING_H

#include "rails/link.h"

/* Begins the opening probe.  It is over when probe_left is 0 and all is acknowledged. */
void nezha_probing_begin(struct nezha_path *path);

/* Begins a shorter one. */
void nezha_probing_again(struct nezha_path *path);

/* How many bytes the probe's next record has; probe_left, which is not 0, is then what follows it. */
uint32_t nezha_probing_take(struct nezha_path *path);

/* Bytes of the probe that go before a block, at the rate that is believed. */
uint64_t nezha_probing_bytes(const struct nezha_path *path);

/* Whether the path is up and something of the probe, or of what was sent before, is under way. */
bool nezha_probing_is_on(const struct nezha_path *path);

#endif
