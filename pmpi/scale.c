/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/scale.h"

#include <stdlib.h>

#include "pmpi/context.h"
#include "tuning/status.h"

/* The processes of `comm` as ranks of MPI_COMM_WORLD. */
static void translate(MPI_Comm comm, int size, int *own, int *process)
{
	MPI_Group world, group;

	for (int i = 0; i < size; i++)
		own[i] = i;
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	PMPI_Comm_group(comm, &group);
	PMPI_Group_translate_ranks(group, size, own, world, process);
	PMPI_Group_free(&group);
	PMPI_Group_free(&world);
}

/* `members` has a zero for each node of the job. */
static int count(const int *process, int size, int *members, struct nezha_scale *out)
{
	int nodes = 0, ppn = 0;

	for (int i = 0; i < size; i++) {
		int *here;

		if (process[i] < 0 || process[i] >= nezha_context.job.ranks)
			return NEZHA_ERR_UNSUPPORTED;
		here = &members[nezha_context.job.node[process[i]]];
		if (++*here == 1)
			nodes++;
		if (*here > ppn)
			ppn = *here;
	}
	*out = (struct nezha_scale){ .ranks = size, .nodes = nodes, .ppn = ppn };
	return NEZHA_OK;
}

int nezha_scale_find(MPI_Comm comm, struct nezha_scale *out)
{
	int size = 0, status = NEZHA_ERR_NOMEM;
	int *own, *process, *members;

	if (PMPI_Comm_size(comm, &size) != MPI_SUCCESS || size < 1)
		return NEZHA_ERR_UNSUPPORTED;
	own = malloc((size_t)size * sizeof(*own));
	process = malloc((size_t)size * sizeof(*process));
	members = calloc((size_t)nezha_context.job.scale.nodes, sizeof(*members));
	if (own && process && members) {
		translate(comm, size, own, process);
		status = count(process, size, members, out);
	}
	free(members);
	free(process);
	free(own);
	return status;
}
