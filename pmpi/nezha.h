/* SPDX-License-Identifier: BSD-3-Clause
 * For programs and tools that want to know what Nezha does in their own process.  Nothing has to be linked:
 * libnezha_pmpi.so is preloaded or it is not, and dlsym tells, as in
 *
 *   void *self = dlopen(NULL, RTLD_LAZY);
 *   nezha_rail_counters_fn *counters = (nezha_rail_counters_fn *)dlsym(self, NEZHA_RAIL_COUNTERS);
 *
 * NULL: Nezha is not in this process. */
#ifndef NEZHA_H
#define NEZHA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEZHA_RAIL_COUNTERS "nezha_rail_counters"

struct nezha_rail_counter {
	char device[16];       /* "eth1"; other hosts may have other names for the same rail */
	char subnet[24];       /* "10.1.0.0/16": the same on all hosts; of an aggregator its address and port, of SHARP the device */
	uint64_t bytes;        /* payload handed to this rail by this process since its MPI_Init, never reset */
};

/* Fills out[0 .. max-1] as far as there are rails, and returns how many rails the process has, which may be more than `max`: at
 * most 12, 8 and 4 aggregators or SHARP; 0 before the first reduction that goes over rails, after MPI_Finalize, and where
 * Nezha is switched off.
 * `out` may be NULL if max is 0.  Local; any thread, any time; takes locks, so it is not for signal handlers. */
typedef size_t nezha_rail_counters_fn(struct nezha_rail_counter *out, size_t max);
nezha_rail_counters_fn nezha_rail_counters;

#ifdef __cplusplus
}
#endif

#endif
