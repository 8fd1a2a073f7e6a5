/* SPDX-License-Identifier: BSD-3-Clause
 * Allreduce of a communicator with several ranks on a node, as one over its nodes, so that each byte crosses a NIC once for
 * each node: the ranks of a node reduce-scatter through shared memory (nodecall.h), its carriers reduce their pieces with
 * those of the other nodes over the rails, each in a ring of its own (team.h), and the ranks of the node gather the results.
 *
 *   create -> exchange cards and offers -> connect -> AND of the masks over the ranks -> activate
 *   allreduce                       collective
 *   destroy
 *
 * The order of folding is that of the ranks within a node, then that of the ring of the nodes in the order of their first
 * ranks: it depends on count, type, placement and block size.  Threads: as team.h says of teams. */
#ifndef NEZHA_RAILS_HIERARCHY_H
#define NEZHA_RAILS_HIERARCHY_H

#include "rails/node.h"
#include "rails/team.h"

struct nezha_hierarchy;

/* Local.  `node[i]`, 0 to nodes - 1, is the node of rank i < ranks of the communicator, nodes >= 2; `rank` is the caller's place.
 * *offer is for the other ranks: the one of a node's first rank counts.  NEZHA_ERR_NOMEM, NEZHA_ERR_SYSTEM: no memory can be
 * shared; NEZHA_ERR_UNSUPPORTED: too many ranks on the node. */
int nezha_hierarchy_create(struct nezha_engine *engine, const int *node, int ranks, int nodes, int rank,
                           struct nezha_hierarchy **out, struct nezha_node_offer *offer);

/* The communicator's rank whose offer counts here. */
int nezha_hierarchy_host(const struct nezha_hierarchy *hierarchy);

/* The communicator's rank whose id this process's ring takes, its first one: an aggregator knows rings by their ids. */
int nezha_hierarchy_leader(const struct nezha_hierarchy *hierarchy);

/* Local, with the time limit of nezha_team_connect, whose mask *rails_ok becomes; all bits for a rank that is no carrier; 0 if
 * anything keeps this rank from taking part.  `cards` of all ranks in the communicator's order; id as nezha_team_create has it. */
void nezha_hierarchy_connect(struct nezha_hierarchy *hierarchy, const struct nezha_card *cards,
                             const struct nezha_node_offer *offer, uint64_t id, double timeout_s, uint32_t *rails_ok);

/* All ranks are in. */
void nezha_hierarchy_activate(struct nezha_hierarchy *hierarchy, uint32_t rails);

/* This process's ring; NULL: it is no carrier, or not connected.  The hierarchy's. */
struct nezha_team *nezha_hierarchy_ring(const struct nezha_hierarchy *hierarchy);

/* As nezha_allreduce, over all ranks; way->shared and ->work must be 0. */
int nezha_hierarchy_allreduce(struct nezha_hierarchy *hierarchy, const void *sendbuf, void *recvbuf, uint64_t count,
                              enum nezha_type type, enum nezha_op op, const struct nezha_way *way);

/* As nezha_team_give_up: calls in progress end with an error, here and on the other ranks.  Any thread. */
void nezha_hierarchy_give_up(struct nezha_hierarchy *hierarchy);

/* As nezha_team_attend; ranks of this node count, too. */
int nezha_hierarchy_attend(struct nezha_hierarchy *hierarchy);

/* Payload bytes that the calling rank handed to rail r during its last allreduce. */
uint64_t nezha_hierarchy_last_bytes(const struct nezha_hierarchy *hierarchy, size_t rail);

/* Not collective; no call is in progress.  NULL is allowed. */
void nezha_hierarchy_destroy(struct nezha_hierarchy *hierarchy);

#endif
