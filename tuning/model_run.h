/* SPDX-License-Identifier: BSD-3-Clause
 * A run: calls of a small class, one after another and all the same way (calls of other classes may lie between), whose median on this
 * rank is one sample of the model's.
 * A single call says little there: its time varies by a half, and the first ones after another way's pay for what those have left
 * behind (shapers' debts or bursts, cold caches).  Pure. */
#ifndef NEZHA_TUNING_MODEL_RUN_H
#define NEZHA_TUNING_MODEL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define NEZHA_RUN_CALLS 4

struct nezha_model_run {
	uint64_t values[NEZHA_RUN_CALLS]; /* picoseconds per byte, of this rank's calls */
	uint32_t count;
};

/* Takes in the call at `place` (from 0 on) of a run: `ns` for `bytes` (>= 1).  True: the run is complete.  A call that does not follow
 * on the one before is left out, and with it the rest of the run; so is one from NEZHA_RUN_CALLS on. */
bool nezha_run_add(struct nezha_model_run *run, uint32_t place, uint64_t ns, uint64_t bytes);

/* The ns that a call of `bytes` takes by the median of a complete run. */
uint64_t nezha_run_time(const struct nezha_model_run *run, uint64_t bytes);

#endif
