/* SPDX-License-Identifier: BSD-3-Clause
 * What the stub loads: compiled once with the headers of each MPI, linked to none.  MPI's symbols are
 * those that the process has. */
#include "pmpi/calls.h"
#include "pmpi/context.h"
#include "pmpi/tuner.h"

__attribute__((visibility("default"))) nezha_backend_fn nezha_backend_3;

const struct nezha_backend *nezha_backend_3(const struct nezha_host *host)
{
	static const struct nezha_backend backend = {
		.calls = {
			[NEZHA_CALL_Allreduce] = nezha_mpi_allreduce,
			[NEZHA_CALL_Allreduce_c] = nezha_mpi_allreduce_c,
			[NEZHA_CALL_Init] = nezha_mpi_init,
			[NEZHA_CALL_Init_thread] = nezha_mpi_init_thread,
			[NEZHA_CALL_Finalize] = nezha_mpi_finalize,
			[NEZHA_CALL_Comm_set_info] = nezha_mpi_comm_set_info,
			[NEZHA_CALL_Comm_dup_with_info] = nezha_mpi_comm_dup_with_info,
			[NEZHA_CALL_Pcontrol] = nezha_mpi_pcontrol,
		},
		.rail_counters = nezha_mpi_rail_counters,
		.tuner = &nezha_tuner,
	};

	nezha_context.host = host;
	return &backend;
}
