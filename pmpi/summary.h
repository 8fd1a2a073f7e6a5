/* SPDX-License-Identifier: BSD-3-Clause
 * The report at the end. */
#ifndef NEZHA_PMPI_SUMMARY_H
#define NEZHA_PMPI_SUMMARY_H

/* Writes the report, if one is wanted, to where the settings say, and frees it.  The engine still lives. */
void nezha_summary_write(void);

#endif
