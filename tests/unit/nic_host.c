/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/nic_host.h"

#include <arpa/inet.h>
#include <net/if_arp.h>
#include <stdio.h>

#include "tuning/status.h"

struct nezha_interface *host_device(struct host *host, const char *name, const char *kind, uint32_t speed)
{
	struct nezha_interface *interface = &host->interfaces[host->interface_count++];

	*interface = (struct nezha_interface){
		.index = (int)host->interface_count + 1,
		.flags = HOST_ON,
		.type = ARPHRD_ETHER,
		.speed = speed,
		.mtu = 1500,
		.numa = -1,
	};
	snprintf(interface->device, sizeof interface->device, "%s", name);
	snprintf(interface->kind, sizeof interface->kind, "%s", kind);
	return interface;
}

void host_address(struct host *host, const struct nezha_interface *interface, const char *text, unsigned prefix)
{
	struct nezha_interface_address *address = &host->addresses[host->address_count++];

	address->index = interface->index;
	address->prefix = (uint8_t)prefix;
	assert_int_equal(inet_pton(AF_INET, text, &address->address), 1);
}

struct nezha_interface *host_nic(struct host *host, const char *name, const char *kind, uint32_t speed, const char *text)
{
	struct nezha_interface *interface = host_device(host, name, kind, speed);

	host_address(host, interface, text, 24);
	return interface;
}

void host_loopback(struct host *host)
{
	struct nezha_interface *lo = host_device(host, "lo", "", 0);

	lo->flags |= IFF_LOOPBACK;
	lo->type = ARPHRD_LOOPBACK;
	host_address(host, lo, "127.0.0.1", 8);
}

void host_classify(struct host *host)
{
	host->nic_count = nezha_nic_classify(host->interfaces, host->interface_count, host->addresses,
	                                     host->address_count, host->nics, 2 * HOST_MOST);
}

void host_of_lab(struct host *host)
{
	host_loopback(host);
	host_nic(host, "e0", "veth", 10000, "10.77.0.1");
	host_nic(host, "e1", "veth", 10000, "10.77.1.1");
	host_nic(host, "em", "veth", 10000, "10.76.0.1");
	host_device(host, "bare", "veth", 10000);
	host_nic(host, "off", "", 10000, "10.78.0.1")->flags = 0;
	host_classify(host);
}

void host_choose(const struct host *host, const char *spec, struct host_rails *out)
{
	const struct nezha_nic_set set = { host->nics, host->nic_count, host->ports, host->port_count };
	char *error = NULL;

	if (nezha_nic_select(spec, &set, out->rails, &out->count, &out->notes, &error) != NEZHA_OK)
		fail_msg("%s: %s", spec, error);
}
