/* SPDX-License-Identifier: BSD-3-Clause
 * NEZHA_RAILS on made-up hosts: which rails it names, and what it must not be. */
#include "tests/unit/nic_host.h"

#include <arpa/inet.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/status.h"

/* "e0 10.77.0.0/24 0.0" for each rail: device, key_subnet/key_prefix, key_entry.key_ordinal. */
static void assert_chosen(const struct host *host, const char *spec, const char *want, const char *notes)
{
	struct host_rails chosen;
	char text[1024] = "";

	host_choose(host, spec, &chosen);
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
	host_of_lab(&host);
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
	host_of_lab(&host);
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
	struct nezha_interface *eth0 = host_nic(&host, "eth0", "", 0, "10.0.0.9");
	struct host_rails chosen;

	(void)state;
	host_address(&host, eth0, "169.254.3.3", 16);
	host_address(&host, eth0, "192.168.0.9", 24);
	host_nic(&host, "eth1", "", 0, "169.254.4.4");
	host_classify(&host);
	host_choose(&host, "tcp:eth0,tcp:eth1", &chosen);
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
	host_loopback(&host);
	host_nic(&host, "eth0", "", 1000, "10.0.0.1")->default_route = true;
	host_nic(&host, "eth2", "", 25000, "10.2.0.1");
	host_nic(&host, "eth3", "", 25000, "10.2.0.2");
	host_nic(&host, "ib0", "ipoib", 100000, "10.3.0.1")->type = ARPHRD_INFINIBAND;
	host_classify(&host);
	assert_chosen(&host, "auto", "eth2 10.2.0.0/24 0.0, eth3 10.2.0.0/24 0.1, ib0 10.3.0.0/24 0.0", "");
	host_of_lab(&lab);
	assert_chosen(&lab, "auto", "", "");
}

static void the_fastest_eight_of_more(void **state)
{
	struct host host = { 0 };
	struct host_rails chosen;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		char name[8], text[16];

		snprintf(name, sizeof name, "eth%u", i);
		snprintf(text, sizeof text, "10.%u.0.1", i);
		host_nic(&host, name, "", i < 2 ? 10000 : 400000, text);
	}
	host_classify(&host);
	host_choose(&host, "auto", &chosen);
	assert_int_equal(chosen.count, NEZHA_RAILS_MAX);
	assert_string_equal(chosen.rails[0].nic.device, "eth2");
	assert_string_equal(chosen.rails[7].nic.device, "eth9");
	assert_string_equal(chosen.notes, "NEZHA_RAILS: 2 more rails are left out: at most 8 can be used\n");
	free(chosen.notes);
	host_choose(&host, "tcp:10.0.0.0/8", &chosen);
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
	host_of_lab(&host);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct host_rails with, without;
		uint32_t count = 0;

		host_choose(&host, cases[i].spec, &with);
		host_choose(&host, cases[i].alike, &without);
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

static void fixed_point_is_asked_for(void **state)
{
	struct nezha_ina_address addresses[NEZHA_INA_MAX];

	(void)state;
	assert_int_equal(nezha_nic_aggregators("tcp:e0,ina:10.1.0.1,ina:10.1.0.2:5,fixed,ina:10.1.0.3,tcp:e1", addresses), 3);
	assert_false(addresses[0].fixed);
	assert_true(addresses[1].fixed && addresses[1].port == 5);
	assert_false(addresses[2].fixed);
	assert_int_equal(nezha_nic_aggregators("auto,ina:10.1.0.1,fixed,sharp", addresses), 1);
	assert_true(addresses[0].fixed);
	assert_int_equal(nezha_nic_aggregators("ina:10.1.0.1,fixed", addresses), 1);
	assert_true(addresses[0].fixed);
}

/* So is SHARP. */
static void sharp_is_no_rail(void **state)
{
	static const struct {
		const char *spec, *alike, *device;
	} cases[] = {
		{ "sharp", "auto", "" },
		{ "auto,sharp", "auto", "" },
		{ "auto,sharp:mlx5_1,ina:10.77.0.254", "auto", "mlx5_1:1" },
		{ "tcp:e0,sharp:mlx5_0:2", "tcp:e0", "mlx5_0:2" },
		{ "sharp:mlx5_bond_0,tcp:e1", "tcp:e1", "mlx5_bond_0:1" },
	};
	struct host host = { 0 };

	(void)state;
	host_of_lab(&host);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char device[NEZHA_SHARP_DEVICE] = "?";
		struct host_rails with, without;

		host_choose(&host, cases[i].spec, &with);
		host_choose(&host, cases[i].alike, &without);
		assert_int_equal(with.count, without.count);
		for (size_t r = 0; r < with.count; r++)
			assert_string_equal(with.rails[r].nic.device, without.rails[r].nic.device);
		assert_true(nezha_nic_sharp(cases[i].spec, device));
		assert_string_equal(device, cases[i].device);
		assert_false(nezha_nic_sharp(cases[i].alike, device));
		free(with.notes);
		free(without.notes);
	}
}

#define LONG "aaaaaaaaaaaaaaa"
#define LIST \
	"allowed is auto, or a list of tcp:DEVICE, tcp:SUBNET/BITS, verbs:DEVICE[:PORT] and verbs:SUBNET/BITS separated by " \
	"commas; with either up to 4 of ina:ADDRESS[:PORT][,fixed], one of which may be sharp[:DEVICE[:PORT]] instead"
#define PORT "names no port of an InfiniBand device; allowed is sharp[:DEVICE[:PORT]], such as sharp:mlx5_0:1"
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
		{ "auto,tcp:e0", "NEZHA_RAILS: \"auto\" stands alone, but for ina:ADDRESS and sharp; " LIST },
		{ "auto,ina:10.1.0.254,tcp:e0", "NEZHA_RAILS: \"auto\" stands alone, but for ina:ADDRESS and sharp; " LIST },
		{ "e0", "NEZHA_RAILS: \"e0\" lacks the kind of the rail: did you mean tcp:e0? " LIST },
		{ "AUTO", "NEZHA_RAILS: \"AUTO\" lacks the kind of the rail: did you mean tcp:AUTO? " LIST },
		{ "tpc:e0", "NEZHA_RAILS: \"tpc:e0\": \"tpc\" is no kind of rail; " LIST },
		{ "TCP:e0", "NEZHA_RAILS: \"TCP:e0\": \"TCP\" is no kind of rail; " LIST },
		{ ":e0", "NEZHA_RAILS: \":e0\": \"\" is no kind of rail; " LIST },
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
		{ "sharp,tcp:e0,sharp:mlx5_0", "NEZHA_RAILS: \"sharp:mlx5_0\" names sharp a second time; " LIST },
		{ "ina:10.1.0.1,ina:10.1.0.2,ina:10.1.0.3,ina:10.1.0.4,sharp",
		  "NEZHA_RAILS: \"sharp\" is one aggregator too many; " LIST },
		{ "sharp:", "NEZHA_RAILS: \"sharp:\" " PORT },
		{ "sharp:mlx5_0:", "NEZHA_RAILS: \"sharp:mlx5_0:\" " PORT },
		{ "sharp:mlx5_0:0", "NEZHA_RAILS: \"sharp:mlx5_0:0\" " PORT },
		{ "sharp:mlx5/0:1", "NEZHA_RAILS: \"sharp:mlx5/0:1\" " PORT },
		{ "sharp:a_name_that_is_too_long:1", "NEZHA_RAILS: \"sharp:a_name_that_is_too_long:1\" " PORT },
		{ "sharper", "NEZHA_RAILS: \"sharper\" lacks the kind of the rail: did you mean tcp:sharper? " LIST },
		{ "fixed", "NEZHA_RAILS: \"fixed\" stands behind ina:ADDRESS, once; " LIST },
		{ "sharp,fixed", "NEZHA_RAILS: \"fixed\" stands behind ina:ADDRESS, once; " LIST },
		{ "ina:10.1.0.1,tcp:e0,fixed", "NEZHA_RAILS: \"fixed\" stands behind ina:ADDRESS, once; " LIST },
		{ "ina:10.1.0.1,fixed,fixed", "NEZHA_RAILS: \"fixed\" stands behind ina:ADDRESS, once; " LIST },
		{ "ina:10.1.0.1,fixed:1", "NEZHA_RAILS: \"fixed:1\": \"fixed\" is no kind of rail; " LIST },
		{ "ina:10.1.0.1,fixed,ina:10.1.0.1", "NEZHA_RAILS: \"ina:10.1.0.1\" names an aggregator a second time; " LIST },
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
	host_of_lab(&host);
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
	host_of_lab(&host);
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
	strcat(spec, ",tcp:e7");
	assert_int_equal(nezha_nic_spec_check(spec, &error), NEZHA_ERR_INVALID);
	assert_string_equal(error, "NEZHA_RAILS: \"tcp:e7\" is one entry too many: allowed are 32");
	free(error);
}

static void unknown_device_is_refused(void **state)
{
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	struct host host = { 0 };
	char *error = NULL, *notes = NULL;
	size_t count;

	(void)state;
	host_of_lab(&host);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_rails),
		cmocka_unit_test(named_but_not_here_is_noted),
		cmocka_unit_test(device_with_several_addresses_is_one_rail),
		cmocka_unit_test(auto_takes_the_usable_ones),
		cmocka_unit_test(the_fastest_eight_of_more),
		cmocka_unit_test(aggregators_are_no_rails),
		cmocka_unit_test(fixed_point_is_asked_for),
		cmocka_unit_test(sharp_is_no_rail),
		cmocka_unit_test(malformed_specs_are_refused),
		cmocka_unit_test(rdma_devices_are_rails_if_named),
		cmocka_unit_test(too_many_entries_are_refused),
		cmocka_unit_test(unknown_device_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
