/* SPDX-License-Identifier: BSD-3-Clause
 * Who does what where several ranks of a communicator share a node: the first n ranks of each node, n the least number of
 * ranks that any node has, are its carriers.  Carrier c of all nodes are a ring, which takes piece c of a vector over the
 * rails; the further ranks of a node only contribute and collect.  Pure. */
#ifndef NEZHA_RAILS_PLACE_H
#define NEZHA_RAILS_PLACE_H

struct nezha_place {
	int nodes;       /* that the communicator's ranks are on */
	int carriers;    /* on each node; and so the number of rings */
	int ranks;       /* of the communicator on this process's node */
	int local;       /* which of these this process is, in the communicator's order; a carrier if < carriers */
	int *here;       /* owned; the communicator's ranks on this node, in its order */
	int *ring;       /* owned; a carrier's ring: one rank of each node, the nodes in the order of their first ranks;
	                  * of another rank: the first ring */
	int position;    /* of this process's node in a ring */
};

/* `node[i]` tells the node of the communicator's rank i (< ranks) by any number from 0 to nodes - 1, `rank` is this
 * process's.  NEZHA_ERR_NOMEM. */
int nezha_place_make(const int *node, int ranks, int nodes, int rank, struct nezha_place *out);

/* Frees what it owns. */
void nezha_place_free(struct nezha_place *place);

#endif
