/* SPDX-License-Identifier: BSD-3-Clause
 * The end: everything is let go of within MPI_Finalize. */
#ifndef NEZHA_PMPI_FINALIZE_H
#define NEZHA_PMPI_FINALIZE_H

/* Hangs the end on MPI_COMM_SELF, whose attributes go first in MPI_Finalize, ours after all that the
 * program adds later: calls of its own callbacks still find us.  An MPI error code. */
int nezha_finalize_begin(void);

#endif
