/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Pcontrol: 0 switches off, 1 on, 2 resets the report.  All ranks call it between the same calls. */
#include <mpi.h>

#include "pmpi/calls.h"
#include "pmpi/context.h"
#include "tuning/report.h"

int nezha_mpi_pcontrol(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                       nezha_word caller)
{
	int level = (int)a;

	if (level == 0 || level == 1)
		nezha_context.paused = !level;
	if (level == 2)
		nezha_report_reset(nezha_context.report);
	nezha_context_aim();
	return nezha_native(NEZHA_CALL_Pcontrol)(a, b, c, d, e, f, caller);
}
