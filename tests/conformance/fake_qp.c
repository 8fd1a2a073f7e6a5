/* SPDX-License-Identifier: BSD-3-Clause
 * Queue pairs: what is sent lies in the peer's buffer at once, or when that has one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rails/wire.h"
#include "tests/conformance/fake_inside.h"
#include "tests/conformance/fake_region.h"

#define PAIRS 1024              /* queue pairs at a time */
#define FIRST 100               /* number of the first */
#define PAYLOAD_FROM 64         /* bytes after which a message has payload */

struct work {
	uint64_t id;
	struct ibv_sge piece;
	uint32_t value;
	bool has_value, signalled;
};

struct pair {
	struct ibv_qp ibv;
	uint32_t peer, send_psn, receive_psn;
	struct work sends[FAKE_QUEUE], receives[FAKE_QUEUE];
	uint32_t send_put, send_got, receive_put, receive_got;
	struct { uint64_t id; uint32_t buffer; } owed[FAKE_QUEUE];   /* completions: of what lies in the peer's buffer */
	uint32_t owed_put, owed_got;
	uint32_t most_sends, most_receives;
};

static struct pair *pairs[PAIRS];
static long messages, pairs_made;
static bool payload_moved = true, late;

void fake_verbs_payload(bool moved)
{
	payload_moved = moved;
}

void fake_verbs_late(bool completed_late)
{
	pthread_mutex_lock(&fake_lock);
	late = completed_late;
	pthread_mutex_unlock(&fake_lock);
}

long fake_verbs_messages(void)
{
	return messages;
}

long fake_verbs_pairs_made(void)
{
	long made;

	pthread_mutex_lock(&fake_lock);
	made = pairs_made;
	pthread_mutex_unlock(&fake_lock);
	return made;
}

struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct pair *pair;
	uint32_t i = 0;
	bool fails;

	pthread_mutex_lock(&fake_lock);
	fails = fake_happens(FAKE_CREATE) || fake_is_dead(pd->context);
	pthread_mutex_unlock(&fake_lock);
	errno = ENOMEM;
	if (fails)
		return NULL;
	pair = fake_make(sizeof *pair);
	pair->ibv = (struct ibv_qp){ .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .qp_type = attr->qp_type };
	pair->most_sends = attr->cap.max_send_wr;
	pair->most_receives = attr->cap.max_recv_wr;
	pthread_mutex_lock(&fake_lock);
	while (i < PAIRS && pairs[i])
		i++;
	if (i == PAIRS || attr->qp_type != IBV_QPT_RC)
		fake_bug("too many queue pairs, or one that is not RC");
	pairs[i] = pair;
	pairs_made++;
	pair->ibv.qp_num = FIRST + i;
	pthread_mutex_unlock(&fake_lock);
	return &pair->ibv;
}

static struct pair *find(uint32_t number)
{
	return number >= FIRST && number < FIRST + PAIRS ? pairs[number - FIRST] : NULL;
}

static void flush_all(struct pair *pair)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	pair->ibv.state = IBV_QPS_ERR;
	while (pair->send_got != pair->send_put) {
		wc.wr_id = pair->sends[pair->send_got++ % FAKE_QUEUE].id;
		fake_complete(pair->ibv.send_cq, &wc);
	}
	while (pair->receive_got != pair->receive_put) {
		wc.wr_id = pair->receives[pair->receive_got++ % FAKE_QUEUE].id;
		fake_complete(pair->ibv.recv_cq, &wc);
	}
}

void fake_verbs_break_pairs(void)
{
	pthread_mutex_lock(&fake_lock);
	for (uint32_t i = 0; i < PAIRS; i++)
		if (pairs[i] && pairs[i]->ibv.state == IBV_QPS_RTS)
			flush_all(pairs[i]);
	pthread_mutex_unlock(&fake_lock);
}

/* Its first send fails, it breaks. */
static void fail(struct pair *pair, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .status = status, .wr_id = pair->sends[pair->send_got++ % FAKE_QUEUE].id };

	fake_complete(pair->ibv.send_cq, &wc);
	flush_all(pair);
}

static void spoil(struct ibv_wc *wc)
{
	bool has_value = wc->wc_flags & IBV_WC_WITH_IMM;

	if (has_value && fake_happens(FAKE_CREDITS))
		wc->imm_data = htobe32(be32toh(wc->imm_data) + 100);
	else if (has_value && fake_happens(FAKE_NO_VALUE))
		wc->wc_flags = 0;
	else if (!has_value && fake_happens(FAKE_VALUE))
		wc->wc_flags = IBV_WC_WITH_IMM;
	if (!has_value && fake_happens(FAKE_EMPTY))
		wc->byte_len = 0;
	if (wc->byte_len > 8 && fake_happens(FAKE_MISSING))
		wc->byte_len -= 8;
}

static void complete_send(struct pair *pair, uint64_t id)
{
	fake_complete(pair->ibv.send_cq, &(struct ibv_wc){ .wr_id = id, .opcode = IBV_WC_SEND });
}

/* Completes what the receiver has taken out: it posts a buffer when it has emptied one. */
static void complete_taken(struct pair *pair, const struct pair *peer)
{
	uint32_t taken = peer->receive_put - peer->most_receives;

	while (pair->owed_got != pair->owed_put && (int32_t)(taken - pair->owed[pair->owed_got % FAKE_QUEUE].buffer) > 0)
		complete_send(pair, pair->owed[pair->owed_got++ % FAKE_QUEUE].id);
}

/* The bytes of a message; without its payload, as far as its beginning tells what that is. */
static void move(char *to, const char *from, uint32_t length)
{
	struct nezha_wire record = { .magic = NEZHA_WIRE_MAGIC };

	if (payload_moved) {
		memcpy(to, from, length);
		return;
	}
	for (uint64_t at = 0; at < length && record.magic == NEZHA_WIRE_MAGIC; at += sizeof record + record.length) {
		uint64_t some = length - at < sizeof record ? length - at : sizeof record;

		memcpy(to + at, from + at, some);
		memcpy(&record, from + at, some);
	}
}

static void deliver(struct pair *pair, struct pair *peer)
{
	const struct work *from = &pair->sends[pair->send_got++ % FAKE_QUEUE];
	uint32_t buffer = peer->receive_got++;
	const struct work *to = &peer->receives[buffer % FAKE_QUEUE];
	struct ibv_wc came = {
		.wr_id = to->id, .opcode = IBV_WC_RECV, .byte_len = from->piece.length,
		.wc_flags = from->has_value ? IBV_WC_WITH_IMM : 0, .imm_data = from->value,
	};

	if (from->piece.length > to->piece.length)
		fake_bug("a message is longer than the buffer");
	if (from->piece.length)
		move(fake_region_place(&to->piece), fake_region_place(&from->piece), from->piece.length);
	if (from->piece.length > 2 * PAYLOAD_FROM && fake_happens(FAKE_BIT))
		((unsigned char *)fake_region_place(&to->piece))[PAYLOAD_FROM + from->piece.length / 3] ^= 16;
	if (from->piece.length > 2 * PAYLOAD_FROM && fake_happens(FAKE_RECORD))
		((unsigned char *)fake_region_place(&to->piece))[PAYLOAD_FROM / 2] ^= 16;
	spoil(&came);
	messages++;
	fake_complete(peer->ibv.recv_cq, &came);
	if (!from->signalled)
		return;
	if ((late && buffer) || pair->owed_got != pair->owed_put) {
		pair->owed[pair->owed_put % FAKE_QUEUE].buffer = buffer;
		pair->owed[pair->owed_put++ % FAKE_QUEUE].id = from->id;
	} else {
		complete_send(pair, from->id);
	}
}

/* As a device does, by the first packet's number: a queue pair may have got the number of one that was the sender's peer. */
static bool listens(const struct pair *peer, const struct pair *pair)
{
	return peer && peer->ibv.state >= IBV_QPS_RTR && peer->ibv.state <= IBV_QPS_RTS && peer->receive_psn == pair->send_psn;
}

static void progress(struct pair *pair)
{
	while (pair->ibv.state == IBV_QPS_RTS && pair->send_got != pair->send_put) {
		struct pair *peer = find(pair->peer);

		if (!listens(peer, pair))
			fail(pair, IBV_WC_RETRY_EXC_ERR);
		else if (fake_happens(FAKE_COMPLETION))
			fail(pair, IBV_WC_REM_OP_ERR);
		else if (fake_happens(FAKE_SILENCE))
			pair->send_got++;
		else if (peer->receive_got != peer->receive_put)
			deliver(pair, peer);
		else
			return; /* until it has a buffer */
	}
}

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct pair *pair = (struct pair *)qp;
	bool fails;

	pthread_mutex_lock(&fake_lock);
	fails = attr->qp_state == IBV_QPS_RTR && fake_happens(FAKE_CONNECT);
	if (!fails && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (!fails && mask & IBV_QP_DEST_QPN)
		pair->peer = attr->dest_qp_num;
	if (!fails && mask & IBV_QP_SQ_PSN)
		pair->send_psn = attr->sq_psn;
	if (!fails && mask & IBV_QP_RQ_PSN)
		pair->receive_psn = attr->rq_psn;
	pthread_mutex_unlock(&fake_lock);
	return fails ? EINVAL : 0;
}

int fake_destroy_qp(struct ibv_qp *qp)
{
	pthread_mutex_lock(&fake_lock);
	pairs[qp->qp_num - FIRST] = NULL;
	pthread_mutex_unlock(&fake_lock);
	return fake_unmake(qp);
}

static struct work work_of(uint64_t id, const struct ibv_sge *list, int count)
{
	return (struct work){ .id = id, .piece = count ? *list : (struct ibv_sge){ 0 } };
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct pair *pair = (struct pair *)qp;
	struct work *work = &pair->sends[pair->send_put % FAKE_QUEUE];
	bool fails;

	*bad = wr;
	pthread_mutex_lock(&fake_lock);
	fails = fake_happens(FAKE_POST) || pair->send_put - pair->send_got == pair->most_sends;
	if (!fails) {
		*work = work_of(wr->wr_id, wr->sg_list, wr->num_sge);
		work->has_value = wr->opcode == IBV_WR_SEND_WITH_IMM;
		work->value = wr->imm_data;
		work->signalled = wr->send_flags & IBV_SEND_SIGNALED;
		pair->send_put++;
		progress(pair);
		if (qp->state == IBV_QPS_ERR)
			flush_all(pair);
	}
	pthread_mutex_unlock(&fake_lock);
	return fails ? ENOMEM : 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *pair = (struct pair *)qp, *peer;

	*bad = wr;
	pthread_mutex_lock(&fake_lock);
	if (pair->receive_put - pair->receive_got == pair->most_receives)
		fake_bug("a receive queue is overrun");
	pair->receives[pair->receive_put++ % FAKE_QUEUE] = work_of(wr->wr_id, wr->sg_list, wr->num_sge);
	peer = find(pair->peer);
	if (peer && peer->peer == qp->qp_num) {
		complete_taken(peer, pair);
		progress(peer);
	}
	if (qp->state == IBV_QPS_ERR)
		flush_all(pair);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
