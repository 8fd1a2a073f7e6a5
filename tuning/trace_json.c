/* SPDX-License-Identifier: BSD-3-Clause
 * A trace in the Trace Event Format: a process is a rank, a lane ("thread") is a thread that calls, or one direction of a rail to
 * one peer. */
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/json_text.h"
#include "tuning/status.h"
#include "tuning/trace_data.h"

#define FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))
#define PEER_BITS 23

struct printer {
	const struct nezha_trace *trace;
	const struct nezha_trace_process *process;
	FILE *out;
	const char *between;     /* what goes before the next event */
	int status;
	size_t count, room;
	int32_t *lanes;          /* that were named; owned */
};

static void print(struct printer *printer, json_t *event)
{
	if (!event)
		printer->status = NEZHA_ERR_NOMEM;
	else if (fputs(printer->between, printer->out) < 0 || json_dumpf(event, printer->out, FLAGS))
		printer->status = NEZHA_ERR_SYSTEM;
	json_decref(event);
	printer->between = ",\n";
}

static bool is_of_thread(const struct nezha_trace_event *event)
{
	return event->kind == NEZHA_TRACE_CALL || event->kind == NEZHA_TRACE_LIBRARY;
}

/* A number for the lane; in this order they are shown. */
static int32_t lane_of(const struct nezha_trace_event *event)
{
	if (is_of_thread(event))
		return event->peer;
	return (int32_t)(((uint32_t)event->rail + 1) << (PEER_BITS + 1) | (uint32_t)event->incoming << PEER_BITS |
	                 ((uint32_t)event->peer & ((1u << PEER_BITS) - 1)));
}

static void name_lane(struct printer *printer, const struct nezha_trace_event *event, int32_t lane)
{
	const char *rail = printer->trace->names[event->rail % NEZHA_TRACE_RAILS];
	char name[80];

	if (is_of_thread(event))
		snprintf(name, sizeof(name), "calls of thread %d", event->peer);
	else if (event->kind == NEZHA_TRACE_REDUCED)
		snprintf(name, sizeof(name), "%s", rail);
	else
		snprintf(name, sizeof(name), "%s %s rank %d", rail, event->incoming ? "from" : "to", event->peer);
	print(printer, json_pack("{ss ss si si s{so}}", "name", "thread_name", "ph", "M", "pid", printer->process->rank,
	                         "tid", lane, "args", "name", nezha_json_text(name)));
	print(printer, json_pack("{ss ss si si s{si}}", "name", "thread_sort_index", "ph", "M",
	                         "pid", printer->process->rank, "tid", lane, "args", "sort_index", lane));
}

/* At a lane's first event. */
static void meet_lane(struct printer *printer, const struct nezha_trace_event *event)
{
	int32_t lane = lane_of(event);

	for (size_t i = 0; i < printer->count; i++)
		if (printer->lanes[i] == lane)
			return;
	if (printer->count == printer->room) {
		size_t room = 2 * printer->room + 16;
		int32_t *lanes = realloc(printer->lanes, room * sizeof(*lanes));

		if (!lanes) {
			printer->status = NEZHA_ERR_NOMEM;
			return;
		}
		printer->lanes = lanes;
		printer->room = room;
	}
	printer->lanes[printer->count++] = lane;
	name_lane(printer, event, lane);
}

static void name_event(const struct nezha_trace_event *event, char *out, size_t len)
{
	char size[24];

	nezha_bytes_print(event->bytes, size, sizeof(size));
	switch (event->kind) {
	case NEZHA_TRACE_CALL:
		snprintf(out, len, "%s %s", nezha_algorithm_name(event->alg), size);
		break;
	case NEZHA_TRACE_LIBRARY:
		snprintf(out, len, "MPI library %s", size);
		break;
	case NEZHA_TRACE_SENT:
	case NEZHA_TRACE_RECEIVED:
		snprintf(out, len, "%s %" PRIu32, event->final ? "final" : "partial", event->block);
		break;
	case NEZHA_TRACE_REDUCED:
		snprintf(out, len, "blocks %" PRIu32 " to %" PRIu32, event->block, event->block + event->count - 1);
		break;
	case NEZHA_TRACE_LOST:
		snprintf(out, len, "lost: %s", event->text);
		break;
	case NEZHA_TRACE_DOWN:
		snprintf(out, len, "down: %s", event->text);
		break;
	default:
		snprintf(out, len, "block %" PRIu32 " came wrong", event->block);
	}
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *arguments(const struct nezha_trace_event *event)
{
	switch (event->kind) {
	case NEZHA_TRACE_CALL:
		return json_pack("{so ss}", "bytes", number(event->bytes), "why", nezha_reason_name(event->reason));
	case NEZHA_TRACE_LIBRARY:
		return json_pack("{so}", "bytes", number(event->bytes));
	case NEZHA_TRACE_LOST:
		return json_pack("{so so}", "blocks again", number(event->count), "bytes again", number(event->bytes));
	case NEZHA_TRACE_DOWN:
		return json_object();
	default:
		return json_pack("{so so so}", "call", number(event->op), "block", number(event->block),
		                 "bytes", number(event->bytes));
	}
}

static json_t *microseconds(const struct printer *printer, uint64_t ns)
{
	return json_real((double)((int64_t)ns + printer->process->shift) / 1e3);
}

static void print_event(struct printer *printer, const struct nezha_trace_event *event)
{
	static const char *const categories[NEZHA_TRACE_KINDS] = { "call", "library", "sent", "received", "reduced", "lost",
	                                                           "down", "wrong" };
	bool moment = event->kind == NEZHA_TRACE_LOST || event->kind == NEZHA_TRACE_WRONG;
	char name[NEZHA_TRACE_TEXT + 32];
	json_t *json;

	meet_lane(printer, event);
	name_event(event, name, sizeof(name));
	json = json_pack("{so ss ss si si so so}", "name", nezha_json_text(name), "cat", categories[event->kind], "ph", moment ? "i" : "X",
	                 "pid", printer->process->rank, "tid", lane_of(event), "ts", microseconds(printer, event->begin),
	                 "args", arguments(event));
	if (json && moment)
		json_object_set_new(json, "s", json_string(event->kind == NEZHA_TRACE_LOST ? "p" : "t"));
	else if (json)
		json_object_set_new(json, "dur", json_real((double)(event->end - event->begin) / 1e3));
	if (json && event->kind == NEZHA_TRACE_DOWN)
		json_object_set_new(json, "cname", json_string("terrible"));
	print(printer, json);
}

static void print_process(struct printer *printer)
{
	const struct nezha_trace_process *process = printer->process;
	char name[100];

	snprintf(name, sizeof(name), "rank %d on %.64s", process->rank, process->host);
	print(printer, json_pack("{ss ss si s{so}}", "name", "process_name", "ph", "M", "pid", process->rank,
	                         "args", "name", nezha_json_text(name)));
	print(printer, json_pack("{ss ss si s{si}}", "name", "process_sort_index", "ph", "M", "pid", process->rank,
	                         "args", "sort_index", process->rank));
}

/* So that nobody takes the beginning of what is kept for the beginning of the job. */
static void print_lost(struct printer *printer, const struct nezha_trace_event *first, uint64_t lost)
{
	char name[64];

	snprintf(name, sizeof(name), "%" PRIu64 " events before this were overwritten", lost);
	print(printer, json_pack("{ss ss ss si si so ss}", "name", name, "cat", "trace", "ph", "i",
	                         "pid", printer->process->rank, "tid", lane_of(first), "ts",
	                         microseconds(printer, first->begin), "s", "p"));
}

static void print_events(struct printer *printer, uint64_t lost)
{
	const struct nezha_trace *trace = printer->trace;

	print_process(printer);
	if (lost)
		print_lost(printer, &trace->ring[lost % trace->room], lost);
	for (uint64_t i = lost; i < trace->count && printer->status == NEZHA_OK; i++)
		print_event(printer, &trace->ring[i % trace->room]);
}

/* Threads that record wait for no file. */
static struct nezha_trace *copy(struct nezha_trace *trace)
{
	struct nezha_trace *out;

	if (nezha_trace_create(trace->room, &out) != NEZHA_OK)
		return NULL;
	pthread_mutex_lock(&trace->lock);
	out->count = trace->count;
	memcpy(out->ring, trace->ring, (trace->count < trace->room ? trace->count : trace->room) * sizeof(*trace->ring));
	memcpy(out->names, trace->names, sizeof(trace->names));
	pthread_mutex_unlock(&trace->lock);
	return out;
}

int nezha_trace_print(struct nezha_trace *trace, const struct nezha_trace_process *process, FILE *out, uint64_t *lost)
{
	struct nezha_trace *kept = copy(trace);
	struct printer printer = { .trace = kept, .process = process, .out = out, .between = "" };

	if (!kept)
		return NEZHA_ERR_NOMEM;
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out);
	*lost = kept->count > kept->room ? kept->count - kept->room : 0;
	print_events(&printer, *lost);
	fprintf(out, "\n],\"otherData\":{\"rank\":%d,\"overwritten\":%" PRIu64 ",\"clocks_differ_by_ns\":%" PRIu64 "}}\n",
	        process->rank, *lost, process->error);
	free(printer.lanes);
	nezha_trace_free(kept);
	if (printer.status == NEZHA_OK && (fflush(out) || ferror(out)))
		printer.status = NEZHA_ERR_SYSTEM;
	return printer.status;
}
