/* SPDX-License-Identifier: BSD-3-Clause
 * Completion queues and their event channels. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/conformance/fake_inside.h"

struct cq {
	struct ibv_cq ibv;
	bool armed;
	struct ibv_wc wc[FAKE_QUEUE];
	uint32_t put, got;
};

struct channel {
	struct ibv_comp_channel ibv;
	struct cq *events[FAKE_QUEUE];
	uint32_t put, got;
};

struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = fake_make(sizeof *channel);

	channel->ibv.context = context;
	channel->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return &channel->ibv;
}

int fake_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	return fake_unmake(channel);
}

struct ibv_cq *fake_create_cq(struct ibv_context *context, int entries, void *cq_context,
                              struct ibv_comp_channel *channel, int vector)
{
	struct cq *cq = fake_make(sizeof *cq);

	if (entries > FAKE_QUEUE || vector)
		fake_bug("a completion queue that is too long, or another vector than 0");
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	return &cq->ibv;
}

int fake_destroy_cq(struct ibv_cq *cq)
{
	return fake_unmake(cq);
}

void fake_complete(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	struct channel *channel = (struct channel *)ibv->channel;
	uint64_t one = 1;

	if (cq->put - cq->got == FAKE_QUEUE)
		fake_bug("a completion queue is overrun");
	cq->wc[cq->put++ % FAKE_QUEUE] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	channel->events[channel->put++ % FAKE_QUEUE] = cq;
	if (write(channel->ibv.fd, &one, sizeof one) < 0)
		fake_bug("an event cannot be told");
}

int fake_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct channel *channel = (struct channel *)ibv;
	uint64_t one;

	if (read(ibv->fd, &one, sizeof one) < 0)
		return -1;
	pthread_mutex_lock(&fake_lock);
	*cq = &channel->events[channel->got++ % FAKE_QUEUE]->ibv;
	*cq_context = (*cq)->cq_context;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

void fake_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	(void)cq, (void)count;
}

int fake_poll_cq(struct ibv_cq *ibv, int max, struct ibv_wc *out)
{
	struct cq *cq = (struct cq *)ibv;
	int n = 0;

	pthread_mutex_lock(&fake_lock);
	while (n < max && cq->got != cq->put)
		out[n++] = cq->wc[cq->got++ % FAKE_QUEUE];
	pthread_mutex_unlock(&fake_lock);
	return n;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	pthread_mutex_lock(&fake_lock);
	((struct cq *)cq)->armed = !solicited_only;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
