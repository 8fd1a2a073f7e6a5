/* SPDX-License-Identifier: BSD-3-Clause
 * The verbs rail between the links and the queue pairs. */
#include "rails/verbs.h"

#include <string.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "rails/verbs_end.h"
#include "rails/verbs_message.h"
#include "tuning/status.h"

#define SHARE_FROM 4u           /* messages under way */

bool nezha_verbs_built(void)
{
	return true;
}

/* ---- the sending end ---- */

static uint32_t credits(const struct nezha_verbs_end *end)
{
	return end->may_send - end->out.posted;
}

/* Waits without credit are the receiver's, and no measure of the rail. */
static void note_credits(struct nezha_verbs_end *end)
{
	uint64_t now;

	if (!credits(end) == (end->shut_since != 0))
		return;
	now = nezha_now();
	if (end->shut_since)
		end->shut += (now - end->shut_since) / NEZHA_USEC;
	end->shut_since = end->shut_since ? 0 : now;
}

static bool has_room(struct nezha_verbs_end *end)
{
	return credits(end) && nezha_verbs_end_buffer(end);
}

/* The next piece of path->out goes behind what waits in the buffer. */
static void put_piece(struct nezha_path *path, struct nezha_verbs_end *end)
{
	struct nezha_outgoing *out = &path->out;
	uint32_t piece = out->payload_left < NEZHA_VERBS_PIECE ? out->payload_left : NEZHA_VERBS_PIECE;
	uint32_t of_record = out->record_left;
	char *buffer = nezha_verbs_end_buffer(end) + end->held;

	memcpy(buffer, (const char *)&out->record + sizeof out->record - of_record, of_record);
	if (out->zeros) {
		memset(buffer + of_record, 0, piece);
	} else {
		memcpy(buffer + of_record, out->payload, piece);
		out->payload += piece;
	}
	out->record_left = 0;
	out->payload_left -= piece;
	path->written += of_record + piece;
	end->held += of_record + piece;
}

static int post_held(struct nezha_path *path, struct nezha_verbs_end *end)
{
	uint32_t length = end->held;

	end->held = 0;
	/* With the last credit, too: else nothing would tell that these have arrived until the receiver is back. */
	return nezha_verbs_end_post(end, length, path->written, NULL, !path->out.payload_left || credits(end) == 1);
}

/* What is to be sent is whole, and goes behind the whole blocks that wait. */
static bool goes_with_held(const struct nezha_path *path, const struct nezha_verbs_end *end)
{
	const struct nezha_outgoing *out = &path->out;

	return out->payload_left <= NEZHA_VERBS_PIECE && end->held + out->record_left + out->payload_left <= NEZHA_VERBS_MESSAGE;
}

/* A whole block that others are before may wait for more to share its message, which costs hardly more than with one.
 * None of them counts before all have come, so where little is under way each goes by itself. */
static int send_piece(struct nezha_path *path, struct nezha_verbs_end *end)
{
	bool whole = path->out.record_left == sizeof path->out.record && path->out.payload_left <= NEZHA_VERBS_PIECE;

	put_piece(path, end);
	return whole && end->out.posted - end->out.done >= SHARE_FROM ? NEZHA_OK : post_held(path, end);
}

static int verbs_flush(struct nezha_path *path)
{
	struct nezha_verbs_end *end = path->transport;
	int rc = end->held ? post_held(path, end) : NEZHA_OK;

	note_credits(end);
	return rc;
}

static int verbs_send(struct nezha_path *path)
{
	struct nezha_verbs_end *end = path->transport;
	int rc = nezha_verbs_end_reap(end);

	while (rc == NEZHA_OK && !nezha_path_is_free(path)) {
		if (end->held && !goes_with_held(path, end)) {
			rc = post_held(path, end);
			continue;
		}
		if (!nezha_verbs_end_buffer(end))
			rc = nezha_verbs_end_await(end);
		if (rc == NEZHA_OK && !has_room(end))
			rc = NEZHA_INPROGRESS;
		if (rc == NEZHA_OK)
			rc = send_piece(path, end);
		note_credits(end);
	}
	return rc;
}

/* The peer's count of buffers that it has posted may only grow, and never beyond what it has. */
static int take_credits(struct nezha_verbs_end *end, uint32_t posted)
{
	uint32_t more = posted - end->may_send, unused = posted - end->out.posted;

	if (more > end->peer_buffers || unused > end->peer_buffers)
		return NEZHA_ERR_PROTOCOL;
	end->may_send = posted;
	note_credits(end);
	return NEZHA_OK;
}

/* One backward message: credits, and a record or nothing.  The path may be closed on return. */
static int take_backward(struct nezha_path *path, struct nezha_verbs_end *end, const char *data, uint32_t length,
                         uint32_t posted)
{
	struct nezha_wire record;
	int rc;

	if (length && length != sizeof record)
		return NEZHA_ERR_PROTOCOL;
	memcpy(&record, data, length);
	rc = take_credits(end, posted);
	if (rc == NEZHA_OK)
		rc = nezha_verbs_end_return(end);
	return rc == NEZHA_OK && length ? nezha_link_backward(path, &record) : rc;
}

static int verbs_listen(struct nezha_path *path)
{
	struct nezha_verbs_end *end = path->transport;
	const char *data;
	uint32_t length, posted;
	bool counted;
	int rc;

	while ((rc = nezha_verbs_end_arrival(end, &data, &length, &posted, &counted)) == NEZHA_INPROGRESS) {
		if (!counted)
			return NEZHA_ERR_PROTOCOL;
		rc = take_backward(path, end, data, length, posted);
		/* It may have been closed: the end is no longer ours. */
		if (rc != NEZHA_OK || !path->up)
			return rc;
	}
	if (rc == NEZHA_OK)
		rc = nezha_verbs_end_reap(end);
	/* An event may have come for what was reaped before it: without another one nothing would wake the path. */
	if (rc == NEZHA_OK && !nezha_verbs_end_buffer(end))
		rc = nezha_verbs_end_await(end);
	if (rc == NEZHA_OK && has_room(end))
		path->ready = true;
	return rc;
}

static int verbs_sample(struct nezha_path *path, struct nezha_path_sample *out)
{
	struct nezha_verbs_end *end = path->transport;

	if (nezha_verbs_end_reap(end) != NEZHA_OK)
		return NEZHA_ERR_CLOSED;
	*out = (struct nezha_path_sample){
		.written = path->written, .sent = path->written, .acked = end->acked,
		.shut = end->shut, .rtt = end->rtt, .narrow = end->shut_since != 0,
		.in_flight = end->out.posted != end->out.done,
	};
	return NEZHA_OK;
}

/* ---- the receiving end ---- */

/* Enough buffers are posted that the peer does not know of. */
static bool credits_due(const struct nezha_verbs_end *end)
{
	return end->in.posted - end->told >= end->in.slots / 4;
}

/* Sends what was kept, and credits if they are due; keeps the rest. */
static int flush_replies(struct nezha_inpath *inpath, struct nezha_verbs_end *end)
{
	uint32_t sent = 0;
	int rc = nezha_verbs_end_reap(end);

	while (rc == NEZHA_OK) {
		uint32_t length = sent < inpath->reply_count ? sizeof inpath->replies[0] : 0;
		char *buffer;

		if (!length && !credits_due(end))
			break;
		buffer = nezha_verbs_end_buffer(end);
		if (!buffer) {
			rc = nezha_verbs_end_await(end);
			if (rc == NEZHA_OK && !nezha_verbs_end_buffer(end))
				break;
			continue;
		}
		if (length)
			memcpy(buffer, &inpath->replies[sent], length);
		sent += length > 0;
		end->told = end->in.posted;
		rc = nezha_verbs_end_post(end, length, 0, &end->told, true);
	}
	inpath->reply_count -= sent;
	memmove(inpath->replies, inpath->replies + sent, inpath->reply_count * sizeof inpath->replies[0]);
	return rc;
}

static int verbs_reply(struct nezha_inpath *inpath, const struct nezha_wire *record)
{
	if (record && inpath->reply_count < NEZHA_REPLIES)
		inpath->replies[inpath->reply_count++] = *record;
	return flush_replies(inpath, inpath->transport);
}

static uint32_t payload_left(const struct nezha_inpath *inpath)
{
	return inpath->in_payload ? inpath->landing.length - inpath->landing.done : 0;
}

/* One message. */
static int verbs_receive(struct nezha_inpath *inpath)
{
	struct nezha_verbs_end *end = inpath->transport;
	const char *data;
	uint32_t length, value;
	bool counted;
	int rc = nezha_verbs_end_arrival(end, &data, &length, &value, &counted);

	if (rc == NEZHA_OK)
		return inpath->reply_count || credits_due(end) ? flush_replies(inpath, end) : NEZHA_OK;
	if (rc < 0)
		return rc;
	if (counted || !nezha_verbs_message_is_whole(data, length, payload_left(inpath)))
		return NEZHA_ERR_PROTOCOL;
	rc = nezha_inlink_take(inpath, data, length);
	/* It may have been closed: the end is no longer ours. */
	if (rc != NEZHA_OK || !inpath->up)
		return rc < 0 ? rc : NEZHA_ERR_CLOSED;
	rc = nezha_verbs_end_return(end);
	if (rc == NEZHA_OK && credits_due(end))
		rc = flush_replies(inpath, end);
	return rc == NEZHA_OK ? NEZHA_INPROGRESS : rc;
}

/* ---- closing ---- */

static void retire(struct nezha_engine *engine, struct nezha_verbs_end *end)
{
	nezha_verbs_end_retire(end);
	if (engine->service)
		nezha_service_kick(engine->service);
}

static void verbs_close_path(struct nezha_path *path)
{
	retire(path->link->engine, path->transport);
	close(path->end.fd);
}

static void verbs_close_inpath(struct nezha_inpath *inpath)
{
	retire(inpath->inlink->engine, inpath->transport);
	close(inpath->end.fd);
}

const struct nezha_rail_ops nezha_verbs_rail = {
	.name = "verbs",
	.apart = true,
	.send = verbs_send,
	.flush = verbs_flush,
	.listen = verbs_listen,
	.sample = verbs_sample,
	.receive = verbs_receive,
	.reply = verbs_reply,
	.close_path = verbs_close_path,
	.close_inpath = verbs_close_inpath,
};
