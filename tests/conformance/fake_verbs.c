/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/conformance/fake_inside.h"
#include "tests/conformance/fake_port.h"
#include "tests/conformance/fake_region.h"

struct context {
	struct ibv_context ibv;
	struct context *next;
	bool dead;
};

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;
static int objects, opened;

static struct { int after, times, happened; } faults[FAKE_FAULTS];

void fake_verbs_fault(enum fake_fault fault, int after, int times)
{
	pthread_mutex_lock(&fake_lock);
	faults[fault].after = after;
	faults[fault].times = times;
	faults[fault].happened = 0;
	pthread_mutex_unlock(&fake_lock);
}

int fake_verbs_happened(enum fake_fault fault)
{
	int happened;

	pthread_mutex_lock(&fake_lock);
	happened = faults[fault].happened;
	pthread_mutex_unlock(&fake_lock);
	return happened;
}

int fake_verbs_objects(void)
{
	return objects;
}

bool fake_happens(enum fake_fault fault)
{
	if (!faults[fault].times || --faults[fault].after > 0)
		return false;
	faults[fault].times--;
	faults[fault].happened++;
	return true;
}

void fake_bug(const char *what)
{
	fprintf(stderr, "fake_verbs: %s\n", what);
	abort();
}

void *fake_make(size_t bytes)
{
	void *object = calloc(1, bytes);

	if (!object)
		fake_bug("no memory");
	pthread_mutex_lock(&fake_lock);
	objects++;
	pthread_mutex_unlock(&fake_lock);
	return object;
}

int fake_unmake(void *object)
{
	pthread_mutex_lock(&fake_lock);
	objects--;
	pthread_mutex_unlock(&fake_lock);
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
	struct context *context = fake_make(sizeof *context);

	context->ibv.device = device;
	context->ibv.async_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_lock(&fake_lock);
	context->next = contexts;
	contexts = context;
	opened++;
	pthread_mutex_unlock(&fake_lock);
	return &context->ibv;
}

static int close_device(struct ibv_context *context)
{
	struct context **at = &contexts;

	pthread_mutex_lock(&fake_lock);
	while (&(*at)->ibv != context)
		at = &(*at)->next;
	*at = (*at)->next;
	pthread_mutex_unlock(&fake_lock);
	close(context->async_fd);
	return fake_unmake(context);
}

int fake_verbs_opened(void)
{
	int count;

	pthread_mutex_lock(&fake_lock);
	count = opened;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void fake_verbs_event(enum ibv_event_type type)
{
	uint64_t value = (uint64_t)type;

	pthread_mutex_lock(&fake_lock);
	for (struct context *context = contexts; context; context = context->next) {
		context->dead = context->dead || type == IBV_EVENT_DEVICE_FATAL;
		if (write(context->ibv.async_fd, &value, sizeof value) < 0)
			fake_bug("an event cannot be told");
	}
	pthread_mutex_unlock(&fake_lock);
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

bool fake_is_dead(const struct ibv_context *context)
{
	return ((const struct context *)context)->dead;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = fake_make(sizeof *pd);

	pd->context = context;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	return fake_unmake(pd);
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
	bool fails;

	pthread_mutex_lock(&fake_lock);
	fails = fake_happens(FAKE_REGISTER) || access != IBV_ACCESS_LOCAL_WRITE;
	objects += !fails;
	pthread_mutex_unlock(&fake_lock);
	errno = ENOMEM;
	return fails ? NULL : fake_region_make(pd, at, length);
}

static int dereg_mr(struct ibv_mr *mr)
{
	fake_region_unmake(mr);
	pthread_mutex_lock(&fake_lock);
	objects--;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static const char *wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "no answer" : "an error";
}

const struct nezha_verbs_api fake_verbs = {
	.get_device_list = get_device_list, .free_device_list = free_device_list, .get_device_name = get_device_name,
	.open_device = open_device, .close_device = close_device, .query_port = fake_port_query,
	.query_gid = fake_port_query_gid,
	.get_async_event = get_async_event, .ack_async_event = ack_async_event, .alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd, .reg_mr = reg_mr, .dereg_mr = dereg_mr, .create_comp_channel = fake_create_comp_channel,
	.destroy_comp_channel = fake_destroy_comp_channel, .create_cq = fake_create_cq, .destroy_cq = fake_destroy_cq,
	.get_cq_event = fake_get_cq_event, .ack_cq_events = fake_ack_cq_events, .create_qp = fake_create_qp, .modify_qp = fake_modify_qp,
	.destroy_qp = fake_destroy_qp, .wc_status_str = wc_status_str, .poll_cq = fake_poll_cq, .req_notify_cq = fake_req_notify_cq,
	.post_send = fake_post_send, .post_recv = fake_post_recv,
};
