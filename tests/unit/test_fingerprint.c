/* SPDX-License-Identifier: BSD-3-Clause
 * What of a host's rails is in its fingerprint, on made-up hosts. */
#include "tests/unit/nic_host.h"

#include <stdlib.h>

#include "rails/fingerprint.h"

/* A host of three rails, two of them in one subnet, whose interfaces have these names. */
static void name_three(struct host *host, const char *first, const char *second, const char *third)
{
	host_nic(host, first, "", 25000, "10.2.0.1");
	host_nic(host, second, "", 100000, "10.2.0.2");
	host_nic(host, third, "", 10000, "10.10.0.1")->mtu = 9000;
	host_classify(host);
}

static void assert_fingerprint(const struct host *host, const char *spec, const char *topology, const char *rails)
{
	struct nezha_fingerprint here;
	struct host_rails chosen;

	host_choose(host, spec, &chosen);
	nezha_fingerprint_host(chosen.rails, chosen.count, &here);
	assert_string_equal(here.topology, topology);
	assert_string_equal(here.rails, rails);
	assert_string_equal(here.mpi, "");
	free(chosen.notes);
}

static void order_is_not_in_the_fingerprint(void **state)
{
	static const char *const names[][3] = {
		{ "eth0", "eth1", "eth2" }, { "eth0", "eth2", "eth1" }, { "eth1", "eth0", "eth2" },
		{ "eth1", "eth2", "eth0" }, { "eth2", "eth0", "eth1" }, { "eth2", "eth1", "eth0" },
	};
	static const char *const specs[] = {
		"auto", "tcp:10.0.0.0/8", "tcp:10.2.0.0/24,tcp:10.10.0.0/24", "tcp:10.10.0.0/24,tcp:10.2.0.0/24",
		"tcp:eth0,tcp:eth1,tcp:eth2", "tcp:eth2,tcp:eth0,tcp:eth1",
	};
	struct host dark = { 0 }, swapped = { 0 };

	(void)state;
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		struct host host = { 0 };

		name_three(&host, names[n][0], names[n][1], names[n][2]);
		for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
			assert_fingerprint(&host, specs[s],
			                   "3 rails: 25000 Mbit/s MTU 1500, 100000 Mbit/s MTU 1500, 10000 Mbit/s MTU 9000",
			                   "tcp:10.2.0.0/24,tcp:10.2.0.0/24,tcp:10.10.0.0/24");
	}
	/* A rail that is not there, or speeds that changed places between subnets, are. */
	host_nic(&dark, "eth0", "", 25000, "10.2.0.1");
	host_nic(&dark, "eth1", "", 10000, "10.10.0.1")->flags = IFF_UP;
	host_classify(&dark);
	assert_fingerprint(&dark, "auto", "1 rail: 25000 Mbit/s MTU 1500", "tcp:10.2.0.0/24");
	host_nic(&swapped, "eth0", "", 10000, "10.2.0.1");
	host_nic(&swapped, "eth1", "", 25000, "10.10.0.1");
	host_classify(&swapped);
	assert_fingerprint(&swapped, "auto", "2 rails: 10000 Mbit/s MTU 1500, 25000 Mbit/s MTU 1500",
	                   "tcp:10.2.0.0/24,tcp:10.10.0.0/24");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_is_not_in_the_fingerprint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
