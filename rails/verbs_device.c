/* SPDX-License-Identifier: BSD-3-Clause
 * Opening a port's device, and what becomes of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/verbs_end.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define GIDS_MAX 256u
#define REVIVE_PAUSE (250 * NEZHA_MSEC)

static struct ibv_context *open_named(const struct nezha_verbs_api *api, const char *name)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int count = 0;

	list = api->get_device_list(&count);
	errno = list ? ENODEV : errno;
	for (int i = 0; i < count && list; i++)
		if (!strcmp(api->get_device_name(list[i]), name))
			context = api->open_device(list[i]);
	if (list)
		api->free_device_list(list);
	return context;
}

uint16_t nezha_verbs_mtu(enum ibv_mtu mtu)
{
	return (uint16_t)(128u << (mtu < IBV_MTU_256 ? IBV_MTU_256 : mtu > IBV_MTU_4096 ? IBV_MTU_4096 : mtu));
}

/* The GID to use: the user's, else what sysfs says; RoCE of both versions has the same GIDs, so where sysfs does not tell
 * the types, the library must. */
static int choose_gid(const struct nezha_verbs_device *device)
{
	const struct nezha_verbs_port *port = &device->port;
	struct ibv_gid_entry entry;

	if (device->options.gid >= 0)
		return device->options.gid;
	if (port->link != NEZHA_VERBS_ETHERNET || *port->gid_type || !device->api->query_gid_ex)
		return port->gid;
	for (uint32_t i = 0; i < GIDS_MAX; i++)
		if (!device->api->query_gid_ex(device->context, port->port, i, &entry, 0, sizeof entry) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(entry.gid.raw, port->gid_bytes, 16))
			return (int)i;
	return port->gid;
}

static int ask_port(struct nezha_verbs_device *device)
{
	struct ibv_port_attr attr;
	int gid = choose_gid(device);

	memset(&attr, 0, sizeof attr);
	if (device->api->query_port(device->context, device->port.port, &attr) ||
	    device->api->query_gid(device->context, device->port.port, gid, &device->gid))
		return NEZHA_ERR_SYSTEM;
	device->port.gid = gid;
	device->lid = attr.lid;
	device->mtu = nezha_verbs_mtu(attr.active_mtu);
	if (device->options.mtu && device->options.mtu < device->mtu)
		device->mtu = (uint16_t)device->options.mtu;
	return NEZHA_OK;
}

static void close_context(struct nezha_verbs_device *device)
{
	if (device->pd)
		device->api->dealloc_pd(device->pd);
	if (device->context)
		device->api->close_device(device->context);
	device->pd = NULL;
	device->context = NULL;
}

static int open_context(struct nezha_verbs_device *device)
{
	const struct nezha_verbs_api *api = device->api;
	int flags;

	device->context = open_named(api, device->port.device);
	if (device->context)
		device->pd = api->alloc_pd(device->context);
	if (!device->pd || ask_port(device) != NEZHA_OK) {
		close_context(device);
		return NEZHA_ERR_SYSTEM;
	}
	flags = fcntl(device->context->async_fd, F_GETFL);
	fcntl(device->context->async_fd, F_SETFL, flags | O_NONBLOCK);
	return NEZHA_OK;
}

int nezha_verbs_open(const struct nezha_verbs_port *port, const struct nezha_verbs_options *options,
                     struct nezha_verbs_memory *memory, struct nezha_verbs_device **out)
{
	const struct nezha_verbs_api *api = nezha_verbs_api();
	struct nezha_verbs_device *device;

	if (!api)
		return NEZHA_ERR_UNSUPPORTED;
	device = calloc(1, sizeof *device);
	if (!device)
		return NEZHA_ERR_NOMEM;
	device->api = api;
	device->port = *port;
	device->options = *options;
	device->memory = memory;
	LIST_INIT(&device->retired);
	if (open_context(device) != NEZHA_OK) {
		nezha_warn("verbs rail %s:%u is left out, it cannot be opened: %m", port->device, port->port);
		free(device);
		return NEZHA_ERR_SYSTEM;
	}
	*out = device;
	return NEZHA_OK;
}

void nezha_verbs_close(struct nezha_verbs_device *device)
{
	struct nezha_verbs_end *end;

	if (!device)
		return;
	while ((end = LIST_FIRST(&device->retired))) {
		LIST_REMOVE(end, entry);
		nezha_verbs_end_destroy(end);
	}
	close_context(device);
	free(device);
}

void nezha_verbs_bury(struct nezha_verbs_device *device, struct nezha_engine *engine)
{
	struct nezha_verbs_end *end;

	for (;;) {
		pthread_mutex_lock(&engine->lock);
		end = LIST_FIRST(&device->retired);
		if (end)
			LIST_REMOVE(end, entry);
		pthread_mutex_unlock(&engine->lock);
		if (!end)
			return;
		nezha_verbs_end_destroy(end);
	}
}

/* ---- what happens to the device ---- */

int nezha_verbs_watch(const struct nezha_verbs_device *device)
{
	return device->context && !device->dead ? device->context->async_fd : -1;
}

enum nezha_verbs_event nezha_verbs_event(struct nezha_verbs_device *device)
{
	enum nezha_verbs_event what = NEZHA_VERBS_NOTHING;
	struct ibv_async_event event;

	errno = 0;
	while (device->context && !device->api->get_async_event(device->context, &event)) {
		bool ours = event.element.port_num == device->port.port;

		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			device->dead = true;
		else if (event.event_type == IBV_EVENT_PORT_ERR && ours)
			what = NEZHA_VERBS_LOST;
		else if (event.event_type == IBV_EVENT_PORT_ACTIVE && ours)
			what = NEZHA_VERBS_BACK;
		device->api->ack_async_event(&event);
		errno = 0;
	}
	/* A device that was taken away may have no last word, only a descriptor that is always ready. */
	if (device->context && errno != EAGAIN && errno != EINTR)
		device->dead = true;
	return device->dead ? NEZHA_VERBS_LOST : what;
}

uint64_t nezha_verbs_revive(struct nezha_verbs_device *device, uint64_t now)
{
	if (!device->dead || device->ends)
		return UINT64_MAX;
	if (now < device->revive_at)
		return device->revive_at;
	close_context(device);
	device->dead = open_context(device) != NEZHA_OK;
	device->revive_at = now + REVIVE_PAUSE;
	return device->dead ? device->revive_at : now;
}
