/* SPDX-License-Identifier: BSD-3-Clause
 * RDMA ports out of made-up trees as the kernel's sysfs has them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rails/verbs_port.h"
#include "tests/unit/skip.h"

static char root[] = "/tmp/nezha-verbs-XXXXXX";

/* Makes the file, and its folders. */
static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void put_port(const char *port, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", port, name);
	put(path, text);
}

static void make_port(const char *port, const char *state, const char *rate, const char *link)
{
	put_port(port, "state", state);
	put_port(port, "rate", rate);
	put_port(port, "link_layer", link);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	return remove(path);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define ZERO "0000:0000:0000:0000:0000:0000:0000:0000"
#define LOCAL "fe80:0000:0000:0000:0202:03ff:fe04:0506"
#define MAPPED "0000:0000:0000:0000:0000:ffff:0a01:0203"

static void roce(void **state)
{
	struct nezha_verbs_port ports[4];
	struct in_addr want;

	(void)state;
	make_port("mlx5_0/ports/1", "4: ACTIVE", "100 Gb/sec (4X EDR)", "Ethernet");
	put("mlx5_0/device/numa_node", "1");
	put("mlx5_0/ports/1/gids/0", LOCAL);
	put("mlx5_0/ports/1/gid_attrs/types/0", "RoCE v2");
	put("mlx5_0/ports/1/gids/1", ZERO);
	put("mlx5_0/ports/1/gids/2", MAPPED);
	put("mlx5_0/ports/1/gid_attrs/types/2", "IB/RoCE v1");
	put("mlx5_0/ports/1/gids/3", MAPPED);
	put("mlx5_0/ports/1/gid_attrs/types/3", "RoCE v2");
	assert_int_equal(nezha_verbs_ports(root, ports, 4), 1);
	assert_string_equal(ports[0].device, "mlx5_0");
	assert_true(ports[0].port == 1 && ports[0].active && ports[0].speed == 100000 && ports[0].numa == 1);
	assert_string_equal(ports[0].state, "ACTIVE");
	assert_true(ports[0].link == NEZHA_VERBS_ETHERNET && ports[0].gid == 3);
	assert_string_equal(ports[0].gid_type, "RoCE v2");
	inet_pton(AF_INET, "10.1.2.3", &want);
	assert_int_equal(ports[0].address.s_addr, want.s_addr);
	assert_null(ports[0].why_not);
}

/* In a container the kernel keeps the types to itself. */
static void roce_without_types(void **state)
{
	struct nezha_verbs_port ports[4];

	(void)state;
	make_port("rxe0/ports/1", "4: ACTIVE", "2.5 Gb/sec (1X SDR)", "Ethernet");
	put("rxe0/ports/1/gids/0", LOCAL);
	put("rxe0/ports/1/gids/1", MAPPED);
	assert_int_equal(nezha_verbs_ports(root, ports, 4), 1);
	assert_true(ports[0].gid == 1 && !*ports[0].gid_type && !ports[0].why_not && ports[0].speed == 2500 && ports[0].numa == -1);
}

static void assert_out(const char *why)
{
	struct nezha_verbs_port ports[4];

	assert_int_equal(nezha_verbs_ports(root, ports, 4), 1);
	assert_string_equal(ports[0].why_not, why);
	assert_true(strlen(why) <= 38);
}

static void those_that_are_out(void **state)
{
	(void)state;
	make_port("a0/ports/1", "1: DOWN", "40 Gb/sec (4X QDR)", "Ethernet");
	put("a0/ports/1/gids/0", MAPPED);
	assert_out("the port is not active");
	put("a0/ports/1/state", "4: ACTIVE");
	put("a0/ports/1/gid_attrs/types/0", "IB/RoCE v1");
	assert_out("no GID of RoCE v2 with an IPv4 address");
	put("a0/ports/1/link_layer", "InfiniBand");
	put("a0/ports/1/gids/0", ZERO);
	assert_out("no GID");
	put("a0/ports/1/gids/0", LOCAL);
	assert_out("no interface with an IPv4 address");
	put("a0/ports/1/link_layer", "Something");
	assert_out("neither InfiniBand nor Ethernet");
}

/* An InfiniBand port has the address of its network interface; lo stands for one here. */
static void infiniband(void **state)
{
	struct nezha_verbs_port ports[4];

	(void)state;
	make_port("mlx4_0/ports/1", "4: ACTIVE", "56 Gb/sec (4X FDR)", "InfiniBand");
	make_port("mlx4_0/ports/2", "2: INIT", "10 Gb/sec (4X SDR)", "InfiniBand");
	put("mlx4_0/ports/1/gids/0", LOCAL);
	put("mlx4_0/device/net/nothing/dev_port", "1");
	put("mlx4_0/device/net/lo/dev_port", "0");
	assert_int_equal(nezha_verbs_ports(root, ports, 1), 1);
	assert_int_equal(nezha_verbs_ports(root, ports, 4), 2);
	assert_true(ports[0].gid == 0 && ports[0].speed == 56000 && ports[1].port == 2 && !ports[1].active);
	if (!ports[0].address.s_addr)
		SKIP_DETAIL("a port's address: the loopback of this namespace has none");
	assert_int_equal(ports[0].address.s_addr, htonl(INADDR_LOOPBACK));
	assert_null(ports[0].why_not);
}

static void broken_trees(void **state)
{
	struct nezha_verbs_port ports[4];

	(void)state;
	assert_int_equal(nezha_verbs_ports("/nothing/at/all", ports, 4), 0);
	assert_int_equal(nezha_verbs_ports(root, ports, 4), 0);
	put("bare/ports/1/state", "");
	put("bare/ports/1/rate", "fast");
	put("bare/ports/1/gids/0", "no address");
	assert_int_equal(nezha_verbs_ports(root, ports, 4), 1);
	assert_true(!ports[0].active && !ports[0].speed && ports[0].gid == -1 && ports[0].why_not);
	assert_string_equal(ports[0].state, "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(roce, make_root, remove_root),
		cmocka_unit_test_setup_teardown(roce_without_types, make_root, remove_root),
		cmocka_unit_test_setup_teardown(those_that_are_out, make_root, remove_root),
		cmocka_unit_test_setup_teardown(infiniband, make_root, remove_root),
		cmocka_unit_test_setup_teardown(broken_trees, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
