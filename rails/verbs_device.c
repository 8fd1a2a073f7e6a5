/* SPDX-License-Identifier: BSD-3-Clause
 * Opening a port's device, and what becomes of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/verbs_end.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define GIDS_MAX 256u
#define REVIVE_PAUSE (250 * NEZHA_MSEC)

void nezha_verbs_complain(struct nezha_verbs_device *device, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(device->why, sizeof device->why, format, args);
	va_end(args);
}

const char *nezha_verbs_why(const struct nezha_verbs_device *device)
{
	return device->why;
}

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

static bool is_roce_v2(const struct nezha_verbs_device *device, int index)
{
	struct ibv_gid_entry entry;

	return !device->api->query_gid_ex ||
	       (!device->api->query_gid_ex(device->context, device->port.port, (uint32_t)index, &entry, 0, sizeof entry) &&
	        entry.gid_type == IBV_GID_TYPE_ROCE_V2);
}

static bool is_gid(const struct nezha_verbs_device *device, int index, const unsigned char *wanted)
{
	union ibv_gid gid;

	return !device->api->query_gid(device->context, device->port.port, index, &gid) && !memcmp(gid.raw, wanted, sizeof gid.raw) &&
	       (device->port.link != NEZHA_VERBS_ETHERNET || is_roce_v2(device, index));
}

/* Where the GID is now, else `otherwise`. */
static int find_gid(const struct nezha_verbs_device *device, const unsigned char *wanted, int entries, int otherwise)
{
	for (int i = 0; i < entries && i < (int)GIDS_MAX; i++)
		if (is_gid(device, i, wanted))
			return i;
	return otherwise;
}

/* The GID to use: the user's, else what sysfs says; RoCE of both versions has the same GIDs, so where sysfs does not tell
 * the types, the library must.  Later it is the same one, which addresses that come and go may have moved; if it is no more, what
 * is in its place. */
static int choose_gid(const struct nezha_verbs_device *device, int entries)
{
	const struct nezha_verbs_port *port = &device->port;

	if (device->options.gid >= 0)
		return device->options.gid;
	if (device->asked)
		return is_gid(device, port->gid, device->gid.raw) ? port->gid : find_gid(device, device->gid.raw, entries, port->gid);
	if (port->link != NEZHA_VERBS_ETHERNET || *port->gid_type || !device->api->query_gid_ex)
		return port->gid;
	return find_gid(device, port->gid_bytes, entries, port->gid);
}

int nezha_verbs_ask_port(struct nezha_verbs_device *device)
{
	struct ibv_port_attr attr;
	int gid;

	memset(&attr, 0, sizeof attr);
	errno = device->api->query_port(device->context, device->port.port, &attr);
	if (errno)
		goto unknown;
	device->down = attr.state < IBV_PORT_ACTIVE;
	if (device->down && device->asked) {
		nezha_verbs_complain(device, "the port is down");
		return NEZHA_ERR_UNREACHABLE;
	}
	gid = choose_gid(device, attr.gid_tbl_len);
	if (device->api->query_gid(device->context, device->port.port, gid, &device->gid))
		goto unknown;
	device->port.gid = gid;
	device->lid = attr.lid;
	device->mtu = nezha_verbs_mtu(attr.active_mtu);
	if (device->options.mtu && device->options.mtu < device->mtu)
		device->mtu = (uint16_t)device->options.mtu;
	device->asked = true;
	return NEZHA_OK;

unknown:
	nezha_verbs_complain(device, "the port cannot be asked: %m");
	return NEZHA_ERR_SYSTEM;
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
	if (!device->pd || nezha_verbs_ask_port(device) != NEZHA_OK) {
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
		nezha_fairlock_take(&engine->lock);
		end = LIST_FIRST(&device->retired);
		if (end)
			LIST_REMOVE(end, entry);
		nezha_fairlock_give(&engine->lock);
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

bool nezha_verbs_usable(const struct nezha_verbs_device *device)
{
	return !device->dead && !device->down;
}

/* Whether paths that were connected before are at an end: their peers know the port by another address.  */
static bool has_moved(struct nezha_verbs_device *device)
{
	union ibv_gid gid = device->gid;
	int index = device->port.gid;
	uint16_t lid = device->lid;

	return nezha_verbs_ask_port(device) == NEZHA_OK &&
	       (lid != device->lid || index != device->port.gid || memcmp(gid.raw, device->gid.raw, sizeof gid.raw) != 0);
}

/* The worst of what has happened. */
static enum nezha_verbs_event take_event(struct nezha_verbs_device *device, const struct ibv_async_event *event)
{
	bool ours = event->element.port_num == device->port.port;

	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		device->dead = true;
		return NEZHA_VERBS_LOST;
	case IBV_EVENT_PORT_ERR:
		device->down = device->down || ours;
		return ours ? NEZHA_VERBS_LOST : NEZHA_VERBS_NOTHING;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		return !ours ? NEZHA_VERBS_NOTHING : has_moved(device) ? NEZHA_VERBS_LOST : NEZHA_VERBS_BACK;
	default:
		return NEZHA_VERBS_NOTHING;
	}
}

enum nezha_verbs_event nezha_verbs_event(struct nezha_verbs_device *device)
{
	enum nezha_verbs_event what = NEZHA_VERBS_NOTHING;
	struct ibv_async_event event;

	errno = 0;
	while (device->context && !device->api->get_async_event(device->context, &event)) {
		enum nezha_verbs_event this = take_event(device, &event);

		/* A port that was down and is back has lost its paths all the same. */
		if (what != NEZHA_VERBS_LOST && this != NEZHA_VERBS_NOTHING)
			what = this;
		device->api->ack_async_event(&event);
		errno = 0;
	}
	/* A device that was taken away may have no last word, only a descriptor that is always ready. */
	if (device->context && errno != EAGAIN && errno != EINTR)
		device->dead = true;
	return device->dead ? NEZHA_VERBS_LOST : what;
}

/* Opens a dead device, or asks a port that is down.  Whether it can be used again. */
static bool look_again(struct nezha_verbs_device *device)
{
	if (!device->dead)
		return nezha_verbs_ask_port(device) == NEZHA_OK;
	close_context(device);
	device->dead = open_context(device) != NEZHA_OK;
	return nezha_verbs_usable(device);
}

uint64_t nezha_verbs_revive(struct nezha_verbs_device *device, uint64_t now, bool *back)
{
	*back = false;
	if (nezha_verbs_usable(device) || (device->dead && device->ends))
		return UINT64_MAX;
	if (now >= device->revive_at) {
		device->revive_at = now + REVIVE_PAUSE;
		*back = look_again(device);
	}
	return *back ? now : device->revive_at;
}
