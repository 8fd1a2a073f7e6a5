/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/scale.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/context.h"
#include "tuning/status.h"

/* The processes of `comm` as ranks of MPI_COMM_WORLD; false: the library has no memory for that. */
static bool translate(MPI_Comm comm, int size, int *own, int *process)
{
	MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
	bool done;

	for (int i = 0; i < size; i++)
		own[i] = i;
	done = PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS && PMPI_Comm_group(comm, &group) == MPI_SUCCESS &&
	       PMPI_Group_translate_ranks(group, size, own, world, process) == MPI_SUCCESS;
	if (group != MPI_GROUP_NULL)
		PMPI_Group_free(&group);
	if (world != MPI_GROUP_NULL)
		PMPI_Group_free(&world);
	return done;
}

/* Renumbers the job's nodes by those that the processes are on; `number` has a -1 for each node of the job. */
static int renumber(const int *process, int size, int *number, int *node)
{
	int nodes = 0;

	for (int i = 0; i < size; i++) {
		int *here;

		if (process[i] < 0 || process[i] >= nezha_context.job.ranks)
			return NEZHA_ERR_UNSUPPORTED;
		here = &number[nezha_context.job.node[process[i]]];
		if (*here < 0)
			*here = nodes++;
		node[i] = *here;
	}
	return NEZHA_OK;
}

int nezha_scale_nodes(MPI_Comm comm, int size, int *node)
{
	int *own = malloc((size_t)size * sizeof(*own)), *process = malloc((size_t)size * sizeof(*process));
	int *number = malloc((size_t)nezha_context.job.scale.nodes * sizeof(*number));
	int status = NEZHA_ERR_NOMEM;

	if (own && process && number && translate(comm, size, own, process)) {
		memset(number, 0xff, (size_t)nezha_context.job.scale.nodes * sizeof(*number));
		status = renumber(process, size, number, node);
	}
	free(number);
	free(process);
	free(own);
	return status;
}

/* `members` has a zero for each rank. */
static void count(const int *node, int size, int *members, struct nezha_scale *out)
{
	int nodes = 0, ppn = 0;

	for (int i = 0; i < size; i++) {
		int here = ++members[node[i]];

		if (here == 1)
			nodes++;
		if (here > ppn)
			ppn = here;
	}
	*out = (struct nezha_scale){ .ranks = size, .nodes = nodes, .ppn = ppn };
}

int nezha_scale_find(MPI_Comm comm, struct nezha_scale *out)
{
	int size = 0, status = NEZHA_ERR_NOMEM;
	int *node, *members;

	if (PMPI_Comm_size(comm, &size) != MPI_SUCCESS || size < 1)
		return NEZHA_ERR_UNSUPPORTED;
	node = malloc((size_t)size * sizeof(*node));
	members = calloc((size_t)size, sizeof(*members));
	if (node && members)
		status = nezha_scale_nodes(comm, size, node);
	if (status == NEZHA_OK)
		count(node, size, members, out);
	free(members);
	free(node);
	return status;
}
