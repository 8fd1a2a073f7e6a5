/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/summary.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/context.h"
#include "rails/host.h"
#include "rails/team.h"
#include "tuning/log.h"
#include "tuning/report.h"
#include "tuning/status.h"

#ifdef OPEN_MPI
#define MPI_NAME "Open MPI"
#else
#define MPI_NAME "MPICH"
#endif

static void tell_rails(void)
{
	struct nezha_rail_stats stats[NEZHA_STATS_MAX];
	size_t count = 0;

	if (nezha_context.engine)
		count = nezha_engine_rail_stats(nezha_context.engine, stats, NEZHA_STATS_MAX);
	for (size_t i = 0; i < count && i < NEZHA_REPORT_RAILS; i++) {
		struct nezha_report_rail rail = {
			.bytes = stats[i].bytes_sent,
			.resent = stats[i].bytes_resent,
			.failures = stats[i].failures,
			.returns = stats[i].returns,
			.wrong = stats[i].wrong,
		};

		snprintf(rail.device, sizeof(rail.device), "%.15s", stats[i].device);
		snprintf(rail.subnet, sizeof(rail.subnet), "%.23s", stats[i].subnet);
		nezha_report_rail(nezha_context.report, i, &rail);
	}
}

static void tell_registered(void)
{
	struct nezha_report_registered told = { 0 };
	struct nezha_registered memory;

	if (nezha_context.engine) {
		nezha_engine_registered(nezha_context.engine, &memory);
		told = (struct nezha_report_registered){ memory.now, memory.most, memory.limit };
	}
	nezha_report_registered(nezha_context.report, &told);
}

static void tell_job(void)
{
	const struct nezha_job *job = &nezha_context.job;
	struct nezha_report_job about = {
		.version = PACKAGE_VERSION,
		.mpi = MPI_NAME,
		.ranks = job->ranks,
		.nodes = job->scale.nodes,
		.rails = job->settings.rails,
		.table = *job->settings.table ? job->settings.table : "built-in",
		.tune = job->settings.tune,
	};

	nezha_host_identity(about.host, sizeof(about.host));
	nezha_report_job(nezha_context.report, &about);
}

static int write_file(const char *path)
{
	FILE *file = fopen(path, "we");
	int status = NEZHA_ERR_SYSTEM;

	if (file) {
		status = nezha_report_json(nezha_context.report, file);
		if (fclose(file) && status == NEZHA_OK)
			status = NEZHA_ERR_SYSTEM;
	}
	if (status != NEZHA_OK)
		nezha_error("NEZHA_REPORT=%s: the report cannot be written: %s", path,
		            status == NEZHA_ERR_NOMEM ? "no memory" : strerror(errno));
	return status;
}

void nezha_summary_write(void)
{
	const char *where = nezha_context.job.settings.report;

	if (!nezha_context.report)
		return;
	tell_rails();
	tell_registered();
	tell_job();
	if (strcmp(where, "1"))
		write_file(where);
	else
		nezha_report_text(nezha_context.report, stderr);
	if (nezha_context.hands_off)
		return;
	nezha_report_free(nezha_context.report);
	nezha_context.report = NULL;
}
