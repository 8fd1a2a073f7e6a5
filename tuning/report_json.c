/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <jansson.h>

#include "tuning/json_text.h"
#include "tuning/report.h"
#include "tuning/report_data.h"
#include "tuning/status.h"

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

static json_t *row_json(const struct nezha_report *report, const struct nezha_report_row *row)
{
	json_t *rails = json_object();

	/* Two rails may be over one device: two ports, two subnets. */
	for (size_t i = 0; i < NEZHA_REPORT_RAILS; i++) {
		const char *device = report->rails[i].device;
		uint64_t bytes = row->rail_bytes[i];

		if (*device && bytes)
			json_object_set_new(rails, device, number(bytes + (uint64_t)json_integer_value(json_object_get(rails, device))));
	}
	return json_pack("{so so ss ss so so so so so so}",
	                 "bytes_min", number(nezha_report_class_low(row->class)),
	                 "bytes_max", number(nezha_report_class_high(row->class)),
	                 "path", nezha_algorithm_name(row->alg),
	                 "why", nezha_reason_name(row->reason),
	                 "calls", number(row->calls),
	                 "bytes", number(row->bytes),
	                 "seconds", seconds(row->ns),
	                 "seconds_min", seconds(row->ns_min),
	                 "seconds_max", seconds(row->ns_max),
	                 "rails", rails);
}

static json_t *rows_json(const struct nezha_report *report, const struct nezha_report_rows *rows)
{
	json_t *array = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(array, row_json(report, &rows->row[i]));
	return array;
}

static json_t *comms_json(const struct nezha_report *report)
{
	const struct nezha_report_comm *comm;
	json_t *array = json_array();

	TAILQ_FOREACH(comm, &report->comms, entry)
		if (comm->rows.count)
			json_array_append_new(array, json_pack("{so si si so}", "name", nezha_json_text(comm->name),
			                      "ranks", comm->ranks, "nodes", comm->nodes,
			                      "sizes", rows_json(report, &comm->rows)));
	return array;
}

static json_t *rails_json(const struct nezha_report *report)
{
	json_t *array = json_array();

	for (size_t i = 0; i < NEZHA_REPORT_RAILS; i++) {
		const struct nezha_report_rail *rail = &report->rails[i];

		if (!*rail->device)
			continue;
		json_array_append_new(array, json_pack("{so ss so so so so so}", "device", nezha_json_text(rail->device),
		                                       "subnet", rail->subnet, "bytes", number(rail->bytes),
		                                       "bytes_resent", number(rail->resent),
		                                       "failures", number(rail->failures),
		                                       "returns", number(rail->returns),
		                                       "blocks_wrong", number(rail->wrong)));
	}
	return array;
}

static json_t *registered_json(const struct nezha_report_registered *registered)
{
	return json_pack("{so so so}", "bytes", number(registered->now), "bytes_most", number(registered->most),
	                 "bytes_allowed", number(registered->limit));
}

static json_t *report_json(const struct nezha_report *report)
{
	const struct nezha_report_job *job = &report->job;

	return json_pack("{so so so si si so so so so so so s{so so} so so}",
	                 "nezha", nezha_json_text(job->version), "mpi", nezha_json_text(job->mpi), "host", nezha_json_text(job->host),
	                 "ranks", job->ranks, "nodes", job->nodes,
	                 "rails_asked", nezha_json_text(job->rails), "table", nezha_json_text(job->table), "tune", nezha_json_text(job->tune),
	                 "rails", rails_json(report), "registered", registered_json(&report->registered),
	                 "communicators", comms_json(report),
	                 "closed", "count", number(report->closed_count),
	                 "sizes", rows_json(report, &report->closed),
	                 "other", rows_json(report, &report->other), "calls_lost", number(report->lost));
}

int nezha_report_json(struct nezha_report *report, FILE *out)
{
	json_t *json;
	int status = NEZHA_OK;

	if (!report)
		return NEZHA_OK;
	pthread_mutex_lock(&report->lock);
	json = report_json(report);
	if (!json)
		status = NEZHA_ERR_NOMEM;
	else if (json_dumpf(json, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) || fputs("\n", out) < 0 ||
	         fflush(out))
		status = NEZHA_ERR_SYSTEM;
	json_decref(json);
	pthread_mutex_unlock(&report->lock);
	return status;
}
