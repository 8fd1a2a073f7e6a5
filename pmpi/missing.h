/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks that have no Nezha: messages that say which and where. */
#ifndef NEZHA_PMPI_MISSING_H
#define NEZHA_PMPI_MISSING_H

/* Tells that some ranks of MPI_COMM_WORLD said nothing for `seconds`: those that have no entry in
 * `hosts`, except for rank 0 itself; hosts[r] is the name of the host of rank r, which helps to name the
 * hosts of the others. */
void nezha_missing_tell(const char *const *hosts, int ranks, double seconds);

/* Another rank than 0, `rank` on `host`: rank 0 said nothing. */
void nezha_missing_tell_leader(int rank, int ranks, const char *host, double seconds);

#endif
