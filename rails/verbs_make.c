/* SPDX-License-Identifier: BSD-3-Clause
 * Making, connecting and ending queue pairs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rails/verbs_end.h"
#include "rails/verbs_message.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define BLOCK_SLOTS 32u         /* messages under way: 2 MiB */
#define BACK_SLOTS 64u          /* backward records */
#define BACK_BYTES 64u
#define RNR_TIMER 12u           /* 0.64 ms: how long a peer without a buffer asks us to wait */
#define RNR_FOR_EVER 7u
#define RNR_NEVER 1u            /* credits see to it that there is a buffer */
#define HOPS 64u

/* ---- an end's memory ---- */

static bool take_memory(struct nezha_verbs_memory *memory, uint64_t bytes)
{
	uint64_t now = atomic_fetch_add(&memory->now, bytes) + bytes, most = atomic_load(&memory->most);

	if (now > memory->limit) {
		atomic_fetch_sub(&memory->now, bytes);
		return false;
	}
	while (now > most && !atomic_compare_exchange_weak(&memory->most, &most, now))
		;
	return true;
}

static void set_rings(struct nezha_verbs_end *end)
{
	struct nezha_verbs_ring *blocks = end->sender ? &end->out : &end->in;
	struct nezha_verbs_ring *back = end->sender ? &end->in : &end->out;

	*blocks = (struct nezha_verbs_ring){ .slots = BLOCK_SLOTS, .slot_bytes = NEZHA_VERBS_MESSAGE };
	*back = (struct nezha_verbs_ring){ .slots = BACK_SLOTS, .slot_bytes = BACK_BYTES };
	end->bytes = blocks->slots * (size_t)blocks->slot_bytes + back->slots * (size_t)back->slot_bytes;
}

static int allocate(struct nezha_verbs_end *end)
{
	struct nezha_verbs_device *device = end->device;
	uint64_t bytes;

	set_rings(end);
	bytes = end->bytes;
	if (!take_memory(device->memory, bytes)) {
		end->bytes = 0;
		nezha_verbs_complain(device, "no more memory may be registered (NEZHA_VERBS=memory=%" PRIu64 ")",
		                     device->memory->limit >> 20);
		return NEZHA_ERR_NOMEM;
	}
	end->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (end->memory == MAP_FAILED) {
		end->memory = NULL;
		nezha_verbs_complain(device, "no memory: %m");
		return NEZHA_ERR_NOMEM;
	}
	/* After a fork the pages must still be the parent's. */
	madvise(end->memory, bytes, MADV_DONTFORK);
	end->out.memory = end->memory;
	end->in.memory = end->memory + (size_t)end->out.slots * end->out.slot_bytes;
	end->mr = device->api->reg_mr(device->pd, end->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!end->mr) {
		nezha_verbs_complain(device, "%" PRIu64 " bytes cannot be registered: %m (ulimit -l tells how many may be locked)",
		                     bytes);
		return NEZHA_ERR_NOMEM;
	}
	end->written = calloc(end->out.slots, sizeof *end->written);
	end->posted_at = calloc(end->out.slots, sizeof *end->posted_at);
	return end->written && end->posted_at ? NEZHA_OK : NEZHA_ERR_NOMEM;
}

/* ---- an end ---- */

static int make_queues(struct nezha_verbs_end *end)
{
	const struct nezha_verbs_api *api = end->device->api;
	struct ibv_context *context = end->device->context;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = end->out.slots, .max_recv_wr = end->in.slots, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	int flags;

	end->channel = api->create_comp_channel(context);
	if (!end->channel)
		return NEZHA_ERR_SYSTEM;
	flags = fcntl(end->channel->fd, F_GETFL);
	fcntl(end->channel->fd, F_SETFL, flags | O_NONBLOCK);
	end->send_cq = api->create_cq(context, (int)end->out.slots, NULL, end->channel, 0);
	end->recv_cq = api->create_cq(context, (int)end->in.slots, NULL, end->channel, 0);
	if (!end->send_cq || !end->recv_cq)
		return NEZHA_ERR_SYSTEM;
	/* The first message may come before anyone looks. */
	if (api->req_notify_cq(end->recv_cq, 0))
		return NEZHA_ERR_SYSTEM;
	end->recv_armed = true;
	attr.send_cq = end->send_cq;
	attr.recv_cq = end->recv_cq;
	end->qp = api->create_qp(end->device->pd, &attr);
	return end->qp ? NEZHA_OK : NEZHA_ERR_SYSTEM;
}

static int post_buffers(struct nezha_verbs_end *end)
{
	for (uint32_t i = 0; i < end->in.slots; i++)
		if (nezha_verbs_end_return(end) != NEZHA_OK)
			return NEZHA_ERR_SYSTEM;
	end->told = end->in.posted;
	return NEZHA_OK;
}

static int initialise(struct nezha_verbs_end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = end->device->port.port };

	if (end->device->api->modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	                                IBV_QP_ACCESS_FLAGS))
		return NEZHA_ERR_SYSTEM;
	return post_buffers(end);
}

int nezha_verbs_end_create(struct nezha_verbs_device *device, bool sender, struct nezha_verbs_end **out)
{
	struct nezha_verbs_end *end;
	int rc;

	if (device->dead) {
		nezha_verbs_complain(device, "the device has failed");
		return NEZHA_ERR_CLOSED;
	}
	rc = nezha_verbs_ask_port(device);
	if (rc != NEZHA_OK)
		return rc;
	end = calloc(1, sizeof *end);
	if (!end)
		return NEZHA_ERR_NOMEM;
	end->device = device;
	device->ends++;
	end->sender = sender;
	randombytes_buf(&end->psn, sizeof end->psn);
	end->psn &= 0xffffff;
	rc = allocate(end);
	if (rc != NEZHA_OK)
		goto destroy;
	rc = make_queues(end);
	if (rc == NEZHA_OK)
		rc = initialise(end);
	if (rc != NEZHA_OK) {
		nezha_verbs_complain(device, "no queue pair can be made: %m");
		goto destroy;
	}
	*out = end;
	return NEZHA_OK;

destroy:
	nezha_verbs_end_destroy(end);
	return rc;
}

void nezha_verbs_end_destroy(struct nezha_verbs_end *end)
{
	const struct nezha_verbs_api *api;

	if (!end)
		return;
	api = end->device->api;
	if (end->qp)
		api->destroy_qp(end->qp);
	if (end->send_cq)
		api->destroy_cq(end->send_cq);
	if (end->recv_cq)
		api->destroy_cq(end->recv_cq);
	if (end->channel)
		api->destroy_comp_channel(end->channel);
	if (end->mr)
		api->dereg_mr(end->mr);
	if (end->memory)
		munmap(end->memory, end->bytes);
	if (end->bytes)
		atomic_fetch_sub(&end->device->memory->now, end->bytes);
	free(end->written);
	free(end->posted_at);
	end->device->ends--;
	free(end);
}

int nezha_verbs_end_events(const struct nezha_verbs_end *end)
{
	return end->channel->fd;
}

/* ---- connecting ---- */

void nezha_verbs_end_offer(const struct nezha_verbs_end *end, struct nezha_verbs_offer *out)
{
	const struct nezha_verbs_device *device = end->device;

	memset(out, 0, sizeof *out);
	*out = (struct nezha_verbs_offer){
		.magic = NEZHA_VERBS_MAGIC, .kind = NEZHA_VERBS_OFFER, .link = (uint8_t)device->port.link,
		.qpn = end->qp->qp_num, .psn = end->psn, .lid = device->lid, .mtu = device->mtu,
		.buffers = end->in.slots, .message = NEZHA_VERBS_MESSAGE,
	};
	memcpy(out->gid, device->gid.raw, sizeof out->gid);
}

static enum ibv_mtu mtu_code(uint16_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && nezha_verbs_mtu(code) < bytes)
		code++;
	return code;
}

static int to_receive(struct nezha_verbs_end *end, const struct nezha_verbs_offer *peer)
{
	const struct nezha_verbs_device *device = end->device;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(peer->mtu < device->mtu ? peer->mtu : device->mtu),
		.dest_qp_num = peer->qpn, .rq_psn = peer->psn, .min_rnr_timer = RNR_TIMER,
		.ah_attr = { .dlid = peer->lid, .sl = (uint8_t)device->options.sl, .port_num = device->port.port },
	};

	/* Within an InfiniBand subnet the LID is enough; a GID that was asked for is used. */
	if (device->port.link == NEZHA_VERBS_ETHERNET || !peer->lid || device->options.gid >= 0) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.sgid_index = (uint8_t)device->port.gid;
		attr.ah_attr.grh.hop_limit = HOPS;
		memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof peer->gid);
	}
	return device->api->modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(struct nezha_verbs_end *end)
{
	const struct nezha_verbs_options *options = &end->device->options;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = (uint8_t)options->timeout, .retry_cnt = (uint8_t)options->retry,
		/* A peer that computes takes no backward records in; that is no failure. */
		.rnr_retry = end->sender ? RNR_NEVER : RNR_FOR_EVER,
		.sq_psn = end->psn,
	};

	return end->device->api->modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                                   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int nezha_verbs_end_connect(struct nezha_verbs_end *end, const struct nezha_verbs_offer *peer)
{
	if (peer->link != (uint8_t)end->device->port.link) {
		nezha_verbs_complain(end->device, "the peer's port is of another kind");
		return NEZHA_ERR_PROTOCOL;
	}
	end->may_send = end->peer_buffers = peer->buffers;
	end->peer_psn = peer->psn;
	errno = 0;
	if (to_receive(end, peer) || to_send(end)) {
		nezha_verbs_complain(end->device, "the queue pair cannot be connected: %m");
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}
