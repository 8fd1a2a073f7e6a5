/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/trace.h"

#include <stdlib.h>
#include <string.h>

#include "tuning/status.h"
#include "tuning/text.h"
#include "tuning/trace_data.h"

int nezha_trace_create(size_t events, struct nezha_trace **out)
{
	struct nezha_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NEZHA_ERR_NOMEM;
	trace->ring = malloc(events * sizeof(*trace->ring));
	if (!trace->ring) {
		free(trace);
		return NEZHA_ERR_NOMEM;
	}
	trace->room = events;
	pthread_mutex_init(&trace->lock, NULL);
	*out = trace;
	return NEZHA_OK;
}

void nezha_trace_free(struct nezha_trace *trace)
{
	if (!trace)
		return;
	pthread_mutex_destroy(&trace->lock);
	free(trace->ring);
	free(trace);
}

void nezha_trace_record(struct nezha_trace *trace, const struct nezha_trace_event *event)
{
	pthread_mutex_lock(&trace->lock);
	trace->ring[trace->count++ % trace->room] = *event;
	pthread_mutex_unlock(&trace->lock);
}

void nezha_trace_name(struct nezha_trace *trace, unsigned rail, const char *name)
{
	char *to;

	if (rail >= NEZHA_TRACE_RAILS)
		return;
	to = trace->names[rail];
	pthread_mutex_lock(&trace->lock);
	strncpy(to, name, NEZHA_TRACE_NAME - 1);
	nezha_text_clean(to, strlen(to));
	pthread_mutex_unlock(&trace->lock);
}
