/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/place.h"

#include <stdlib.h>

#include "tuning/status.h"

/* The least number of ranks on a node; counts[] becomes how many each number of a node has. */
static int least(const int *node, int ranks, int nodes, int *counts)
{
	int fewest = ranks;

	for (int i = 0; i < ranks; i++)
		counts[node[i]]++;
	for (int k = 0; k < nodes; k++)
		if (counts[k] && counts[k] < fewest)
			fewest = counts[k];
	return fewest;
}

static void list_here(const int *node, int ranks, int rank, struct nezha_place *place)
{
	for (int i = 0; i < ranks; i++) {
		if (node[i] != node[rank])
			continue;
		if (i == rank)
			place->local = place->ranks;
		place->here[place->ranks++] = i;
	}
}

/* Rank number `index` of each node, in the order of the nodes' first ranks: position[] is what a number of a node has in that
 * order, or -1, seen[] how many of its ranks came so far, both of them as such on entry. */
static void list_ring(const int *node, int ranks, int rank, int index, int *position, int *seen,
                      struct nezha_place *place)
{
	for (int i = 0; i < ranks; i++) {
		if (position[node[i]] < 0)
			position[node[i]] = place->nodes++;
		if (seen[node[i]]++ == index)
			place->ring[position[node[i]]] = i;
	}
	place->position = position[node[rank]];
}

int nezha_place_make(const int *node, int ranks, int nodes, int rank, struct nezha_place *out)
{
	struct nezha_place place = {
		.here = malloc((size_t)ranks * sizeof(int)),
		.ring = malloc((size_t)nodes * sizeof(int)),
	};
	int *counts = calloc((size_t)nodes, sizeof(int)), *seen = calloc((size_t)nodes, sizeof(int));
	int *position = malloc((size_t)nodes * sizeof(int));
	int status = NEZHA_ERR_NOMEM;

	if (!place.here || !place.ring || !counts || !seen || !position)
		goto done;
	for (int k = 0; k < nodes; k++)
		position[k] = -1;
	place.carriers = least(node, ranks, nodes, counts);
	list_here(node, ranks, rank, &place);
	list_ring(node, ranks, rank, place.local < place.carriers ? place.local : 0, position, seen, &place);
	*out = place;
	status = NEZHA_OK;
done:
	free(counts);
	free(seen);
	free(position);
	if (status != NEZHA_OK)
		nezha_place_free(&place);
	return status;
}

void nezha_place_free(struct nezha_place *place)
{
	free(place->here);
	free(place->ring);
	place->here = place->ring = NULL;
}
