/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "tuning/log.h"
#include "tuning/trace.h"

#define CLOCK_TEXT 24

/* The time of day in UTC, as other logs of the cluster have it. */
static const char *time_of_day(char text[CLOCK_TEXT])
{
	struct timespec now;
	unsigned second;

	clock_gettime(CLOCK_REALTIME, &now);
	second = (unsigned)(now.tv_sec % 86400);
	snprintf(text, CLOCK_TEXT, "%02u:%02u:%02u.%03uZ", second / 3600 % 24, second / 60 % 60, second % 60,
	         (unsigned)(now.tv_nsec / 1000000) % 1000);
	return text;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NEZHA_SEC;
}

static const char *rail_name(const struct nezha_engine *engine, int rail)
{
	return nezha_rail_name(&engine->rails[rail]);
}

static void record(struct nezha_engine *engine, const struct nezha_trace_event *event)
{
	if (engine->config.trace)
		nezha_trace_record(engine->config.trace, event);
}

/* ---- paths ---- */

static void fall(struct nezha_outage *outage, const char *cause)
{
	outage->since = nezha_now();
	snprintf(outage->cause, sizeof outage->cause, "%s", cause);
}

/* A moment, or all the time until now. */
static struct nezha_trace_event outage_event(enum nezha_trace_kind kind, const struct nezha_outage *outage, int rail,
                                             int peer, bool incoming)
{
	struct nezha_trace_event event = {
		.begin = outage->since, .end = kind == NEZHA_TRACE_LOST ? outage->since : nezha_now(), .kind = (uint8_t)kind,
		.rail = (uint8_t)rail, .peer = peer, .incoming = incoming,
	};

	_Static_assert(sizeof event.text == sizeof outage->cause, "a cause is cut once");
	memcpy(event.text, outage->cause, sizeof event.text);
	return event;
}

void nezha_event_lost(struct nezha_path *path, const char *cause, const struct nezha_requeued *again)
{
	struct nezha_link *link = path->link;
	struct nezha_trace_event event;
	char when[CLOCK_TEXT];

	fall(&path->outage, cause);
	nezha_info("rail %s to rank %d on %s is lost at %s: %s; %.1f ms without an acknowledgement; %" PRIu32 " blocks, %"
	           PRIu64 " bytes, go over %d other path%s", rail_name(link->engine, path->rail), link->peer,
	           link->card.hostname, time_of_day(when), cause, (double)path->stalled / NEZHA_MSEC, again->blocks,
	           again->bytes, nezha_link_paths_up(link), nezha_link_paths_up(link) == 1 ? "" : "s");
	event = outage_event(NEZHA_TRACE_LOST, &path->outage, path->rail, link->peer, false);
	event.count = again->blocks;
	event.bytes = again->bytes;
	record(link->engine, &event);
}

void nezha_event_in_lost(struct nezha_inpath *inpath, const char *cause)
{
	struct nezha_inlink *inlink = inpath->inlink;
	struct nezha_trace_event event;
	char when[CLOCK_TEXT];

	fall(&inpath->outage, cause);
	nezha_info("rail %s from rank %d is lost at %s: %s; what is missing comes over %d other path%s",
	           rail_name(inlink->engine, inpath->rail), inlink->peer, time_of_day(when), cause,
	           nezha_inlink_paths_up(inlink), nezha_inlink_paths_up(inlink) == 1 ? "" : "s");
	event = outage_event(NEZHA_TRACE_LOST, &inpath->outage, inpath->rail, inlink->peer, true);
	record(inlink->engine, &event);
}

void nezha_event_up(struct nezha_path *path)
{
	struct nezha_link *link = path->link;
	struct nezha_trace_event event;
	char when[CLOCK_TEXT];

	if (!path->outage.since)
		return;
	nezha_info("rail %s to rank %d on %s is back at %s, after %.3f s: it takes blocks again",
	           rail_name(link->engine, path->rail), link->peer, link->card.hostname, time_of_day(when),
	           seconds(nezha_now() - path->outage.since));
	event = outage_event(NEZHA_TRACE_DOWN, &path->outage, path->rail, link->peer, false);
	record(link->engine, &event);
	path->outage.since = 0;
}

void nezha_event_in_up(struct nezha_inpath *inpath)
{
	struct nezha_inlink *inlink = inpath->inlink;
	struct nezha_trace_event event;
	char when[CLOCK_TEXT];

	if (!inpath->outage.since)
		return;
	nezha_info("rail %s from rank %d is back at %s, after %.3f s", rail_name(inlink->engine, inpath->rail), inlink->peer,
	           time_of_day(when), seconds(nezha_now() - inpath->outage.since));
	event = outage_event(NEZHA_TRACE_DOWN, &inpath->outage, inpath->rail, inlink->peer, true);
	record(inlink->engine, &event);
	inpath->outage.since = 0;
}

/* ---- blocks ---- */

static struct nezha_trace_event landing_event(const struct nezha_inpath *inpath, enum nezha_trace_kind kind)
{
	const struct nezha_landing *landing = &inpath->landing;
	uint64_t now = nezha_now();

	return (struct nezha_trace_event){
		.begin = kind == NEZHA_TRACE_RECEIVED ? landing->began : now, .end = now, .bytes = landing->length,
		.kind = (uint8_t)kind, .rail = inpath->rail, .incoming = 1, .final = landing->kind == NEZHA_WIRE_FINAL,
		.peer = inpath->inlink->peer, .op = landing->op, .block = landing->block,
	};
}

/* The first one over each rail is a warning: TCP and the network should have found it. */
void nezha_event_wrong(const struct nezha_inpath *inpath)
{
	const struct nezha_landing *landing = &inpath->landing;
	struct nezha_engine *engine = inpath->inlink->engine;
	struct nezha_trace_event event;
	char when[CLOCK_TEXT];

	nezha_log(engine->stats[inpath->rail].wrong == 1 ? NEZHA_LOG_WARN : NEZHA_LOG_INFO,
	          "rail %s from rank %d: block %" PRIu32 " of %" PRIu32 " bytes came with a wrong CRC32C at %s, and is asked for "
	          "again", rail_name(engine, inpath->rail), inpath->inlink->peer, landing->block, landing->length,
	          time_of_day(when));
	event = landing_event(inpath, NEZHA_TRACE_WRONG);
	record(engine, &event);
}

void nezha_event_sent(const struct nezha_path *path, const struct nezha_tx *tx)
{
	nezha_trace_record(path->link->engine->config.trace, &(struct nezha_trace_event){
		.begin = path->out.began, .end = nezha_now(), .bytes = tx->length, .kind = NEZHA_TRACE_SENT,
		.rail = path->rail, .final = tx->kind == NEZHA_WIRE_FINAL, .peer = path->link->peer,
		.op = tx->team->call.op, .block = tx->block,
	});
}

void nezha_event_received(const struct nezha_inpath *inpath)
{
	struct nezha_trace_event event = landing_event(inpath, NEZHA_TRACE_RECEIVED);

	record(inpath->inlink->engine, &event);
}

void nezha_event_reduced(const struct nezha_team *team, int i)
{
	const struct nezha_call *call = &team->call;
	const struct nezha_collective *member = &team->collective[i];
	uint64_t ended = call->ended[NEZHA_SIDE_RAIL + i];

	if (!ended || !team->engine->config.trace)
		return;
	nezha_trace_record(team->engine->config.trace, &(struct nezha_trace_event){
		.begin = call->began, .end = ended, .bytes = (uint64_t)member->count * call->grid.block,
		.kind = NEZHA_TRACE_REDUCED, .rail = (uint8_t)(NEZHA_RAILS_MAX + i), .op = call->op,
		.block = member->first, .count = member->count,
	});
}
