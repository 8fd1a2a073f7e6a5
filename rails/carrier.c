/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/carrier.h"

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/link.h"
#include "tuning/log.h"

int nezha_carrier_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		nezha_info("the links' carrier cannot be watched: %m");
	return fd;
}

/* Not that of an interface that only makes connections for a port of another device. */
static bool counts(const struct nezha_rail_nic *rail)
{
	return rail->kind != NEZHA_RAIL_VERBS || rail->port.address.s_addr == rail->nic.address.s_addr;
}

static void lost(struct nezha_engine *engine, uint32_t r)
{
	engine->dark |= 1u << r;
	engine->regain[r].tell_at = 0;
	nezha_rail_lost(engine, r, true, "no carrier");
}

static void is_there(struct nezha_engine *engine, uint32_t r)
{
	if (engine->dark >> r & 1) {
		engine->regain[r].tell_at = nezha_now();
		engine->regain[r].pause = 0;
	}
	engine->dark &= ~(1u << r);
	nezha_rail_retry(engine, r);
}

static void changed(struct nezha_engine *engine, int index, bool running)
{
	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		const struct nezha_rail_nic *rail = &engine->rails[r];

		if ((int)if_nametoindex(rail->nic.device) != index || !counts(rail))
			continue;
		if (running)
			is_there(engine, r);
		else
			lost(engine, r);
	}
}

void nezha_carrier_read(int carrier, struct nezha_engine *engine)
{
	_Alignas(struct nlmsghdr) char buffer[16384];
	ssize_t n = recv(carrier, buffer, sizeof buffer, MSG_DONTWAIT);
	struct nlmsghdr *message = (struct nlmsghdr *)buffer;

	for (; n > 0 && NLMSG_OK(message, (size_t)n); message = NLMSG_NEXT(message, n)) {
		const struct ifinfomsg *info = NLMSG_DATA(message);

		if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
			continue;
		if (message->nlmsg_len < NLMSG_LENGTH(sizeof *info))
			continue;
		/* Of another family it is about a device's part in something else: it leaves a bridge, say. */
		if (info->ifi_family != AF_UNSPEC)
			continue;
		nezha_fairlock_take(&engine->lock);
		changed(engine, info->ifi_index, message->nlmsg_type == RTM_NEWLINK && info->ifi_flags & IFF_RUNNING);
		nezha_fairlock_give(&engine->lock);
		nezha_engine_wake(engine);
	}
}

static struct ifreq request_for(const struct nezha_rail_nic *rail)
{
	struct ifreq request = { .ifr_flags = 0 };

	memcpy(request.ifr_name, rail->nic.device, strnlen(rail->nic.device, sizeof request.ifr_name - 1));
	return request;
}

/* No answer is no reason to believe anything. */
static bool has_none(const struct nezha_rail_nic *rail, int fd)
{
	struct ethtool_value link = { .cmd = ETHTOOL_GLINK };
	struct ifreq request = request_for(rail);

	request.ifr_data = (char *)&link;
	return counts(rail) && !ioctl(fd, SIOCETHTOOL, &request) && !link.data;
}

/* The kernel's own view, which it may take a moment to change, and according to which it sends or does not. */
static bool is_down(const struct nezha_rail_nic *rail, int fd)
{
	struct ifreq request = request_for(rail);

	return counts(rail) && !ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_RUNNING);
}

void nezha_carrier_ask(struct nezha_engine *engine, uint32_t rails, int fd)
{
	for (uint32_t r = 0; rails >> r; r++) {
		if (!(rails >> r & 1) || !has_none(&engine->rails[r], fd))
			continue;
		nezha_fairlock_take(&engine->lock);
		lost(engine, r);
		nezha_fairlock_give(&engine->lock);
		nezha_engine_wake(engine);
	}
}

void nezha_carrier_ask_dark(struct nezha_engine *engine, uint32_t rails, int fd)
{
	for (uint32_t r = 0; rails >> r; r++) {
		if (!(rails >> r & 1) || is_down(&engine->rails[r], fd) || has_none(&engine->rails[r], fd))
			continue;
		nezha_fairlock_take(&engine->lock);
		is_there(engine, r);
		nezha_fairlock_give(&engine->lock);
	}
}
