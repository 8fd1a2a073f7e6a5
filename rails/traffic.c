/* SPDX-License-Identifier: BSD-3-Clause
 * What the rails' interfaces have sent, ours and others': by the kernel's counters. */
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <string.h>

#include "rails/engine.h"

static bool is_rail(const struct nezha_engine *engine, const char *device)
{
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		if (!strcmp(engine->rails[r].nic.device, device))
			return true;
	return false;
}

uint32_t nezha_engine_traffic(const struct nezha_engine *engine)
{
	struct ifaddrs *all, *one;
	uint32_t bytes = 0;

	if (getifaddrs(&all))
		return 0;
	for (one = all; one; one = one->ifa_next)
		if (one->ifa_addr && one->ifa_addr->sa_family == AF_PACKET && one->ifa_data && is_rail(engine, one->ifa_name))
			bytes += ((const struct rtnl_link_stats *)one->ifa_data)->tx_bytes;
	freeifaddrs(all);
	return bytes;
}
