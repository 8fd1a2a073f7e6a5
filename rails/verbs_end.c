/* SPDX-License-Identifier: BSD-3-Clause
 * Messages over a queue pair: sending, taking in, completions.  Making and ending: verbs_make.c. */
#include "rails/verbs_end.h"

#include <errno.h>
#include <string.h>

#include "rails/clock.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define SIGNAL_EVERY 4u         /* messages: each completion costs the HCA and us something */

static int failed(struct nezha_verbs_end *end, const char *what)
{
	end->why = what;
	/* Before that it is the handshake that has failed, and who tries it tells. */
	if (end->proved)
		nezha_info("verbs rail %s:%u: %s", end->device->port.device, end->device->port.port, what);
	return NEZHA_ERR_CLOSED;
}

static int failed_completion(struct nezha_verbs_end *end, const struct ibv_wc *wc)
{
	/* What is flushed only says that an error came before. */
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		failed(end, end->device->api->wc_status_str(wc->status));
	return NEZHA_ERR_CLOSED;
}

/* ---- sending ---- */

char *nezha_verbs_end_buffer(struct nezha_verbs_end *end)
{
	struct nezha_verbs_ring *out = &end->out;

	if (out->posted - out->done == out->slots)
		return NULL;
	return out->memory + (size_t)(out->posted % out->slots) * out->slot_bytes;
}

int nezha_verbs_end_post(struct nezha_verbs_end *end, uint32_t length, uint64_t written, const uint32_t *value, bool last)
{
	struct nezha_verbs_ring *out = &end->out;
	uint32_t slot = out->posted % out->slots;
	struct ibv_sge piece = {
		.addr = (uintptr_t)nezha_verbs_end_buffer(end), .length = length, .lkey = end->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = out->posted + 1u, .sg_list = &piece, .num_sge = length > 0,
		.opcode = value ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = value ? htobe32(*value) : 0,
	}, *bad;

	if (last || ++end->unsignalled == SIGNAL_EVERY || out->posted - out->done == out->slots - 1) {
		wr.send_flags = IBV_SEND_SIGNALED;
		end->unsignalled = 0;
	}
	if (end->device->api->post_send(end->qp, &wr, &bad))
		return failed(end, "a message cannot be posted");
	end->written[slot] = written;
	end->posted_at[slot] = out->posted == out->done ? nezha_now() : 0;
	out->posted++;
	return NEZHA_OK;
}

static int sent(struct nezha_verbs_end *end, const struct ibv_wc *wc)
{
	struct nezha_verbs_ring *out = &end->out;
	uint32_t upto = (uint32_t)wc->wr_id, slot = (upto - 1) % out->slots;
	uint64_t took;

	if (wc->status != IBV_WC_SUCCESS)
		return failed_completion(end, wc);
	if (upto - out->done - 1 >= out->posted - out->done)
		return failed(end, "a completion of what was not posted");
	if (end->posted_at[slot]) {
		took = (nezha_now() - end->posted_at[slot]) / NEZHA_USEC + 1;
		if (!end->rtt || took < end->rtt)
			end->rtt = (uint32_t)took;
	}
	out->done = upto;
	end->acked = end->written[slot];
	return NEZHA_OK;
}

int nezha_verbs_end_reap(struct nezha_verbs_end *end)
{
	struct ibv_wc wc[8];
	int n;

	while (end->out.posted != end->out.done) {
		n = end->device->api->poll_cq(end->send_cq, 8, wc);
		if (n < 0)
			return failed(end, "completions cannot be polled");
		for (int i = 0; i < n; i++)
			if (sent(end, &wc[i]) != NEZHA_OK)
				return NEZHA_ERR_CLOSED;
		if (n < 8)
			break;
	}
	return NEZHA_OK;
}

int nezha_verbs_end_await(struct nezha_verbs_end *end)
{
	if (!end->send_armed) {
		if (end->device->api->req_notify_cq(end->send_cq, 0))
			return failed(end, "events cannot be asked for");
		end->send_armed = true;
	}
	return nezha_verbs_end_reap(end);
}

/* ---- taking in ---- */

/* Each queue makes one event for each time that it was armed: when none is armed any more, there is nothing to read. */
static int read_events(struct nezha_verbs_end *end)
{
	const struct nezha_verbs_api *api = end->device->api;
	struct ibv_cq *cq;
	void *context;

	while (end->send_armed || end->recv_armed) {
		if (api->get_cq_event(end->channel, &cq, &context))
			return errno == EAGAIN || errno == EINTR ? NEZHA_OK : failed(end, "the device is gone");
		if (cq == end->send_cq)
			end->send_armed = false;
		else
			end->recv_armed = false;
		api->ack_cq_events(cq, 1);
	}
	return NEZHA_OK;
}

static int poll_arrivals(struct nezha_verbs_end *end)
{
	end->arrival = 0;
	end->arrival_count = end->device->api->poll_cq(end->recv_cq, NEZHA_VERBS_ARRIVALS, end->arrivals);
	if (end->arrival_count >= 0)
		return NEZHA_OK;
	end->arrival_count = 0;
	return failed(end, "completions cannot be polled");
}

/* Looks once more after an event was asked for: what came before makes none. */
static int poll_and_arm(struct nezha_verbs_end *end)
{
	int rc = poll_arrivals(end);

	if (rc != NEZHA_OK || end->arrival_count)
		return rc;
	rc = read_events(end);
	if (rc != NEZHA_OK)
		return rc;
	if (!end->recv_armed) {
		if (end->device->api->req_notify_cq(end->recv_cq, 0))
			return failed(end, "events cannot be asked for");
		end->recv_armed = true;
	}
	return poll_arrivals(end);
}

int nezha_verbs_end_arrival(struct nezha_verbs_end *end, const char **data, uint32_t *length, uint32_t *value,
                            bool *has_value)
{
	const struct nezha_verbs_ring *in = &end->in;
	const struct ibv_wc *wc;

	if (end->arrival == end->arrival_count) {
		int rc = poll_and_arm(end);

		if (rc != NEZHA_OK || !end->arrival_count)
			return rc;
	}
	wc = &end->arrivals[end->arrival++];
	if (wc->status != IBV_WC_SUCCESS)
		return failed_completion(end, wc);
	/* A queue pair takes in messages in the order in which their buffers were posted. */
	if (wc->wr_id != in->done % in->slots || wc->byte_len > in->slot_bytes || wc->opcode != IBV_WC_RECV)
		return NEZHA_ERR_PROTOCOL;
	*data = in->memory + (size_t)wc->wr_id * in->slot_bytes;
	*length = wc->byte_len;
	*has_value = wc->wc_flags & IBV_WC_WITH_IMM;
	*value = *has_value ? be32toh(wc->imm_data) : 0;
	return NEZHA_INPROGRESS;
}

int nezha_verbs_end_return(struct nezha_verbs_end *end)
{
	struct nezha_verbs_ring *in = &end->in;
	uint32_t slot = in->posted % in->slots;
	struct ibv_sge piece = {
		.addr = (uintptr_t)in->memory + (size_t)slot * in->slot_bytes, .length = in->slot_bytes,
		.lkey = end->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &piece, .num_sge = 1 }, *bad;

	if (end->device->api->post_recv(end->qp, &wr, &bad))
		return failed(end, "a buffer cannot be posted");
	in->posted++;
	in->done = in->posted - in->slots;
	return NEZHA_OK;
}

void nezha_verbs_end_retire(struct nezha_verbs_end *end)
{
	LIST_INSERT_HEAD(&end->device->retired, end, entry);
}
