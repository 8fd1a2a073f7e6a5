/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/report.h"

#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/report_data.h"
#include "tuning/status.h"
#include "tuning/text.h"

static unsigned class_of(uint64_t bytes)
{
	return bytes ? 1 + nezha_bytes_class(bytes) : 0;
}

uint64_t nezha_report_class_low(unsigned class)
{
	return class ? (uint64_t)1 << (class - 1) : 0;
}

uint64_t nezha_report_class_high(unsigned class)
{
	return class ? nezha_report_class_low(class) * 2 - 1 : 0;
}

static int compare_rows(const struct nezha_report_row *a, const struct nezha_report_row *b)
{
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (a->alg != b->alg)
		return a->alg < b->alg ? -1 : 1;
	return (a->reason > b->reason) - (a->reason < b->reason);
}

static int grow(struct nezha_report_rows *rows)
{
	size_t room = rows->room ? 2 * rows->room : 4;
	struct nezha_report_row *row = realloc(rows->row, room * sizeof(*row));

	if (!row)
		return NEZHA_ERR_NOMEM;
	rows->row = row;
	rows->room = room;
	return NEZHA_OK;
}

/* Adds `row` to the one of the same kind. */
static void merge_row(struct nezha_report *report, struct nezha_report_rows *rows,
                      const struct nezha_report_row *row)
{
	struct nezha_report_row *at;
	size_t i = 0;

	while (i < rows->count && compare_rows(&rows->row[i], row) < 0)
		i++;
	if (i == rows->count || compare_rows(&rows->row[i], row)) {
		if (rows->count == rows->room && grow(rows) != NEZHA_OK) {
			report->lost += row->calls;
			return;
		}
		memmove(&rows->row[i + 1], &rows->row[i], (rows->count - i) * sizeof(*row));
		rows->row[i] = *row;
		rows->count++;
		return;
	}
	at = &rows->row[i];
	at->calls += row->calls;
	at->bytes += row->bytes;
	at->ns += row->ns;
	if (row->ns_min < at->ns_min)
		at->ns_min = row->ns_min;
	if (row->ns_max > at->ns_max)
		at->ns_max = row->ns_max;
	for (size_t k = 0; k < NEZHA_REPORT_RAILS; k++)
		at->rail_bytes[k] += row->rail_bytes[k];
}

static void clear_rows(struct nezha_report_rows *rows)
{
	free(rows->row);
	*rows = (struct nezha_report_rows){ 0 };
}

int nezha_report_create(struct nezha_report **out)
{
	struct nezha_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NEZHA_ERR_NOMEM;
	pthread_mutex_init(&report->lock, NULL);
	TAILQ_INIT(&report->comms);
	report->job = (struct nezha_report_job){
		.version = "", .mpi = "", .rails = "", .table = "", .tune = "",
	};
	*out = report;
	return NEZHA_OK;
}

void nezha_report_free(struct nezha_report *report)
{
	struct nezha_report_comm *comm;

	if (!report)
		return;
	while ((comm = TAILQ_FIRST(&report->comms))) {
		TAILQ_REMOVE(&report->comms, comm, entry);
		clear_rows(&comm->rows);
		free(comm);
	}
	clear_rows(&report->closed);
	clear_rows(&report->other);
	pthread_mutex_destroy(&report->lock);
	free(report);
}

struct nezha_report_comm *nezha_report_open(struct nezha_report *report, const char *name, int ranks,
                                            int nodes)
{
	struct nezha_report_comm *comm = report ? calloc(1, sizeof(*comm)) : NULL;

	if (!comm)
		return NULL;
	strncpy(comm->name, name, sizeof(comm->name) - 1);
	nezha_text_clean(comm->name, strlen(comm->name));
	comm->ranks = ranks;
	comm->nodes = nodes;
	pthread_mutex_lock(&report->lock);
	TAILQ_INSERT_TAIL(&report->comms, comm, entry);
	pthread_mutex_unlock(&report->lock);
	return comm;
}

void nezha_report_close(struct nezha_report *report, struct nezha_report_comm *comm)
{
	if (!report || !comm)
		return;
	pthread_mutex_lock(&report->lock);
	TAILQ_REMOVE(&report->comms, comm, entry);
	report->closed_count++;
	for (size_t i = 0; i < comm->rows.count; i++)
		merge_row(report, &report->closed, &comm->rows.row[i]);
	pthread_mutex_unlock(&report->lock);
	clear_rows(&comm->rows);
	free(comm);
}

void nezha_report_count(struct nezha_report *report, struct nezha_report_comm *comm,
                        const struct nezha_report_call *call)
{
	struct nezha_report_row row = {
		.class = class_of(call->bytes),
		.alg = call->alg,
		.reason = call->reason,
		.calls = 1,
		.bytes = call->bytes,
		.ns = call->ns, .ns_min = call->ns, .ns_max = call->ns,
	};

	if (!report)
		return;
	if (call->rail_bytes)
		memcpy(row.rail_bytes, call->rail_bytes, sizeof(row.rail_bytes));
	pthread_mutex_lock(&report->lock);
	merge_row(report, comm ? &comm->rows : &report->other, &row);
	pthread_mutex_unlock(&report->lock);
}

void nezha_report_rail(struct nezha_report *report, size_t index, const struct nezha_report_rail *rail)
{
	if (!report || index >= NEZHA_REPORT_RAILS)
		return;
	pthread_mutex_lock(&report->lock);
	report->rails[index] = *rail;
	pthread_mutex_unlock(&report->lock);
}

void nezha_report_registered(struct nezha_report *report, const struct nezha_report_registered *registered)
{
	if (!report)
		return;
	pthread_mutex_lock(&report->lock);
	report->registered = *registered;
	pthread_mutex_unlock(&report->lock);
}

void nezha_report_job(struct nezha_report *report, const struct nezha_report_job *job)
{
	if (!report)
		return;
	pthread_mutex_lock(&report->lock);
	report->job = *job;
	pthread_mutex_unlock(&report->lock);
}

void nezha_report_reset(struct nezha_report *report)
{
	struct nezha_report_comm *comm;

	if (!report)
		return;
	pthread_mutex_lock(&report->lock);
	TAILQ_FOREACH(comm, &report->comms, entry)
		clear_rows(&comm->rows);
	clear_rows(&report->closed);
	clear_rows(&report->other);
	report->closed_count = 0;
	report->lost = 0;
	pthread_mutex_unlock(&report->lock);
}
