/* SPDX-License-Identifier: BSD-3-Clause
 * What all ranks of MPI_COMM_WORLD have in common: rank 0's settings, table and key, and which rank is
 * on which node. No MPI in here. */
#ifndef NEZHA_PMPI_JOB_H
#define NEZHA_PMPI_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/team.h"
#include "tuning/plan.h"
#include "tuning/settings.h"
#include "tuning/table.h"

struct nezha_job {
	int rank, ranks;                  /* in MPI_COMM_WORLD */
	bool spawned;                     /* by another job, whose environment it has */
	struct nezha_settings settings;   /* owned */
	struct nezha_table *table;        /* owned */
	unsigned char key[NEZHA_KEY_BYTES];
	int *node;                        /* owned; of each rank, 0 .. scale.nodes - 1 */
	struct nezha_scale scale;         /* of MPI_COMM_WORLD */
};

/* Rank 0: reads the environment and the table and draws the key.  What is wrong with them is logged, and
 * is an error (NEZHA_ERR_INVALID) unless it is only an unknown name.  job->rank, ->ranks and
 * ->spawned are set before. */
int nezha_job_read(struct nezha_job *job);

/* Rank 0: numbers the nodes by the ranks' host hashes (job->ranks of them). */
int nezha_job_place(struct nezha_job *job, const uint64_t *hosts);

/* Another rank: its own environment, which counts until rank 0's settings are here.  Problems are not
 * told. */
int nezha_job_guess(struct nezha_job *job);

/* As bytes for the other ranks (malloc'd, the caller frees), and from them, in place of what the job had. */
int nezha_job_pack(const struct nezha_job *job, void **out, size_t *len);
int nezha_job_unpack(struct nezha_job *job, const void *bytes, size_t len);

/* The smallest message, bytes, that some communicator of the job may send to the rails; UINT64_MAX: none can. */
uint64_t nezha_job_floor(const struct nezha_job *job);

/* Frees what the job owns. */
void nezha_job_free(struct nezha_job *job);

#endif
