/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/origin.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "pmpi/context.h"
#include "pmpi/rails.h"
#include "tuning/log.h"
#include "tuning/text.h"

/* "Open MPI 4.1.4" or "MPICH 4.0.2", or the library's own first line if it is another's. */
static void name_mpi(char *out, size_t len)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", version[32];
	int length;

	PMPI_Get_library_version(text, &length);
	if (sscanf(text, "Open MPI v%31[^, \n]", version) == 1)
		snprintf(out, len, "Open MPI %s", version);
	else if (sscanf(text, "MPICH Version: %31s", version) == 1)
		snprintf(out, len, "MPICH %s", version);
	else
		snprintf(out, len, "%.*s", (int)strcspn(text, "\n"), text);
	nezha_text_clean(out, strlen(out));
}

void nezha_origin_here(struct nezha_fingerprint *out)
{
	nezha_rails_describe(out);
	name_mpi(out->mpi, sizeof(out->mpi));
}

void nezha_origin_check(void)
{
	const struct nezha_job *job = &nezha_context.job;
	struct nezha_fingerprint here;
	char differences[800];

	if (job->rank != 0 || !job->settings.enable || !*job->settings.table)
		return;
	nezha_origin_here(&here);
	if (nezha_fingerprint_differs(job->table, &here, differences, sizeof(differences)))
		nezha_warn("NEZHA_TABLE=%s was measured elsewhere, its choices may not be the best here "
		           "(nezha-tune makes another): %s", job->settings.table, differences);
}
