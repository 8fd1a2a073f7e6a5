/* SPDX-License-Identifier: BSD-3-Clause
 * What the NIC selector takes for a rail, on made-up hosts and on this one. */
#include "tests/unit/nic_host.h"

#include <arpa/inet.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/skip.h"
#include "tuning/status.h"

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
	host_loopback(&host);
	host_nic(&host, "eth0", "", 1000, "192.168.1.5")->default_route = true;
	host_classify(&host);
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

		host_nic(&host, "eno1", "", cases[i].speed, "10.0.0.5")->default_route = true;
		host_nic(&host, "ens1", "", cases[i].other, "10.1.0.5");
		host_classify(&host);
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
	host_nic(&host, "eno1", "", 1000, "10.0.0.5")->default_route = true;
	host_nic(&host, "ens1", "", 100000, "10.1.0.5")->flags = IFF_UP;
	host_nic(&host, "veth0", "veth", 10000, "10.2.0.5");
	host_classify(&host);
	assert_rail(&host, "eno1");
	assert_out(&host, "ens1", "no carrier");
}

static void slow_nic_without_default_route_stays(void **state)
{
	struct host host = { 0 };

	(void)state;
	host_nic(&host, "eno1", "", 1000, "10.0.0.5");
	host_nic(&host, "ens1", "", 100000, "10.1.0.5")->default_route = true;
	host_classify(&host);
	assert_rail(&host, "eno1");
	assert_rail(&host, "ens1");
}

static void down_or_without_carrier_is_out(void **state)
{
	struct host host = { 0 };

	(void)state;
	host_nic(&host, "eth0", "", 1000, "10.0.0.1")->flags = 0;
	host_nic(&host, "eth1", "", 1000, "10.0.1.1")->flags = IFF_UP;
	host_nic(&host, "eth2", "", 1000, "10.0.2.1");
	host_classify(&host);
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
		struct nezha_interface *bond = host_nic(&host, "bond0", kinds[i], 50000, "10.1.0.1");

		host_device(&host, "eth0", "", 25000)->master = bond->index;
		host_nic(&host, "eth1", "", 25000, "10.9.0.1")->master = bond->index;
		host_classify(&host);
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
	eth0 = host_nic(&host, "eth0", "", 25000, "10.0.0.1");
	host_nic(&host, "eth0.5", "vlan", 25000, "10.5.0.1")->lower = eth0->index;
	eth1 = host_nic(&host, "eth1", "", 25000, "10.1.0.1");
	eth1->default_route = true;
	host_nic(&host, "eth1.6", "vlan", 25000, "10.6.0.1")->lower = eth1->index;
	bond = host_device(&host, "bond0", "bond", 50000);
	upper = host_nic(&host, "bond0.7", "vlan", 50000, "10.7.0.1");
	upper->lower = bond->index;
	host_nic(&host, "mv0", "macvlan", 50000, "10.8.0.1")->lower = upper->index;
	host_classify(&host);
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
	host_nic(&host, "net1", "macvlan", 100000, "10.1.0.1");
	host_nic(&host, "eth0", "veth", 10000, "172.17.0.2")->default_route = true;
	host_classify(&host);
	assert_rail(&host, "net1");
	assert_out(&host, "eth0", "a virtual device");
}

/* A loop of lower devices, which the kernel should never tell, ends. */
static void loop_of_lower_devices_ends(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *a = host_nic(&host, "a", "vlan", 0, "10.0.0.1"),
			       *b = host_nic(&host, "b", "vlan", 0, "10.0.1.1");

	(void)state;
	a->lower = b->index;
	b->lower = a->index;
	host_classify(&host);
	assert_int_equal(host.nic_count, 2);
}

static void infiniband_is_in(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *ib0;

	(void)state;
	host_nic(&host, "eno1", "", 1000, "10.0.0.1")->default_route = true;
	ib0 = host_nic(&host, "ib0", "ipoib", 100000, "10.4.0.1");
	ib0->type = ARPHRD_INFINIBAND;
	host_nic(&host, "ib0.8001", "ipoib", 100000, "10.5.0.1")->lower = ib0->index;
	host_classify(&host);
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
		{ "docker0", "bridge", "a bridge of virtual ports", HOST_ON },
		{ "virbr0", "bridge", "a bridge of virtual ports", HOST_ON },
		{ "veth1a2b", "veth", "a virtual device", HOST_ON },
		{ "flannel.1", "vxlan", "a virtual device", HOST_ON },
		{ "genev_sys", "geneve", "a virtual device", HOST_ON },
		{ "dummy0", "dummy", "a virtual device", HOST_ON },
		{ "kube-ipvs0", "dummy", "a virtual device", HOST_ON },
		{ "ovs-br", "openvswitch", "a virtual device", HOST_ON },
		{ "tun0", "tun", "a tunnel or point-to-point", HOST_ON | IFF_POINTOPOINT },
		{ "tap0", "tun", "a tunnel or point-to-point", HOST_ON },
		{ "wg0", "wireguard", "a tunnel or point-to-point", HOST_ON | IFF_POINTOPOINT },
		{ "ppp0", "", "a tunnel or point-to-point", HOST_ON | IFF_POINTOPOINT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct host host = { 0 };

		host_nic(&host, cases[i].device, cases[i].kind, 10000, "172.17.0.1")->flags = cases[i].flags;
		host_classify(&host);
		assert_out(&host, cases[i].device, cases[i].why);
		assert_false(host.nics[0].physical);
	}
}

static void bridge_over_an_adapter_is_in(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *bridge;

	(void)state;
	bridge = host_nic(&host, "br0", "bridge", 10000, "10.1.0.1");
	host_nic(&host, "eth0", "", 10000, "10.2.0.1")->master = bridge->index;
	host_device(&host, "vnet0", "tun", 10)->master = bridge->index;
	host_classify(&host);
	assert_rail(&host, "br0");
	assert_out(&host, "eth0", "a port of a bridge");
	assert_out(&host, "vnet0", "no IPv4 address");
}

static void odd_addresses_are_out(void **state)
{
	struct host host = { 0 };

	(void)state;
	host_nic(&host, "idrac", "", 0, "169.254.0.2");
	host_address(&host, host_device(&host, "ens4", "", 0), "10.128.0.2", 32);
	host_nic(&host, "slip0", "", 0, "10.3.0.1")->type = ARPHRD_SLIP;
	host_address(&host, host_device(&host, "eth9", "", 0), "10.9.0.2", 31);
	host_classify(&host);
	assert_out(&host, "idrac", "a link-local address");
	assert_out(&host, "ens4", "a /32 says nothing of its network");
	assert_out(&host, "slip0", "neither Ethernet nor InfiniBand");
	assert_rail(&host, "eth9");
}

static void other_masters(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *vrf = host_device(&host, "red", "vrf", 0),
			       *vm = host_nic(&host, "eth0", "", 50000, "10.0.0.4");

	(void)state;
	host_nic(&host, "eth1", "", 1000, "10.1.0.1")->master = vrf->index;
	host_nic(&host, "enP1s1", "", 50000, "10.0.0.5")->master = vm->index; /* as in a cloud's virtual machine */
	host_nic(&host, "eth2", "", 1000, "10.2.0.1")->master = 99;
	host_classify(&host);
	assert_out(&host, "eth1", "in a VRF");
	assert_out(&host, "enP1s1", "belongs to another interface");
	assert_out(&host, "eth2", "belongs to another interface");
	assert_rail(&host, "eth0");
}

static void second_address_is_out_two_nics_of_a_subnet_in(void **state)
{
	struct host host = { 0 };
	struct nezha_interface *eth0 = host_nic(&host, "eth0", "", 10000, "10.1.0.9");

	(void)state;
	host_address(&host, eth0, "10.1.0.4", 24);
	host_address(&host, eth0, "10.2.0.4", 24);
	host_nic(&host, "eth1", "", 10000, "10.1.0.5");
	host_classify(&host);
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
	host_nic(&host, "ib00", "", 0, "10.0.5.1");
	host_nic(&host, "ib0", "", 0, "10.0.4.1");
	host_nic(&host, "eth10a", "", 0, "10.0.3.1");
	host_address(&host, host_nic(&host, "eth10", "", 0, "10.0.2.200"), "10.0.2.3", 24);
	host_nic(&host, "eth2", "", 0, "10.0.1.1");
	host_nic(&host, "eth1", "", 0, "10.0.0.1");
	host_classify(&host);
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
	host_device(&host, "cali0", "veth", 10000);
	host_device(&host, "cali1", "veth", 10000);
	host_nic(&host, "docker0", "bridge", 10000, "172.17.0.1");
	host_nic(&host, "eth0", "", 10000, "10.1.0.1");
	host_loopback(&host);
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
		SKIP_DETAIL("this host's loopback: it is down in this namespace");
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
		cmocka_unit_test(this_host_has_a_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
