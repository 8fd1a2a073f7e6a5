/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_Comm_set_info and MPI_Comm_dup_with_info: the info key nezha_enable, which some MPI libraries do
 * not keep.  Its value must be the same on all ranks, as the standard lets a library demand. */
#include <mpi.h>
#include <strings.h>

#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "tuning/log.h"

#define KEY "nezha_enable"
#define VALUE_MAX 16

/* 1 or 0 as the key says, -1 if it is not there or not understood. */
static int read_key(MPI_Info info)
{
	static const char *const yes[] = { "1", "on", "yes", "true" };
	static const char *const no[] = { "0", "off", "no", "false" };
	char value[VALUE_MAX + 1] = "";
	int found = 0;

	if (info == MPI_INFO_NULL)
		return -1;
	if (PMPI_Info_get(info, KEY, VALUE_MAX, value, &found) != MPI_SUCCESS || !found)
		return -1;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcasecmp(value, yes[i]))
			return 1;
		if (!strcasecmp(value, no[i]))
			return 0;
	}
	nezha_warn("the info key " KEY " is \"%s\"; allowed: 0 or 1", value);
	return -1;
}

static void apply(MPI_Comm handle, MPI_Info info)
{
	struct nezha_comm *comm;
	int enable;

	if (!nezha_context.on || handle == MPI_COMM_NULL)
		return;
	enable = read_key(info);
	if (enable < 0)
		return;
	if (nezha_comm_find(handle, &comm) == MPI_SUCCESS)
		nezha_comm_enable(comm, enable);
	else
		nezha_failure_tell(handle);
}

int nezha_mpi_comm_set_info(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e,
                            nezha_word f, nezha_word caller)
{
	int error = nezha_native(NEZHA_CALL_Comm_set_info)(a, b, c, d, e, f, caller);

	if (error == MPI_SUCCESS)
		apply((MPI_Comm)a, (MPI_Info)b);
	return error;
}

int nezha_mpi_comm_dup_with_info(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e,
                                 nezha_word f, nezha_word caller)
{
	int error = nezha_native(NEZHA_CALL_Comm_dup_with_info)(a, b, c, d, e, f, caller);

	if (error == MPI_SUCCESS)
		apply(*(MPI_Comm *)c, (MPI_Info)b);
	return error;
}
