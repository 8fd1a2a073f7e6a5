/* SPDX-License-Identifier: BSD-3-Clause
 * What this host is like, as far as a tuning table depends on it. */
#ifndef NEZHA_RAILS_FINGERPRINT_H
#define NEZHA_RAILS_FINGERPRINT_H

#include <stddef.h>

#include "rails/nic.h"
#include "tuning/fingerprint.h"

/* Fills in all but `mpi`, which is "" then: the host by machine and processors, the topology by how many rails
 * it has, their nominal speed and MTU, the rails by subnet; in the order of the subnets, whatever theirs is.  A few system
 * calls. */
void nezha_fingerprint_host(const struct nezha_rail_nic *rails, size_t count, struct nezha_fingerprint *out);

#endif
