/* SPDX-License-Identifier: BSD-3-Clause
 * The NIC selector on made-up hosts, and on this one. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/nic_class.h"
#include "tuning/status.h"

#define MOST 32
#define ON (IFF_UP | IFF_RUNNING)

/* A host under construction, and what the selector makes of it. */
struct host {
	struct nezha_interface interfaces[MOST];
	struct nezha_interface_address addresses[MOST];
	struct nezha_nic nics[2 * MOST];
	struct nezha_verbs_port ports[4];
	size_t interface_count, address_count, nic_count, port_count;
};

static struct nezha_interface *device(struct host *host, const char *name, const char *kind, uint32_t speed)
{
	struct nezha_interface *interface = &host->interfaces[host->interface_count++];

	*interface = (struct nezha_interface){
		.index = (int)host->interface_count + 1,
		.flags = ON,
		.type = ARPHRD_ETHER,
		.speed = speed,
		.mtu = 1500,
		.numa = -1,
	};
	snprintf(interface->device, sizeof interface->device, "%s", name);
	snprintf(interface->kind, sizeof interface->kind, "%s", kind);
	return interface;
}

static void address(struct host *host, const struct nezha_interface *interface, const char *text,
                    unsigned prefix)
{
	struct nezha_interface_address *address = &host->addresses[host->address_count++];

	address->index = interface->index;
	address->prefix = (uint8_t)prefix;
	assert_int_equal(inet_pton(AF_INET, text, &address->address), 1);
}

/* An interface with one address of a /24. */
static struct nezha_interface *nic(struct host *host, const char *name, const char *kind, uint32_t speed,
                                   const char *text)
{
	struct nezha_interface *interface = device(host, name, kind, speed);

	address(host, interface, text, 24);
	return interface;
}

static void loopback(struct host *host)
{
	struct nezha_interface *lo = device(host, "lo", "", 0);

	lo->flags |= IFF_LOOPBACK;
	lo->type = ARPHRD_LOOPBACK;
	address(host, lo, "127.0.0.1", 8);
}

static void classify(struct host *host)
{
	host->nic_count = nezha_nic_classify(host->interfaces, host->interface_count, host->addresses,
	                                     host->address_count, host->nics, 2 * MOST);
}

/* Why the line that starts with "DEVICE ADDRESS" is out; NULL: it is a rail. */
static const char *verdict(const struct host *host, const char *name, const char *text)
{
	for (size_t i = 0; i < host->nic_count; i++) {
		char has[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &host->nics[i].address, has, sizeof has);
		if (strcmp(host->nics[i].device, name) == 0 && (!text || strcmp(has, text) == 0))
			return host->nics[i].why_not;
	}
	fail_msg("%s is not listed", name);
	return NULL;
}

#define assert_rail(host, name)     assert_null(verdict(host, name, NULL))
#define assert_out(host, name, why) assert_string_equal(verdict(host, name, NULL), why)

/* ---- what is a rail by default ---- */

static void only_nic_is_in(void **state)
{
	struct host host = { 0 };

	(void)state;
	loopback(&host);
	nic(&host, "eth0", "", 1000, "192.168.1.5")->default_route = true;
	classify(&host);
	assert_int_equal(host.nic_count, 2);
	assert_rail(&host, "eth0");
	assert_out(&host, "lo", "loopback");
}

static void slow_nic_with_default_route_is_management(void **state)
{
	static const struct {
		uint32_t speed, other;
		bool in;
	} cases[] = {
		{ 1000, 25000, false },   { 1000, 10000, false }, { 10000, 100000, false },
		{ 25000, 100000, false }, { 1000, 1000, true },   { 10000, 25000, true },
		{ 100000, 1000, true },   { 0, 100000, true },    { 1000, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct host host = { 0 };

		nic(&host, "eno1", "", cases[i].speed, "10.0.0.5")->default_route = true;
		nic(&host, "ens1", "", cases[i].other, "10.1.0.5");
		classify(&host);
		assert_rail(&host, "ens1");
		if (cases[i].in)
			assert_rail(&host, "eno1");
		else
			assert_out(&host, "eno1", "management: slow, has the default route");
	}
}

/* A rail that itself is out must not push the management NIC out. */
static void management_needs_a_usable_other(void **state)
{
	struct host host = { 0 };

	(void)state;
	nic(&host, "eno1", "", 1000, "10.0.0.5")->default_route = true;
	nic(&host, "ens1", "", 100000, "10.1.0.5")->flags = IFF_UP;
	nic(&host, "veth0", "veth", 10000, "10.2.0.5");
	classify(&host);
	assert_rail(&host, "eno1");
	assert_out(&host, "ens1", "no carrier");
}

static void slow_nic_without_default_route_stays(void **state)
{
	struct host host = { 0 };

	(void)state;
	nic(&host, "eno1", "", 1000, "10.0.0.5");
	nic(&host, "ens1", "", 100000, "10.1.0.5")->default_route = true;
	classify(&host);
	assert_rail(&host, "eno1");
	assert_rail(&host, "ens1");
}

static void down_or_without_carrier_is_out(void **state)
{
	struct host host = { 0 };

	(void)state;
	nic(&host, "eth0", "", 1000, "10.0.0.1")->flags = 0;
	nic(&host, "eth1", "", 1000, "10.0.1.1")->flags = IFF_UP;
	nic(&host, "eth2", "", 1000, "10.0.2.1");
	classify(&host);
	assert_out(&host, "eth0", "down");
	assert_out(&host, "eth1", "no carrier");
	assert_rail(&host, "eth2");
	assert_false(host.nics[0].carrier || host.nics[1].carrier);
	assert_true(host.nics[2].carrier);
}

static void bond_is_in_its_members_out(void **state)
{
	static const char *const kinds[] = { "bond", "team" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct host host = { 0 };
		struct nezha_interface *bond = nic(&host, "bond0", kinds[i], 50000, "10.1.0.1");

		device(&host, "eth0", "", 25000)->master = bond->index;
		nic(&host, "eth1", "", 25000, "10.9.0.1")->master = bond->index;
		classify(&host);
		assert_rail(&host, "bond0");
		assert_true(host.nics[0].physical);
		assert_out(&host, "eth0", "no IPv4 address");
		assert_out(&host, "eth1", "a member of a bond");
	}
}

static void vlan_stands_for_its_wire_once(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *eth0, *eth1, *bond, *upper;

	(void)state;
	eth0 = nic(&host, "eth0", "", 25000, "10.0.0.1");
	nic(&host, "eth0.5", "vlan", 25000, "10.5.0.1")->lower = eth0->index;
	eth1 = nic(&host, "eth1", "", 25000, "10.1.0.1");
	eth1->default_route = true;
	nic(&host, "eth1.6", "vlan", 25000, "10.6.0.1")->lower = eth1->index;
	bond = device(&host, "bond0", "bond", 50000);
	upper = nic(&host, "bond0.7", "vlan", 50000, "10.7.0.1");
	upper->lower = bond->index;
	nic(&host, "mv0", "macvlan", 50000, "10.8.0.1")->lower = upper->index;
	classify(&host);
	assert_rail(&host, "eth0");
	assert_out(&host, "eth0.5", "shares the wire of a rail");
	assert_out(&host, "eth1", "shares the wire of a rail");
	assert_rail(&host, "eth1.6");
	assert_rail(&host, "bond0.7");
	assert_out(&host, "mv0", "shares the wire of a rail");
}

/* In a container the lower device is in another namespace. */
static void macvlan_of_a_container_is_in(void **state)
{
	struct host host = { 0 };

	(void)state;
	nic(&host, "net1", "macvlan", 100000, "10.1.0.1");
	nic(&host, "eth0", "veth", 10000, "172.17.0.2")->default_route = true;
	classify(&host);
	assert_rail(&host, "net1");
	assert_out(&host, "eth0", "a virtual device");
}

/* A loop of lower devices, which the kernel should never tell, ends. */
static void loop_of_lower_devices_ends(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *a = nic(&host, "a", "vlan", 0, "10.0.0.1"),
			       *b = nic(&host, "b", "vlan", 0, "10.0.1.1");

	(void)state;
	a->lower = b->index;
	b->lower = a->index;
	classify(&host);
	assert_int_equal(host.nic_count, 2);
}

static void infiniband_is_in(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *ib0;

	(void)state;
	nic(&host, "eno1", "", 1000, "10.0.0.1")->default_route = true;
	ib0 = nic(&host, "ib0", "ipoib", 100000, "10.4.0.1");
	ib0->type = ARPHRD_INFINIBAND;
	nic(&host, "ib0.8001", "ipoib", 100000, "10.5.0.1")->lower = ib0->index;
	classify(&host);
	assert_out(&host, "eno1", "management: slow, has the default route");
	assert_rail(&host, "ib0");
	assert_out(&host, "ib0.8001", "shares the wire of a rail");
}

static void virtual_devices_are_out(void **state)
{
	static const struct {
		const char *device, *kind, *why;
		unsigned flags;
	} cases[] = {
		{ "docker0", "bridge", "a bridge of virtual ports", ON },
		{ "virbr0", "bridge", "a bridge of virtual ports", ON },
		{ "veth1a2b", "veth", "a virtual device", ON },
		{ "flannel.1", "vxlan", "a virtual device", ON },
		{ "genev_sys", "geneve", "a virtual device", ON },
		{ "dummy0", "dummy", "a virtual device", ON },
		{ "kube-ipvs0", "dummy", "a virtual device", ON },
		{ "ovs-br", "openvswitch", "a virtual device", ON },
		{ "tun0", "tun", "a tunnel or point-to-point", ON | IFF_POINTOPOINT },
		{ "tap0", "tun", "a tunnel or point-to-point", ON },
		{ "wg0", "wireguard", "a tunnel or point-to-point", ON | IFF_POINTOPOINT },
		{ "ppp0", "", "a tunnel or point-to-point", ON | IFF_POINTOPOINT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct host host = { 0 };

		nic(&host, cases[i].device, cases[i].kind, 10000, "172.17.0.1")->flags = cases[i].flags;
		classify(&host);
		assert_out(&host, cases[i].device, cases[i].why);
		assert_false(host.nics[0].physical);
	}
}

static void bridge_over_an_adapter_is_in(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *bridge;

	(void)state;
	bridge = nic(&host, "br0", "bridge", 10000, "10.1.0.1");
	nic(&host, "eth0", "", 10000, "10.2.0.1")->master = bridge->index;
	device(&host, "vnet0", "tun", 10)->master = bridge->index;
	classify(&host);
	assert_rail(&host, "br0");
	assert_out(&host, "eth0", "a port of a bridge");
	assert_out(&host, "vnet0", "no IPv4 address");
}

static void odd_addresses_are_out(void **state)
{
	struct host host = { 0 };

	(void)state;
	nic(&host, "idrac", "", 0, "169.254.0.2");
	address(&host, device(&host, "ens4", "", 0), "10.128.0.2", 32);
	nic(&host, "slip0", "", 0, "10.3.0.1")->type = ARPHRD_SLIP;
	address(&host, device(&host, "eth9", "", 0), "10.9.0.2", 31);
	classify(&host);
	assert_out(&host, "idrac", "a link-local address");
	assert_out(&host, "ens4", "a /32 says nothing of its network");
	assert_out(&host, "slip0", "neither Ethernet nor InfiniBand");
	assert_rail(&host, "eth9");
}

static void other_masters(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *vrf = device(&host, "red", "vrf", 0),
			       *vm = nic(&host, "eth0", "", 50000, "10.0.0.4");

	(void)state;
	nic(&host, "eth1", "", 1000, "10.1.0.1")->master = vrf->index;
	nic(&host, "enP1s1", "", 50000, "10.0.0.5")->master = vm->index; /* as in a cloud's virtual machine */
	nic(&host, "eth2", "", 1000, "10.2.0.1")->master = 99;
	classify(&host);
	assert_out(&host, "eth1", "in a VRF");
	assert_out(&host, "enP1s1", "belongs to another interface");
	assert_out(&host, "eth2", "belongs to another interface");
	assert_rail(&host, "eth0");
}

static void second_address_is_out_two_nics_of_a_subnet_in(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *eth0 = nic(&host, "eth0", "", 10000, "10.1.0.9");

	(void)state;
	address(&host, eth0, "10.1.0.4", 24);
	address(&host, eth0, "10.2.0.4", 24);
	nic(&host, "eth1", "", 10000, "10.1.0.5");
	classify(&host);
	assert_null(verdict(&host, "eth0", "10.1.0.4"));
	assert_string_equal(verdict(&host, "eth0", "10.1.0.9"), "a second address of a rail");
	assert_string_equal(verdict(&host, "eth0", "10.2.0.4"), "a second address of a rail");
	assert_rail(&host, "eth1");
}

static void natural_order(void **state)
{
	static const char *const want[] = { "eth1", "eth2", "eth10", "eth10", "eth10a", "ib0", "ib00" };
	struct host host = { 0 };

	(void)state;
	nic(&host, "ib00", "", 0, "10.0.5.1");
	nic(&host, "ib0", "", 0, "10.0.4.1");
	nic(&host, "eth10a", "", 0, "10.0.3.1");
	address(&host, nic(&host, "eth10", "", 0, "10.0.2.200"), "10.0.2.3", 24);
	nic(&host, "eth2", "", 0, "10.0.1.1");
	nic(&host, "eth1", "", 0, "10.0.0.1");
	classify(&host);
	assert_int_equal(host.nic_count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(host.nics[i].device, want[i]);
	assert_int_equal(ntohl(host.nics[2].address.s_addr) & 255, 3);
	assert_int_equal(nezha_nic_classify(host.interfaces, host.interface_count, host.addresses,
	                                    host.address_count, host.nics, 3),
	                 3);
	assert_int_equal(nezha_nic_classify(NULL, 0, NULL, 0, host.nics, 3), 0);
}

static void rails_do_not_drown(void **state)
{
	struct host host = { 0 };

	(void)state;
	device(&host, "cali0", "veth", 10000);
	device(&host, "cali1", "veth", 10000);
	nic(&host, "docker0", "bridge", 10000, "172.17.0.1");
	nic(&host, "eth0", "", 10000, "10.1.0.1");
	loopback(&host);
	assert_int_equal(nezha_nic_classify(host.interfaces, host.interface_count, host.addresses,
	                                    host.address_count, host.nics, 3),
	                 3);
	assert_string_equal(host.nics[0].device, "docker0");
	assert_string_equal(host.nics[1].device, "eth0");
	assert_int_equal(nezha_nic_classify(host.interfaces, host.interface_count, host.addresses,
	                                    host.address_count, host.nics, 1),
	                 1);
	assert_string_equal(host.nics[0].device, "eth0");
	assert_int_equal(nezha_nic_classify(host.interfaces, host.interface_count, host.addresses,
	                                    host.address_count, host.nics, 0),
	                 0);
}

/* ---- NEZHA_RAILS ---- */

static void lab_host(struct host *host)
{
	loopback(host);
	nic(host, "e0", "veth", 10000, "10.77.0.1");
	nic(host, "e1", "veth", 10000, "10.77.1.1");
	nic(host, "em", "veth", 10000, "10.76.0.1");
	device(host, "bare", "veth", 10000);
	nic(host, "off", "", 10000, "10.78.0.1")->flags = 0;
	classify(host);
}

struct chosen {
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	size_t count;
	char *notes;
};

static void choose(const struct host *host, const char *spec, struct chosen *out)
{
	char *error = NULL;
	int status = nezha_nic_select(spec, &(struct nezha_nic_set){ host->nics, host->nic_count, host->ports, host->port_count },
	                              out->rails, &out->count, &out->notes,
	                              &error);

	if (status != NEZHA_OK)
		fail_msg("%s: %s", spec, error);
}

/* "e0 10.77.0.0/24 0.0" for each rail: device, key_subnet/key_prefix, key_entry.key_ordinal. */
static void assert_chosen(const struct host *host, const char *spec, const char *want, const char *notes)
{
	struct chosen chosen;
	char text[1024] = "";

	choose(host, spec, &chosen);
	for (size_t r = 0; r < chosen.count; r++) {
		const struct nezha_rail_nic *rail = &chosen.rails[r];
		struct in_addr subnet = { rail->key_subnet };
		char key[INET_ADDRSTRLEN], one[96];

		inet_ntop(AF_INET, &subnet, key, sizeof key);
		snprintf(one, sizeof one, "%s%s%s%s %s/%u %u.%u", r ? ", " : "", nezha_rail_name(rail),
		         rail->kind == NEZHA_RAIL_VERBS ? " by " : "", rail->kind == NEZHA_RAIL_VERBS ? rail->nic.device : "", key,
		         rail->key_prefix, rail->key_entry, rail->key_ordinal);
		strcat(text, one);
	}
	assert_string_equal(text, want);
	assert_string_equal(chosen.notes, notes);
	free(chosen.notes);
}

static void named_rails(void **state)
{
	struct host host = { 0 };

	(void)state;
	lab_host(&host);
	assert_chosen(&host, "tcp:e1,tcp:e0", "e1 0.0.0.0/0 1.0, e0 0.0.0.0/0 2.0", "");
	assert_chosen(&host, "tcp:10.77.0.0/24", "e0 10.77.0.0/24 0.0", "");
	assert_chosen(&host, "tcp:10.77.0.0/16", "e0 10.77.0.0/16 0.0, e1 10.77.0.0/16 0.1", "");
	assert_chosen(&host, "tcp:10.77.1.0/24,tcp:10.77.0.0/16", "e1 10.77.1.0/24 0.0, e0 10.77.0.0/16 0.0",
	              "");
	assert_chosen(&host, "tcp:e0,tcp:e0,tcp:10.77.0.0/24", "e0 0.0.0.0/0 1.0", "");
	assert_chosen(&host, "tcp:127.0.0.0/8", "lo 127.0.0.0/8 0.0", "");
	assert_chosen(&host, "tcp:10.0.0.0/8", "e0 10.0.0.0/8 0.0, e1 10.0.0.0/8 0.1, em 10.0.0.0/8 0.2",
	              "NEZHA_RAILS: \"tcp:10.0.0.0/8\": off is down or has no carrier on this host\n");
}

static void named_but_not_here_is_noted(void **state)
{
	struct host host = { 0 };

	(void)state;
	lab_host(&host);
	assert_chosen(&host, "tcp:10.99.0.0/16,tcp:e0", "e0 0.0.0.0/0 2.0",
	              "NEZHA_RAILS: \"tcp:10.99.0.0/16\": this host has no address in it\n");
	assert_chosen(&host, "tcp:bare", "",
	              "NEZHA_RAILS: \"tcp:bare\": bare has no IPv4 address on this host\n");
	assert_chosen(&host, "tcp:off", "",
	              "NEZHA_RAILS: \"tcp:off\": off is down or has no carrier on this host\n");
}

static void device_with_several_addresses_is_one_rail(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *eth0 = nic(&host, "eth0", "", 0, "10.0.0.9");
	struct chosen chosen;

	(void)state;
	address(&host, eth0, "169.254.3.3", 16);
	address(&host, eth0, "192.168.0.9", 24);
	nic(&host, "eth1", "", 0, "169.254.4.4");
	classify(&host);
	choose(&host, "tcp:eth0,tcp:eth1", &chosen);
	assert_int_equal(chosen.count, 2);
	assert_int_equal(ntohl(chosen.rails[0].nic.address.s_addr), 0x0a000009);
	assert_int_equal(ntohl(chosen.rails[1].nic.address.s_addr), 0xa9fe0404);
	free(chosen.notes);
	assert_chosen(&host, "tcp:0.0.0.0/1", "eth0 0.0.0.0/1 0.0", "");
}

static void auto_takes_the_usable_ones(void **state)
{
	struct host host = { 0 }, lab = { 0 };

	(void)state;
	loopback(&host);
	nic(&host, "eth0", "", 1000, "10.0.0.1")->default_route = true;
	nic(&host, "eth2", "", 25000, "10.2.0.1");
	nic(&host, "eth3", "", 25000, "10.2.0.2");
	nic(&host, "ib0", "ipoib", 100000, "10.3.0.1")->type = ARPHRD_INFINIBAND;
	classify(&host);
	assert_chosen(&host, "auto", "eth2 10.2.0.0/24 0.0, eth3 10.2.0.0/24 0.1, ib0 10.3.0.0/24 0.0", "");
	lab_host(&lab);
	assert_chosen(&lab, "auto", "", "");
}

static void the_fastest_eight_of_more(void **state)
{
	struct host host = { 0 };
	struct chosen chosen;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		char name[8], text[16];

		snprintf(name, sizeof name, "eth%u", i);
		snprintf(text, sizeof text, "10.%u.0.1", i);
		nic(&host, name, "", i < 2 ? 10000 : 400000, text);
	}
	classify(&host);
	choose(&host, "auto", &chosen);
	assert_int_equal(chosen.count, NEZHA_RAILS_MAX);
	assert_string_equal(chosen.rails[0].nic.device, "eth2");
	assert_string_equal(chosen.rails[7].nic.device, "eth9");
	assert_string_equal(chosen.notes, "NEZHA_RAILS: 2 more rails are left out: at most 8 can be used\n");
	free(chosen.notes);
	choose(&host, "tcp:10.0.0.0/8", &chosen);
	assert_int_equal(chosen.count, NEZHA_RAILS_MAX);
	assert_string_equal(chosen.notes, "NEZHA_RAILS: 2 more rails are left out: at most 8 can be used\n");
	free(chosen.notes);
}

/* An aggregator is beside the rails that are named, or, where none is, beside those that are found. */
static void aggregators_are_no_rails(void **state)
{
	static const struct {
		const char *spec, *alike;
		uint16_t ports[NEZHA_INA_MAX];
	} cases[] = {
		{ "tcp:e0,ina:10.77.0.254", "tcp:e0", { 4790 } },
		{ "ina:10.77.0.254:99,tcp:e0", "tcp:e0", { 99 } },
		{ "ina:10.77.0.254:65535", "auto", { 65535 } },
		{ "auto,ina:10.77.0.254", "auto", { 4790 } },
		{ "auto,ina:10.77.0.254,ina:10.77.0.254:4791", "auto", { 4790, 4791 } },
		{ "ina:10.77.0.254:3,ina:10.77.0.254:2", "auto", { 3, 2 } },
		{ "ina:10.77.0.254:3,tcp:e0,ina:10.77.0.254:2,tcp:e1,ina:10.77.0.254,ina:10.77.0.254:1", "tcp:e0,tcp:e1",
		  { 3, 2, 4790, 1 } },
		{ "auto", "auto", { 0 } },
		{ "tcp:e0,tcp:e1", "tcp:e0,tcp:e1", { 0 } },
	};
	struct nezha_ina_address addresses[NEZHA_INA_MAX];
	struct host host = { 0 };

	(void)state;
	lab_host(&host);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct chosen with, without;
		uint32_t count = 0;

		choose(&host, cases[i].spec, &with);
		choose(&host, cases[i].alike, &without);
		assert_int_equal(with.count, without.count);
		for (size_t r = 0; r < with.count; r++)
			assert_string_equal(with.rails[r].nic.device, without.rails[r].nic.device);
		while (count < NEZHA_INA_MAX && cases[i].ports[count])
			count++;
		assert_int_equal(nezha_nic_aggregators(cases[i].spec, addresses), count);
		for (uint32_t k = 0; k < count; k++) {
			assert_int_equal(addresses[k].port, cases[i].ports[k]);
			assert_int_equal(addresses[k].address.s_addr, htonl(0x0a4d00fe));
		}
		free(with.notes);
		free(without.notes);
	}
	assert_int_equal(nezha_nic_aggregators("tcp:e0,", addresses), 0);
}

#define LONG "aaaaaaaaaaaaaaa"
#define LIST \
	"allowed is auto, or a list of tcp:DEVICE, tcp:SUBNET/BITS, verbs:DEVICE[:PORT] and verbs:SUBNET/BITS separated by " \
	"commas, and up to 4 ina:ADDRESS[:PORT]"
#define HOST "has no IPv4 address of a host; allowed is ADDRESS[:PORT], such as 10.1.0.254:4790"

static void malformed_specs_are_refused(void **state)
{
	static const struct {
		const char *spec, *message;
	} cases[] = {
		{ "", "NEZHA_RAILS: an entry is empty; " LIST },
		{ ",", "NEZHA_RAILS: an entry is empty; " LIST },
		{ "tcp:e0,", "NEZHA_RAILS: an entry is empty; " LIST },
		{ "tcp:e0,,tcp:e1", "NEZHA_RAILS: an entry is empty; " LIST },
		{ "auto,tcp:e0", "NEZHA_RAILS: \"auto\" stands alone, but for ina:ADDRESS; " LIST },
		{ "auto,ina:10.1.0.254,tcp:e0", "NEZHA_RAILS: \"auto\" stands alone, but for ina:ADDRESS; " LIST },
		{ "e0", "NEZHA_RAILS: \"e0\" lacks the kind of the rail: did you mean tcp:e0? " LIST },
		{ "AUTO", "NEZHA_RAILS: \"AUTO\" lacks the kind of the rail: did you mean tcp:AUTO? " LIST },
		{ "tpc:e0", "NEZHA_RAILS: \"tpc:e0\": \"tpc\" is no kind of rail; " LIST },
		{ "TCP:e0", "NEZHA_RAILS: \"TCP:e0\": \"TCP\" is no kind of rail; " LIST },
		{ ":e0", "NEZHA_RAILS: \":e0\": \"\" is no kind of rail; " LIST },
		{ "sharp:mlx5_0:1", "NEZHA_RAILS: \"sharp:mlx5_0:1\": rails of the kind sharp are not built "
		                    "into this Nezha; " LIST },
		{ "tcp:e0,native", "NEZHA_RAILS: \"native\": rails of the kind native are not built into "
		                   "this Nezha; " LIST },
		{ "verbs:", "NEZHA_RAILS: \"verbs:\" names no device; " LIST },
		{ "verbs:a:0", "NEZHA_RAILS: \"verbs:a:0\": \"0\" is no port of a device; allowed are 1 to 254, as in verbs:mlx5_0:1" },
		{ "verbs:a:255", "NEZHA_RAILS: \"verbs:a:255\": \"255\" is no port of a device; allowed are 1 to 254, as in "
		                 "verbs:mlx5_0:1" },
		{ "verbs:a:1b", "NEZHA_RAILS: \"verbs:a:1b\": \"1b\" is no port of a device; allowed are 1 to 254, as in "
		                "verbs:mlx5_0:1" },
		{ "verbs:10.1.0.0/0", "NEZHA_RAILS: \"verbs:10.1.0.0/0\": \"0\" is no length of a subnet; allowed are 1 to 31, as in "
		                      "verbs:10.1.0.0/16" },
		{ "verbs:10.1.0.0", "NEZHA_RAILS: \"verbs:10.1.0.0\" is an address; a subnet needs its length, as in "
		                    "verbs:10.1.0.0/16" },
		{ "ina", "NEZHA_RAILS: \"ina\" lacks the address of the aggregator; " LIST },
		{ "ina:", "NEZHA_RAILS: \"ina:\" " HOST },
		{ "tcp:e0,ina:e0", "NEZHA_RAILS: \"ina:e0\" " HOST },
		{ "ina:10.1.0.0/24", "NEZHA_RAILS: \"ina:10.1.0.0/24\" " HOST },
		{ "ina:239.1.2.3", "NEZHA_RAILS: \"ina:239.1.2.3\" " HOST },
		{ "ina:10.1.0.254:", "NEZHA_RAILS: \"ina:10.1.0.254:\" has no port behind the colon; allowed are 1 to "
		                     "65535, as in 10.1.0.254:4790" },
		{ "ina:10.1.0.254:65536", "NEZHA_RAILS: \"ina:10.1.0.254:65536\" has no port behind the colon; allowed are 1 "
		                          "to 65535, as in 10.1.0.254:4790" },
		{ "ina:10.1.0.254,tcp:e0,ina:10.1.0.254:4790", "NEZHA_RAILS: \"ina:10.1.0.254:4790\" names an aggregator a second "
		                                               "time; " LIST },
		{ "ina:10.1.0.1,ina:10.1.0.2,ina:10.1.0.3,ina:10.1.0.4,ina:10.1.0.5",
		  "NEZHA_RAILS: \"ina:10.1.0.5\" is one aggregator too many; " LIST },
		{ "tcp:", "NEZHA_RAILS: \"tcp:\" names no device; " LIST },
		{ "tcp:e0 ", "NEZHA_RAILS: \"tcp:e0 \": \"e0 \" cannot be a device (1 to 15 characters, "
		             "without blank and colon); " LIST },
		{ "tcp:eth0:1", "NEZHA_RAILS: \"tcp:eth0:1\": \"eth0:1\" cannot be a device (1 to 15 "
		                "characters, without blank and colon); " LIST },
		{ "tcp:abcdefghijklmnop", "NEZHA_RAILS: \"tcp:abcdefghijklmnop\": \"abcdefghijklmnop\" "
		                          "cannot be a device (1 to 15 characters, without blank and "
		                          "colon); " LIST },
		{ "tcp:10.1.0.1", "NEZHA_RAILS: \"tcp:10.1.0.1\" is an address; a subnet needs its length, "
		                  "as in tcp:10.1.0.0/16" },
		{ "tcp:10.1.0.1/16", "NEZHA_RAILS: \"tcp:10.1.0.1/16\" has bits set behind the first 16; the "
		                     "subnet is tcp:10.1.0.0/16" },
		{ "tcp:10.1.0.0/32", "NEZHA_RAILS: \"tcp:10.1.0.0/32\": \"32\" is no length of a subnet; "
		                     "allowed are 1 to 31, as in tcp:10.1.0.0/16" },
		{ "tcp:10.1.0.0/0", "NEZHA_RAILS: \"tcp:10.1.0.0/0\": \"0\" is no length of a subnet; "
		                    "allowed are 1 to 31, as in tcp:10.1.0.0/16" },
		{ "tcp:10.1.0.0/", "NEZHA_RAILS: \"tcp:10.1.0.0/\": \"\" is no length of a subnet; allowed "
		                   "are 1 to 31, as in tcp:10.1.0.0/16" },
		{ "tcp:10.1.0.0/-1", "NEZHA_RAILS: \"tcp:10.1.0.0/-1\": \"-1\" is no length of a subnet; "
		                     "allowed are 1 to 31, as in tcp:10.1.0.0/16" },
		{ "tcp:10.1.0.0/24x", "NEZHA_RAILS: \"tcp:10.1.0.0/24x\": \"24x\" is no length of a subnet; "
		                      "allowed are 1 to 31, as in tcp:10.1.0.0/16" },
		{ "tcp:10.1/16", "NEZHA_RAILS: \"tcp:10.1/16\": \"10.1\" is no IPv4 address; a subnet is "
		                 "such as tcp:10.1.0.0/16" },
		{ "tcp:fd00::/64", "NEZHA_RAILS: \"tcp:fd00::/64\": subnets are IPv4, such as "
		                   "tcp:10.1.0.0/16" },
		{ "tcp:\033[2J\n/9", "NEZHA_RAILS: \"tcp:?[2J /9\": \"?[2J \" is no IPv4 address; a subnet "
		                     "is such as tcp:10.1.0.0/16" },
		{ "tcp:" LONG LONG LONG LONG "a", "NEZHA_RAILS: \"tcp:" LONG LONG LONG LONG "...\" is too long for a "
		  "rail; " LIST },
	};
	struct host host = { 0 };

	(void)state;
	lab_host(&host);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
		size_t count = 77;
		char *error = NULL, *notes = NULL;

		assert_int_equal(nezha_nic_spec_check(cases[i].spec, &error), NEZHA_ERR_INVALID);
		assert_string_equal(error, cases[i].message);
		free(error);
		assert_int_equal(nezha_nic_select(cases[i].spec, &(struct nezha_nic_set){ host.nics, host.nic_count, NULL, 0 }, rails, &count,
		                                  &notes, &error),
		                 NEZHA_ERR_INVALID);
		assert_string_equal(error, cases[i].message);
		free(error);
		assert_int_equal(count, 77);
		assert_null(notes);
	}
}

static void port(struct host *host, const char *device, uint8_t number, const char *text, const char *why_not)
{
	struct nezha_verbs_port *port = &host->ports[host->port_count++];

	*port = (struct nezha_verbs_port){ .port = number, .why_not = why_not };
	strcpy(port->device, device);
	if (text)
		inet_pton(AF_INET, text, &port->address);
}

static void rdma_devices_are_rails_if_named(void **state)
{
	struct host host = { 0 };
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	char *error = NULL, *notes = NULL;
	size_t count;

	(void)state;
	lab_host(&host);
	port(&host, "mlx5_0", 1, "10.77.0.1", NULL);
	port(&host, "mlx5_0", 2, NULL, "the port is not active");
	port(&host, "mlx5_1", 1, "10.77.1.1", NULL);
	port(&host, "rxe0", 1, "10.99.0.1", NULL);
	assert_chosen(&host, "verbs:mlx5_1,tcp:e1", "mlx5_1 by e1 0.0.0.0/0 1.0, e1 0.0.0.0/0 2.0", "");
	assert_chosen(&host, "verbs:mlx5_0:1,verbs:mlx5_0:1", "mlx5_0 by e0 0.0.0.0/0 1.0", "");
	assert_chosen(&host, "verbs:mlx5_0", "mlx5_0 by e0 0.0.0.0/0 1.0",
	              "NEZHA_RAILS: verbs:mlx5_0:2 cannot be used on this host: the port is not active\n");
	/* Subnets of a kind have ordinals of their own. */
	assert_chosen(&host, "verbs:10.77.0.0/16,tcp:10.77.0.0/16",
	              "mlx5_0 by e0 10.77.0.0/16 0.0, mlx5_1 by e1 10.77.0.0/16 0.1, e0 10.77.0.0/16 0.0, "
	              "e1 10.77.0.0/16 0.1", "");
	assert_chosen(&host, "verbs:10.55.0.0/16", "",
	              "NEZHA_RAILS: \"verbs:10.55.0.0/16\": no RDMA device of this host has an address in it\n");
	assert_int_equal(nezha_nic_select("verbs:mlx5_7", &(struct nezha_nic_set){ host.nics, host.nic_count, host.ports, 2 },
	                                  rails, &count, &notes, &error), NEZHA_ERR_INVALID);
	assert_string_equal(error, "NEZHA_RAILS: \"verbs:mlx5_7\": there is no such RDMA device or port on this host; there are "
	                           "mlx5_0:1, mlx5_0:2");
	free(error);
	assert_int_equal(nezha_nic_select("verbs:mlx5_0:3", &(struct nezha_nic_set){ host.nics, host.nic_count, NULL, 0 },
	                                  rails, &count, &notes, &error), NEZHA_ERR_INVALID);
	assert_non_null(strstr(error, "\"verbs:mlx5_0:3\": there is no such RDMA device or port on this host; there are none"));
	free(error);
	assert_true(nezha_nic_names_verbs("tcp:e0,verbs:x") && nezha_nic_names_verbs("verbs:10.0.0.0/8"));
	assert_false(nezha_nic_names_verbs("auto") || nezha_nic_names_verbs("tcp:verbs") || nezha_nic_names_verbs("verbs:"));
}

static void too_many_entries_are_refused(void **state)
{
	char spec[33 * 7 + 1] = "", *error = NULL;

	(void)state;
	for (int i = 0; i < 32; i++)
		strcat(spec, i ? ",tcp:e0" : "tcp:e0");
	assert_int_equal(nezha_nic_spec_check(spec, &error), NEZHA_OK);
	strcat(spec, ",tcp:e0");
	assert_int_equal(nezha_nic_spec_check(spec, &error), NEZHA_ERR_INVALID);
	assert_string_equal(error, "NEZHA_RAILS: more than 32 entries");
	free(error);
}

static void unknown_device_is_refused(void **state)
{
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	struct host host = { 0 };
	char *error = NULL, *notes = NULL;
	size_t count;

	(void)state;
	lab_host(&host);
	assert_int_equal(nezha_nic_spec_check("tcp:eth7", &error), NEZHA_OK);
	assert_int_equal(
		nezha_nic_select("tcp:e0,tcp:eth7", &(struct nezha_nic_set){ host.nics, host.nic_count, NULL, 0 }, rails, &count,
		                 &notes, &error),
		NEZHA_ERR_INVALID);
	assert_string_equal(error, "NEZHA_RAILS: \"tcp:eth7\": there is no device eth7 on this host; those "
	                           "with an IPv4 address are e0, e1, em, lo, off");
	free(error);
	assert_int_equal(nezha_nic_select("tcp:eth7", &(struct nezha_nic_set){ NULL, 0, NULL, 0 }, rails, &count, &notes, &error),
	                 NEZHA_ERR_INVALID);
	assert_non_null(strstr(error, "address are none"));
	free(error);
	assert_null(notes);
}

/* ---- this host ---- */

static void this_host_has_a_loopback(void **state)
{
	struct nezha_nic nics[256];
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	size_t count = 0, rail_count = 0;
	char *notes = NULL, *error = NULL;
	bool found = false;

	(void)state;
	assert_int_equal(nezha_nic_list(nics, 256, &count), NEZHA_OK);
	for (size_t i = 0; i < count; i++) {
		assert_true(*nics[i].device && nics[i].prefix <= 32);
		if (nics[i].why_not)
			assert_true(strlen(nics[i].why_not) <= 38);
		if (strcmp(nics[i].device, "lo") == 0 && ntohl(nics[i].address.s_addr) == INADDR_LOOPBACK) {
			assert_string_equal(nics[i].why_not, "loopback");
			found = nics[i].carrier;
		}
	}
	if (!found)
		skip();      /* a namespace whose loopback is down */
	assert_int_equal(nezha_nic_select("tcp:lo", &(struct nezha_nic_set){ nics, count, NULL, 0 }, rails, &rail_count, &notes, &error),
	                 NEZHA_OK);
	assert_int_equal(rail_count, 1);
	free(notes);
	nezha_nic_locate(nics, count);
	for (size_t i = 0; i < count; i++)
		assert_true(nics[i].numa >= -1 && (nics[i].physical || nics[i].numa == -1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_nic_is_in),
		cmocka_unit_test(slow_nic_with_default_route_is_management),
		cmocka_unit_test(management_needs_a_usable_other),
		cmocka_unit_test(slow_nic_without_default_route_stays),
		cmocka_unit_test(down_or_without_carrier_is_out),
		cmocka_unit_test(bond_is_in_its_members_out),
		cmocka_unit_test(vlan_stands_for_its_wire_once),
		cmocka_unit_test(macvlan_of_a_container_is_in),
		cmocka_unit_test(loop_of_lower_devices_ends),
		cmocka_unit_test(infiniband_is_in),
		cmocka_unit_test(virtual_devices_are_out),
		cmocka_unit_test(bridge_over_an_adapter_is_in),
		cmocka_unit_test(odd_addresses_are_out),
		cmocka_unit_test(other_masters),
		cmocka_unit_test(second_address_is_out_two_nics_of_a_subnet_in),
		cmocka_unit_test(natural_order),
		cmocka_unit_test(rails_do_not_drown),
		cmocka_unit_test(named_rails),
		cmocka_unit_test(named_but_not_here_is_noted),
		cmocka_unit_test(device_with_several_addresses_is_one_rail),
		cmocka_unit_test(auto_takes_the_usable_ones),
		cmocka_unit_test(the_fastest_eight_of_more),
		cmocka_unit_test(aggregators_are_no_rails),
		cmocka_unit_test(malformed_specs_are_refused),
		cmocka_unit_test(rdma_devices_are_rails_if_named),
		cmocka_unit_test(too_many_entries_are_refused),
		cmocka_unit_test(unknown_device_is_refused),
		cmocka_unit_test(this_host_has_a_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
