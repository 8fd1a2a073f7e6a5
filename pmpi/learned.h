/* SPDX-License-Identifier: BSD-3-Clause
 * NEZHA_LEARNED: rank 0 keeps what its communicators learn and writes it down at the end. */
#ifndef NEZHA_PMPI_LEARNED_H
#define NEZHA_PMPI_LEARNED_H

struct nezha_comm;

/* At start, when it is known whether the job learns.  Where nothing will be written rank 0 says why, once.
 * NEZHA_ERR_NOMEM. */
int nezha_learned_begin(void);

/* Nothing is to be written: the job does not go by the rules that it began with. */
void nezha_learned_cancel(void);

/* The communicator is about to be forgotten.  nezha_context.lock is held. */
void nezha_learned_take(const struct nezha_comm *comm);

/* In MPI_Finalize, while the communicators are still known: writes the table.  What fails is logged. */
void nezha_learned_end(void);

#endif
