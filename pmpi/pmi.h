/* SPDX-License-Identifier: BSD-3-Clause
 * Asks the launcher of MPICH (Hydra, over the process management interface PMI-1) which rank is on which
 * node. */
#ifndef NEZHA_PMPI_PMI_H
#define NEZHA_PMPI_PMI_H

/* Sets node[r] to the place of rank r's host in the launcher's list, from 0, for all ranks of
 * MPI_COMM_WORLD. NEZHA_ERR_UNSUPPORTED: there is no such launcher, or it does not answer (within 2 s).
 * Only for a process that is about to abort: the library's own talk with the launcher must be at rest. */
int nezha_pmi_nodes(int *node, int ranks);

/* The answer's text, "(vector,(first node,nodes,ranks on each),...)": as many blocks as it takes, over and
 * over.  NEZHA_ERR_INVALID if it is anything else. */
int nezha_pmi_parse(const char *mapping, int *node, int ranks);

#endif
