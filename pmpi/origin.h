/* SPDX-License-Identifier: BSD-3-Clause
 * Whether the job's tuning table was measured where the job runs. */
#ifndef NEZHA_PMPI_ORIGIN_H
#define NEZHA_PMPI_ORIGIN_H

#include "tuning/fingerprint.h"

/* Where this process runs: its MPI, its host, its rails (nezha_rails_describe).  Local. */
void nezha_origin_here(struct nezha_fingerprint *out);

/* Rank 0, at start: one warning if the job's table was measured elsewhere.  Never fails: a table that does not
 * fit makes calls slower, not wrong. */
void nezha_origin_check(void);

#endif
