/* SPDX-License-Identifier: BSD-3-Clause
 * Bytes of a connection that a rail has in its own memory: records, each followed by its payload. */
#include <string.h>

#include "rails/inlink.h"
#include "tuning/status.h"

/* What is counted as taken in is never sent again, so not before it is: a record may end the connection. */
static size_t take_record(struct nezha_inpath *inpath, const char *data, size_t n)
{
	size_t room = sizeof inpath->record - inpath->record_have;

	n = n < room ? n : room;
	memcpy((char *)&inpath->record + inpath->record_have, data, n);
	inpath->record_have += (uint32_t)n;
	inpath->taken += n;
	return n;
}

static size_t take_payload(struct nezha_inpath *inpath, const char *data, size_t n)
{
	struct nezha_landing *landing = &inpath->landing;
	size_t left = landing->length - landing->done;

	n = n < left ? n : left;
	nezha_landing_put(landing, data, n);
	inpath->taken += n;
	if (landing->done == landing->length) {
		inpath->in_payload = false;
		nezha_inlink_payload(inpath);
	}
	return n;
}

int nezha_inlink_take(struct nezha_inpath *inpath, const char *data, size_t length)
{
	while (length && inpath->up) {
		size_t n = inpath->in_payload ? take_payload(inpath, data, length) : take_record(inpath, data, length);

		data += n;
		length -= n;
		if (inpath->up && inpath->record_have == sizeof inpath->record) {
			int rc = nezha_inlink_record(inpath);

			inpath->record_have = 0;
			if (rc != NEZHA_OK)
				return rc;
			inpath->in_payload = inpath->up && inpath->record.length > 0;
		}
	}
	return NEZHA_OK;
}
