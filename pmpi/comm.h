/* SPDX-License-Identifier: BSD-3-Clause
 * What Nezha knows of a communicator: an attribute of it, made at its first call that is looked at, gone
 * with it. */
#ifndef NEZHA_PMPI_COMM_H
#define NEZHA_PMPI_COMM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tuning/plan.h"

struct nezha_helper;
struct nezha_hierarchy;
struct nezha_model;
struct nezha_report_comm;
struct nezha_team;

struct nezha_comm {
	LIST_ENTRY(nezha_comm) entry;         /* nezha_context.comms */
	struct nezha_scale scale;
	enum nezha_reason reason;             /* RULE: the table decides; else why all calls are native */
	uint32_t rails;                       /* of those in common: that lead from each rank to the next; bits as nezha_team_rails_named's */
	bool refused;                         /* the info key nezha_enable says no */
	struct nezha_team *team;              /* owned; of one rank a node.  NULL: not opened, or: */
	struct nezha_hierarchy *hierarchy;    /* owned; of several ranks on a node */
	struct nezha_model *model;            /* owned; NULL: the table decides alone */
	struct nezha_helper *helper;          /* owned; NULL: no call needed it yet */
	struct nezha_report_comm *report;     /* NULL: no report */
	uint64_t checked;                     /* calls of it that NEZHA_CHECK=plan compared */
	int holds;                            /* nezha_comm_hold without its release */
	bool gone;                            /* the communicator was freed meanwhile: its handle is of no use */
};

/* Makes the attribute's key; after MPI_Init.  An MPI error code. */
int nezha_comm_begin(void);

/* The state of `comm`, made if there is none yet.  Local.  The handle need not be valid, only not
 * MPI_COMM_NULL: then MPI's own error handling has run and its error code is returned. */
int nezha_comm_find(MPI_Comm comm, struct nezha_comm **out);

/* The state stays until the release, even if an error handler frees the communicator in the midst of a call.  Local. */
void nezha_comm_hold(struct nezha_comm *comm);
void nezha_comm_release(struct nezha_comm *comm);

/* Whether its rails are open; on all ranks alike. */
static inline bool nezha_comm_is_open(const struct nezha_comm *comm)
{
	return comm->team || comm->hierarchy;
}

/* The team that takes this rank's bytes over the rails; NULL: none does, other ranks of its node do.  It is open. */
struct nezha_team *nezha_comm_ring(const struct nezha_comm *comm);

/* From now on all calls go native, on all ranks alike, for this reason. */
void nezha_comm_retire(struct nezha_comm *comm, enum nezha_reason reason);

/* The info key nezha_enable was set, on all ranks alike. */
void nezha_comm_enable(struct nezha_comm *comm, bool enable);

/* Ends all teams, in MPI_Finalize: the communicators themselves may live on. */
void nezha_comm_end(void);

/* This rank cannot go on: calls fail, on all ranks, instead of waiting for it. */
void nezha_comm_give_up(struct nezha_comm *comm);

/* MPI ends while calls are in progress: those of all communicators fail. */
void nezha_comm_give_up_all(void);

#endif
