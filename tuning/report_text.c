/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/report.h"
#include "tuning/report_data.h"

/* Communicators that are shown one by one; what others did is in the JSON. */
#define SHOWN_MAX 20

#define COLUMNS 80
#define INDENT 15            /* of the reasons' texts */

enum {
#define X(...) +1
	REASONS = 0 NEZHA_REASONS(X)
#undef X
};

/* "1.5 GiB", to three digits. */
static void print_size(uint64_t bytes, char *out, size_t len)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	for (; value >= 1000 && unit < 6; unit++)
		value /= 1024;
	if (unit == 0)
		snprintf(out, len, "%" PRIu64 " B", bytes);
	else
		snprintf(out, len, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
}

/* "12.3 ms", to three digits. */
static void print_time(double ns, char *out, size_t len)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t unit = 0;

	for (; ns >= 999.5 && unit < 3; unit++)
		ns /= 1000;
	snprintf(out, len, "%.*f %s", unit == 0 || ns >= 100 ? 0 : ns < 10 ? 2 : 1, ns, units[unit]);
}

/* "0", "64K-128K" */
static void print_class(unsigned class, char *out, size_t len)
{
	char low[24], high[24];
	uint64_t end = nezha_report_class_high(class);

	nezha_bytes_print(nezha_report_class_low(class), low, sizeof(low));
	nezha_bytes_print(end + 1, high, sizeof(high));
	if (!class)
		snprintf(out, len, "0");
	else if (class == 64)
		snprintf(out, len, "%s...", low);
	else
		snprintf(out, len, "%s-%s", low, high);
}

static void print_row(const struct nezha_report_row *row, FILE *out)
{
	char class[64], mean[24], longest[24];

	print_class(row->class, class, sizeof(class));
	print_time((double)row->ns / (double)row->calls, mean, sizeof(mean));
	print_time((double)row->ns_max, longest, sizeof(longest));
	fprintf(out, "  %11s %9" PRIu64 "  %-6s %8s %8s  %s\n", class, row->calls,
	        nezha_algorithm_name(row->alg), mean, longest, nezha_reason_name(row->reason));
}

static void print_rows(const struct nezha_report_rows *rows, uint64_t *reasons, FILE *out)
{
	fprintf(out, "  %11s %9s  %-6s %8s %8s  %s\n", "bytes", "calls", "path", "mean", "longest", "why");
	for (size_t i = 0; i < rows->count; i++) {
		print_row(&rows->row[i], out);
		*reasons |= (uint64_t)1 << rows->row[i].reason;
	}
}

static void print_comms(const struct nezha_report *report, uint64_t *reasons, FILE *out)
{
	const struct nezha_report_comm *comm;
	size_t shown = 0, hidden = 0;

	TAILQ_FOREACH(comm, &report->comms, entry) {
		if (!comm->rows.count)
			continue;
		if (++shown > SHOWN_MAX) {
			hidden++;
			continue;
		}
		fprintf(out, "\n%s: %d ranks on %d nodes\n", *comm->name ? comm->name : "without a name",
		        comm->ranks, comm->nodes);
		print_rows(&comm->rows, reasons, out);
	}
	if (hidden)
		fprintf(out, "\n%zu more communicators (NEZHA_REPORT=FILE shows them)\n", hidden);
	if (report->closed.count) {
		fprintf(out, "\nfreed communicators, together (%" PRIu64 ")\n", report->closed_count);
		print_rows(&report->closed, reasons, out);
	}
	if (report->other.count) {
		fprintf(out, "\nother calls\n");
		print_rows(&report->other, reasons, out);
	}
	if (report->lost)
		fprintf(out, "\n%" PRIu64 " calls could not be counted for want of memory\n", report->lost);
}

static void print_rails(const struct nezha_report *report, FILE *out)
{
	uint64_t all = 0;
	char bytes[24], resent[24];
	size_t count = 0;

	for (size_t i = 0; i < NEZHA_REPORT_RAILS; i++) {
		all += report->rails[i].bytes;
		count += *report->rails[i].device != 0;
	}
	if (!count) {
		fprintf(out, "\nNo rail was used.\n");
		return;
	}
	fprintf(out, "\n  %-15s %-18s %10s %6s %10s %6s %6s\n", "rail", "subnet", "sent", "share", "again",
	        "lost", "back");
	for (size_t i = 0; i < NEZHA_REPORT_RAILS; i++) {
		const struct nezha_report_rail *rail = &report->rails[i];

		if (!*rail->device)
			continue;
		print_size(rail->bytes, bytes, sizeof(bytes));
		print_size(rail->resent, resent, sizeof(resent));
		fprintf(out, "  %-15s %-18s %10s %4.0f %% %10s %6" PRIu64 " %6" PRIu64 "\n", rail->device,
		        rail->subnet, bytes, all ? 100.0 * (double)rail->bytes / (double)all : 0, resent,
		        rail->failures, rail->returns);
	}
	for (size_t i = 0; i < NEZHA_REPORT_RAILS; i++)
		if (*report->rails[i].device && report->rails[i].wrong)
			fprintf(out, "  %s: %" PRIu64 " blocks came with a wrong CRC and were sent again\n",
			        report->rails[i].device, report->rails[i].wrong);
}

/* Only where RDMA devices were used. */
static void print_registered(const struct nezha_report_registered *registered, FILE *out)
{
	char now[24], most[24], limit[24];

	if (!registered->most)
		return;
	print_size(registered->now, now, sizeof(now));
	print_size(registered->most, most, sizeof(most));
	print_size(registered->limit, limit, sizeof(limit));
	fprintf(out, "\nregistered for RDMA: %s at the end, %s at most, %s allowed\n", now, most, limit);
}

/* Words on lines of at most COLUMNS, all but the first indented; the first begins in column INDENT. */
static void print_wrapped(const char *text, FILE *out)
{
	size_t column = INDENT;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > INDENT && column + 1 + word > COLUMNS) {
			fprintf(out, "\n%*s", INDENT, "");
			column = INDENT;
		}
		column += (size_t)fprintf(out, "%s%.*s", column > INDENT ? " " : "", (int)word, text);
		text += word + (text[word] == ' ');
	}
	fputc('\n', out);
}

static void print_reasons(uint64_t reasons, FILE *out)
{
	if (reasons)
		fprintf(out, "\nwhy:\n");
	for (int i = 0; i < REASONS; i++) {
		if (!(reasons >> i & 1))
			continue;
		fprintf(out, "  %-*s", INDENT - 2, nezha_reason_name((enum nezha_reason)i));
		print_wrapped(nezha_reason_text((enum nezha_reason)i), out);
	}
}

void nezha_report_text(struct nezha_report *report, FILE *out)
{
	const struct nezha_report_job *job;
	uint64_t reasons = 0;

	if (!report)
		return;
	pthread_mutex_lock(&report->lock);
	job = &report->job;
	fprintf(out, "Nezha %s under %s: MPI_Allreduce as rank 0 on host %s saw it\n", job->version, job->mpi,
	        job->host);
	fprintf(out, "%d ranks on %d nodes, rails: %s, table: %s%s%s\n", job->ranks, job->nodes, job->rails,
	        job->table, *job->tune ? ", before it: " : "", job->tune);
	print_comms(report, &reasons, out);
	print_rails(report, out);
	print_registered(&report->registered, out);
	print_reasons(reasons, out);
	fflush(out);
	pthread_mutex_unlock(&report->lock);
}
