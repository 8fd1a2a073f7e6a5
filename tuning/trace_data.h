/* SPDX-License-Identifier: BSD-3-Clause
 * What a trace holds, for those that print it (trace_json.c). */
#ifndef NEZHA_TUNING_TRACE_DATA_H
#define NEZHA_TUNING_TRACE_DATA_H

#include <pthread.h>

#include "tuning/trace.h"

#define NEZHA_TRACE_NAME 24

struct nezha_trace {
	pthread_mutex_t lock;
	struct nezha_trace_event *ring;      /* `room` of them */
	size_t room;
	uint64_t count;                      /* recorded so far; event i lies at i % room */
	char names[NEZHA_TRACE_RAILS][NEZHA_TRACE_NAME];  /* of the rails; "": none */
};

#endif
