/* SPDX-License-Identifier: BSD-3-Clause
 * The files that a job's settings name: report, timeline, what is learnt. */
#ifndef NEZHA_PMPI_JOB_FILES_H
#define NEZHA_PMPI_JOB_FILES_H

#include "tuning/settings.h"

/* Rank 0: whether they can be written, better now than after the run.  NEZHA_ERR_INVALID (one line logged). */
int nezha_job_check_files(const struct nezha_settings *settings, int rank);

/* Rank 0: makes their names whole, but the timeline's (timeline.c): the program may go to another folder before they are written.  It alone
 * writes them, and what its folders are called is nothing that the other ranks could be told as settings: after nezha_job_pack.
 * NEZHA_ERR_NOMEM. */
int nezha_job_fix_files(struct nezha_settings *settings);

/* Rank 0 of a job that another one's program has started (MPI_Comm_spawn), before the files are looked at: report and timeline get names of
 * their own, which end in the number of this process; not where the name is that of no regular file, as /dev/null.  NEZHA_ERR_NOMEM. */
int nezha_job_part_files(struct nezha_settings *settings, int rank);

#endif
