/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/fake_verbs.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QUEUE 128               /* entries of any queue */
#define PAIRS 1024              /* queue pairs at a time */
#define FIRST 100               /* number of the first */

struct cq {
	struct ibv_cq ibv;
	bool armed;
	struct ibv_wc wc[QUEUE];
	uint32_t put, got;
};

struct channel {
	struct ibv_comp_channel ibv;
	struct cq *events[QUEUE];
	uint32_t put, got;
};

struct work {
	uint64_t id;
	char *at;
	uint32_t length, value;
	bool has_value, signalled;
};

struct pair {
	struct ibv_qp ibv;
	uint32_t peer;
	struct work sends[QUEUE], receives[QUEUE];
	uint32_t send_put, send_got, receive_put, receive_got;
	uint32_t most_sends, most_receives;
};

struct context {
	struct ibv_context ibv;
	struct context *next;
	bool dead;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair *pairs[PAIRS];
static struct context *contexts;
static int objects, opened;
static long messages;
static struct { int after, times, happened; } faults[FAKE_FAULTS];

void fake_verbs_fault(enum fake_fault fault, int after, int times)
{
	pthread_mutex_lock(&lock);
	faults[fault].after = after;
	faults[fault].times = times;
	faults[fault].happened = 0;
	pthread_mutex_unlock(&lock);
}

int fake_verbs_happened(enum fake_fault fault)
{
	int happened;

	pthread_mutex_lock(&lock);
	happened = faults[fault].happened;
	pthread_mutex_unlock(&lock);
	return happened;
}

int fake_verbs_objects(void)
{
	return objects;
}

long fake_verbs_messages(void)
{
	return messages;
}

/* The lock is held. */
static bool happens(enum fake_fault fault)
{
	if (!faults[fault].times || --faults[fault].after > 0)
		return false;
	faults[fault].times--;
	faults[fault].happened++;
	return true;
}

static void *make(size_t bytes)
{
	void *object = calloc(1, bytes);

	if (!object)
		abort();
	pthread_mutex_lock(&lock);
	objects++;
	pthread_mutex_unlock(&lock);
	return object;
}

static int unmake(void *object)
{
	pthread_mutex_lock(&lock);
	objects--;
	pthread_mutex_unlock(&lock);
	free(object);
	return 0;
}

/* ---- the device ---- */

static struct ibv_device the_device = { .name = FAKE_DEVICE };

static struct ibv_device **get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof *list);

	list[0] = &the_device;
	*count = 1;
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	free(list);
}

static const char *get_device_name(struct ibv_device *device)
{
	return device->name;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	struct context *context = make(sizeof *context);

	context->ibv.device = device;
	context->ibv.async_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_lock(&lock);
	context->next = contexts;
	contexts = context;
	opened++;
	pthread_mutex_unlock(&lock);
	return &context->ibv;
}

static int close_device(struct ibv_context *context)
{
	struct context **at = &contexts;

	pthread_mutex_lock(&lock);
	while (&(*at)->ibv != context)
		at = &(*at)->next;
	*at = (*at)->next;
	pthread_mutex_unlock(&lock);
	close(context->async_fd);
	return unmake(context);
}

int fake_verbs_opened(void)
{
	int count;

	pthread_mutex_lock(&lock);
	count = opened;
	pthread_mutex_unlock(&lock);
	return count;
}

void fake_verbs_event(enum ibv_event_type type)
{
	uint64_t value = (uint64_t)type;

	pthread_mutex_lock(&lock);
	for (struct context *context = contexts; context; context = context->next) {
		context->dead = context->dead || type == IBV_EVENT_DEVICE_FATAL;
		if (write(context->ibv.async_fd, &value, sizeof value) < 0)
			abort();
	}
	pthread_mutex_unlock(&lock);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
	(void)context;
	out->state = IBV_PORT_ACTIVE;
	out->active_mtu = IBV_MTU_1024;
	return port == 1 ? 0 : EINVAL;
}

static int query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out)
{
	(void)context, (void)port;
	memset(out, index, sizeof *out);
	return 0;
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *out)
{
	uint64_t type;

	if (read(context->async_fd, &type, sizeof type) < 0)
		return -1;
	*out = (struct ibv_async_event){ .event_type = (enum ibv_event_type)type, .element.port_num = 1 };
	return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = make(sizeof *pd);

	pd->context = context;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	return unmake(pd);
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
	struct ibv_mr *mr;
	bool fails;

	pthread_mutex_lock(&lock);
	fails = happens(FAKE_REGISTER) || access != IBV_ACCESS_LOCAL_WRITE;
	pthread_mutex_unlock(&lock);
	errno = ENOMEM;
	if (fails)
		return NULL;
	mr = make(sizeof *mr);
	*mr = (struct ibv_mr){ .pd = pd, .addr = at, .length = length, .lkey = 77 };
	return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
	return unmake(mr);
}

/* ---- completions; the lock is held in the functions that begin with a verb alone ---- */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = make(sizeof *channel);

	channel->ibv.context = context;
	channel->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return &channel->ibv;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	return unmake(channel);
}

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int vector)
{
	struct cq *cq = make(sizeof *cq);

	if (entries > QUEUE || vector)
		abort();
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	return &cq->ibv;
}

static int destroy_cq(struct ibv_cq *cq)
{
	return unmake(cq);
}

static void complete(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	struct channel *channel = (struct channel *)ibv->channel;
	uint64_t one = 1;

	if (cq->put - cq->got == QUEUE)
		abort();        /* the queue is overrun */
	cq->wc[cq->put++ % QUEUE] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	channel->events[channel->put++ % QUEUE] = cq;
	if (write(channel->ibv.fd, &one, sizeof one) < 0)
		abort();
}

static int get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct channel *channel = (struct channel *)ibv;
	uint64_t one;

	if (read(ibv->fd, &one, sizeof one) < 0)
		return -1;
	pthread_mutex_lock(&lock);
	*cq = &channel->events[channel->got++ % QUEUE]->ibv;
	*cq_context = (*cq)->cq_context;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	(void)cq, (void)count;
}

static int poll_cq(struct ibv_cq *ibv, int max, struct ibv_wc *out)
{
	struct cq *cq = (struct cq *)ibv;
	int n = 0;

	pthread_mutex_lock(&lock);
	while (n < max && cq->got != cq->put)
		out[n++] = cq->wc[cq->got++ % QUEUE];
	pthread_mutex_unlock(&lock);
	return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	pthread_mutex_lock(&lock);
	((struct cq *)cq)->armed = !solicited_only;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* ---- queue pairs ---- */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct pair *pair;
	uint32_t i = 0;
	bool fails;

	pthread_mutex_lock(&lock);
	fails = happens(FAKE_CREATE) || ((struct context *)pd->context)->dead;
	pthread_mutex_unlock(&lock);
	errno = ENOMEM;
	if (fails)
		return NULL;
	pair = make(sizeof *pair);
	pair->ibv = (struct ibv_qp){ .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .qp_type = attr->qp_type };
	pair->most_sends = attr->cap.max_send_wr;
	pair->most_receives = attr->cap.max_recv_wr;
	pthread_mutex_lock(&lock);
	while (i < PAIRS && pairs[i])
		i++;
	if (i == PAIRS || attr->qp_type != IBV_QPT_RC)
		abort();
	pairs[i] = pair;
	pair->ibv.qp_num = FIRST + i;
	pthread_mutex_unlock(&lock);
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
		wc.wr_id = pair->sends[pair->send_got++ % QUEUE].id;
		complete(pair->ibv.send_cq, &wc);
	}
	while (pair->receive_got != pair->receive_put) {
		wc.wr_id = pair->receives[pair->receive_got++ % QUEUE].id;
		complete(pair->ibv.recv_cq, &wc);
	}
}

/* Its first send fails, it breaks. */
static void fail(struct pair *pair, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .status = status, .wr_id = pair->sends[pair->send_got++ % QUEUE].id };

	complete(pair->ibv.send_cq, &wc);
	flush_all(pair);
}

static void spoil(struct ibv_wc *wc)
{
	bool has_value = wc->wc_flags & IBV_WC_WITH_IMM;

	if (has_value && happens(FAKE_CREDITS))
		wc->imm_data = htobe32(be32toh(wc->imm_data) + 100);
	else if (has_value && happens(FAKE_NO_VALUE))
		wc->wc_flags = 0;
	else if (!has_value && happens(FAKE_VALUE))
		wc->wc_flags = IBV_WC_WITH_IMM;
	if (!has_value && happens(FAKE_EMPTY))
		wc->byte_len = 0;
	if (wc->byte_len > 8 && happens(FAKE_MISSING))
		wc->byte_len -= 8;
}

static void deliver(struct pair *pair, struct pair *peer)
{
	const struct work *from = &pair->sends[pair->send_got++ % QUEUE];
	const struct work *to = &peer->receives[peer->receive_got++ % QUEUE];
	struct ibv_wc sent = { .wr_id = from->id, .opcode = IBV_WC_SEND };
	struct ibv_wc came = {
		.wr_id = to->id, .opcode = IBV_WC_RECV, .byte_len = from->length,
		.wc_flags = from->has_value ? IBV_WC_WITH_IMM : 0, .imm_data = from->value,
	};

	if (from->length > to->length)
		abort();
	if (from->length)
		memcpy(to->at, from->at, from->length);
	spoil(&came);
	messages++;
	complete(peer->ibv.recv_cq, &came);
	if (from->signalled)
		complete(pair->ibv.send_cq, &sent);
}

static void progress(struct pair *pair)
{
	while (pair->ibv.state == IBV_QPS_RTS && pair->send_got != pair->send_put) {
		struct pair *peer = find(pair->peer);

		if (!peer || peer->ibv.state < IBV_QPS_RTR || peer->ibv.state > IBV_QPS_RTS)
			fail(pair, IBV_WC_RETRY_EXC_ERR);
		else if (happens(FAKE_COMPLETION))
			fail(pair, IBV_WC_REM_OP_ERR);
		else if (peer->receive_got != peer->receive_put)
			deliver(pair, peer);
		else
			return; /* until it has a buffer */
	}
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct pair *pair = (struct pair *)qp;
	bool fails;

	pthread_mutex_lock(&lock);
	fails = attr->qp_state == IBV_QPS_RTR && happens(FAKE_CONNECT);
	if (!fails && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (!fails && mask & IBV_QP_DEST_QPN)
		pair->peer = attr->dest_qp_num;
	pthread_mutex_unlock(&lock);
	return fails ? EINVAL : 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	pthread_mutex_lock(&lock);
	pairs[qp->qp_num - FIRST] = NULL;
	pthread_mutex_unlock(&lock);
	return unmake(qp);
}

static struct work work_of(uint64_t id, const struct ibv_sge *list, int count)
{
	return (struct work){ .id = id, .at = count ? (char *)(uintptr_t)list->addr : NULL, .length = count ? list->length : 0 };
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct pair *pair = (struct pair *)qp;
	struct work *work = &pair->sends[pair->send_put % QUEUE];
	bool fails;

	*bad = wr;
	pthread_mutex_lock(&lock);
	fails = happens(FAKE_POST) || pair->send_put - pair->send_got == pair->most_sends;
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
	pthread_mutex_unlock(&lock);
	return fails ? ENOMEM : 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *pair = (struct pair *)qp, *peer;

	*bad = wr;
	pthread_mutex_lock(&lock);
	if (pair->receive_put - pair->receive_got == pair->most_receives)
		abort();
	pair->receives[pair->receive_put++ % QUEUE] = work_of(wr->wr_id, wr->sg_list, wr->num_sge);
	peer = find(pair->peer);
	if (peer && peer->peer == qp->qp_num)
		progress(peer);
	if (qp->state == IBV_QPS_ERR)
		flush_all(pair);
	pthread_mutex_unlock(&lock);
	return 0;
}

static const char *wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "no answer" : "an error";
}

const struct nezha_verbs_api fake_verbs = {
	.get_device_list = get_device_list, .free_device_list = free_device_list, .get_device_name = get_device_name,
	.open_device = open_device, .close_device = close_device, .query_port = query_port, .query_gid = query_gid,
	.get_async_event = get_async_event, .ack_async_event = ack_async_event, .alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd, .reg_mr = reg_mr, .dereg_mr = dereg_mr, .create_comp_channel = create_comp_channel,
	.destroy_comp_channel = destroy_comp_channel, .create_cq = create_cq, .destroy_cq = destroy_cq,
	.get_cq_event = get_cq_event, .ack_cq_events = ack_cq_events, .create_qp = create_qp, .modify_qp = modify_qp,
	.destroy_qp = destroy_qp, .wc_status_str = wc_status_str, .poll_cq = poll_cq, .req_notify_cq = req_notify_cq,
	.post_send = post_send, .post_recv = post_recv,
};
