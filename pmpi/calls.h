/* SPDX-License-Identifier: BSD-3-Clause
 * The intercepted calls (entry.h), one file for each, and what programs may ask (nezha.h). */
#ifndef NEZHA_PMPI_CALLS_H
#define NEZHA_PMPI_CALLS_H

#include "pmpi/entry.h"

nezha_call_fn nezha_mpi_allreduce, nezha_mpi_allreduce_c;
nezha_call_fn nezha_mpi_init, nezha_mpi_init_thread, nezha_mpi_finalize;
nezha_call_fn nezha_mpi_comm_set_info, nezha_mpi_comm_dup_with_info;
nezha_call_fn nezha_mpi_pcontrol;
nezha_rail_counters_fn nezha_mpi_rail_counters;

#endif
