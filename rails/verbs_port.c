/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/verbs_port.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 256
#define PATH_BYTES 512

/* The first line of a file; false if there is none. */
static bool read_line(const char *folder, const char *name, char *out, size_t len)
{
	char path[PATH_BYTES];
	FILE *f;
	bool good;

	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path || !(f = fopen(path, "re")))
		return false;
	good = fgets(out, (int)len, f) != NULL;
	fclose(f);
	if (good)
		out[strcspn(out, "\n")] = '\0';
	return good;
}

/* "4: ACTIVE" */
static void read_state(const char *folder, struct nezha_verbs_port *port)
{
	char line[64] = "";
	const char *colon;

	read_line(folder, "state", line, sizeof line);
	colon = strchr(line, ':');
	snprintf(port->state, sizeof port->state, "%.15s", colon && colon[1] ? colon + 2 : "unknown");
	port->active = !strcmp(port->state, "ACTIVE");
}

/* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)" */
static uint32_t read_speed(const char *folder)
{
	char line[64] = "";
	unsigned whole = 0, tenth = 0;

	if (!read_line(folder, "rate", line, sizeof line) || sscanf(line, "%6u.%1u", &whole, &tenth) < 1)
		return 0;
	return whole * 1000 + tenth * 100;
}

static enum nezha_verbs_link read_link(const char *folder)
{
	char line[64] = "";

	read_line(folder, "link_layer", line, sizeof line);
	return !strcmp(line, "Ethernet") ? NEZHA_VERBS_ETHERNET :
	       !strcmp(line, "InfiniBand") ? NEZHA_VERBS_INFINIBAND : NEZHA_VERBS_OTHER;
}

static bool read_gid(const char *folder, int index, unsigned char *gid, char *type, size_t len)
{
	static const unsigned char none[16];
	char name[64], line[64];

	snprintf(name, sizeof name, "gids/%d", index);
	if (!read_line(folder, name, line, sizeof line) || inet_pton(AF_INET6, line, gid) != 1 || !memcmp(gid, none, 16))
		return false;
	snprintf(name, sizeof name, "gid_attrs/types/%d", index);
	*type = '\0';
	if (read_line(folder, name, line, sizeof line))
		snprintf(type, len, "%.15s", line);
	return true;
}

static bool is_ipv4(const unsigned char *gid)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof mapped);
}

/* The GIDs of a port have holes, but none is behind the first missing file. */
static void choose_gid(const char *folder, struct nezha_verbs_port *port)
{
	unsigned char gid[16];
	char type[16], name[64], line[64];

	port->gid = -1;
	for (int i = 0; i < GIDS_MAX; i++) {
		snprintf(name, sizeof name, "gids/%d", i);
		if (!read_line(folder, name, line, sizeof line))
			return;
		if (!read_gid(folder, i, gid, type, sizeof type))
			continue;
		if (port->link == NEZHA_VERBS_ETHERNET && ((*type && strcmp(type, "RoCE v2")) || !is_ipv4(gid)))
			continue;
		port->gid = i;
		memcpy(port->gid_bytes, gid, sizeof gid);
		memcpy(port->gid_type, type, sizeof type);
		if (is_ipv4(gid))
			memcpy(&port->address, gid + 12, 4);
		return;
	}
}

/* The interface's first IPv4 address; 0: it has none. */
static struct in_addr address_of(const char *interface)
{
	struct in_addr address = { 0 };
	struct ifaddrs *all, *one;

	if (getifaddrs(&all))
		return address;
	for (one = all; one && !address.s_addr; one = one->ifa_next)
		if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !strcmp(one->ifa_name, interface))
			address = ((const struct sockaddr_in *)one->ifa_addr)->sin_addr;
	freeifaddrs(all);
	return address;
}

/* The port's IPoIB interface: the one of the device's whose dev_port is the port's number, from 0. */
static void find_interface(const char *device, struct nezha_verbs_port *port)
{
	char folder[PATH_BYTES], line[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof folder, "%s/device/net", device);
	dir = opendir(folder);
	while (dir && !port->address.s_addr && (entry = readdir(dir))) {
		char name[IF_NAMESIZE + 16];

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= IF_NAMESIZE)
			continue;
		snprintf(name, sizeof name, "%.15s/dev_port", entry->d_name);
		if (read_line(folder, name, line, sizeof line) && atoi(line) == port->port - 1)
			port->address = address_of(entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static const char *why_not(const struct nezha_verbs_port *port)
{
	if (port->link == NEZHA_VERBS_OTHER)
		return "neither InfiniBand nor Ethernet";
	if (!port->active)
		return "the port is not active";
	if (port->gid < 0)
		return port->link == NEZHA_VERBS_ETHERNET ? "no GID of RoCE v2 with an IPv4 address" : "no GID";
	if (!port->address.s_addr)
		return "no interface with an IPv4 address";
	return NULL;
}

static void read_port(const char *device, const char *name, struct nezha_verbs_port *port)
{
	char folder[PATH_BYTES], line[32];

	snprintf(folder, sizeof folder, "%s/ports/%u", device, port->port);
	snprintf(port->device, sizeof port->device, "%.63s", name);
	port->numa = read_line(device, "device/numa_node", line, sizeof line) ? atoi(line) : -1;
	read_state(folder, port);
	port->speed = read_speed(folder);
	port->link = read_link(folder);
	choose_gid(folder, port);
	if (port->link == NEZHA_VERBS_INFINIBAND)
		find_interface(device, port);
	port->why_not = why_not(port);
}

static size_t read_device(const char *sysfs, const char *name, struct nezha_verbs_port *ports, size_t max)
{
	char device[PATH_BYTES / 2], folder[PATH_BYTES];
	size_t count = 0;
	DIR *dir;

	if (snprintf(device, sizeof device, "%s/%s", sysfs, name) >= (int)sizeof device)
		return 0;
	for (unsigned port = 1; port < 255 && count < max; port++) {
		snprintf(folder, sizeof folder, "%s/ports/%u", device, port);
		dir = opendir(folder);
		if (!dir)
			break;
		closedir(dir);
		memset(&ports[count], 0, sizeof ports[count]);
		ports[count].port = (uint8_t)port;
		read_port(device, name, &ports[count++]);
	}
	return count;
}

size_t nezha_verbs_ports(const char *sysfs, struct nezha_verbs_port *ports, size_t max)
{
	struct dirent **entries;
	size_t count = 0;
	int n = scandir(sysfs, &entries, NULL, versionsort);

	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.')
			count += read_device(sysfs, entries[i]->d_name, ports + count, max - count);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return count;
}
