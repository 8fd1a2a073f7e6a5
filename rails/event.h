/* SPDX-License-Identifier: BSD-3-Clause
 * What is told of paths and blocks: one line in the log for each event of a path - when, which rail, between whom, the cause,
 * what was done, how long it took - and the timeline (tuning/trace.h), if there is one.  The engine's lock is held in all
 * functions. */
#ifndef NEZHA_RAILS_EVENT_H
#define NEZHA_RAILS_EVENT_H

#include <stdint.h>

#include "tuning/trace.h"

struct nezha_inpath;
struct nezha_path;
struct nezha_team;
struct nezha_tx;

/* Of a path, or a receiving end, that is down. */
struct nezha_outage {
	uint64_t since;                 /* ns; 0: it is up, or was never */
	char cause[NEZHA_TRACE_TEXT];
};

/* What became of a lost path's blocks. */
struct nezha_requeued {
	uint32_t blocks;
	uint64_t bytes;
};

/* The path, or the receiving end, is down now; it keeps the cause. */
void nezha_event_lost(struct nezha_path *path, const char *cause, const struct nezha_requeued *again);
void nezha_event_in_lost(struct nezha_inpath *inpath, const char *cause);

/* It is up, for the first time or again. */
void nezha_event_up(struct nezha_path *path);
void nezha_event_in_up(struct nezha_inpath *inpath);

/* The block that is landing has come with a wrong CRC. */
void nezha_event_wrong(const struct nezha_inpath *inpath);

/* For the timeline, if there is one: a block was handed to the path; has come over the receiving end; the blocks of the team's i-th
 * collective rail are final. */
void nezha_event_sent(const struct nezha_path *path, const struct nezha_tx *tx);
void nezha_event_received(const struct nezha_inpath *inpath);
void nezha_event_reduced(const struct nezha_team *team, int i);

#endif
