/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "rails/nic.h"
#include "rails/verbs.h"
#include "tuning/info.h"

void nezha_info_speed(char *text, size_t len, uint32_t mbit)
{
	if (!mbit)
		snprintf(text, len, "unknown");
	else if (mbit >= 1000)
		snprintf(text, len, "%g Gbit/s", mbit / 1000.0);
	else
		snprintf(text, len, "%u Mbit/s", mbit);
}

static bool is_rail(const struct nezha_verbs_port *port, const struct nezha_rail_nic *rails, size_t count)
{
	for (size_t r = 0; r < count; r++)
		if (rails[r].kind == NEZHA_RAIL_VERBS && !strcmp(rails[r].port.device, port->device) &&
		    rails[r].port.port == port->port)
			return true;
	return false;
}

/* What can be a rail is one when it is named. */
static const char *why_no_rail(const struct nezha_verbs_port *port)
{
	if (!nezha_verbs_built())
		return "built without libibverbs";
	return port->why_not ? port->why_not : "not named by NEZHA_RAILS";
}

static void print_name(char *text, size_t len, const struct nezha_verbs_port *port)
{
	snprintf(text, len, "%s:%u", port->device, port->port);
}

static void print_gid(char *text, size_t len, const struct nezha_verbs_port *port)
{
	char gid[INET6_ADDRSTRLEN];

	if (port->gid < 0)
		snprintf(text, len, "no GID");
	else
		snprintf(text, len, "GID %d %s%s%s", port->gid, inet_ntop(AF_INET6, port->gid_bytes, gid, sizeof gid),
		         *port->gid_type ? ", " : "", port->gid_type);
}

json_t *nezha_info_describe_port(const struct nezha_verbs_port *port, const char *why_not)
{
	char gid[INET6_ADDRSTRLEN], address[INET_ADDRSTRLEN];
	json_t *object = json_pack("{s:s, s:s, s:i, s:s, s:I, s:i}", "kind", "verbs", "device", port->device, "port",
	                           (int)port->port, "state", port->state, "speed_mbit", (json_int_t)port->speed,
	                           "gid_index", port->gid);

	json_object_set_new(object, "gid", port->gid < 0 ? json_null() :
	                    json_string(inet_ntop(AF_INET6, port->gid_bytes, gid, sizeof gid)));
	json_object_set_new(object, "gid_type", json_string(port->gid_type));
	json_object_set_new(object, "address", port->address.s_addr ?
	                    json_string(inet_ntop(AF_INET, &port->address, address, sizeof address)) : json_null());
	json_object_set_new(object, "numa", port->numa < 0 ? json_null() : json_integer(port->numa));
	if (why_not)
		json_object_set_new(object, "why_not", json_string(why_not));
	return object;
}

void nezha_info_print_port(const struct nezha_verbs_port *port)
{
	char name[NEZHA_VERBS_NAME + 8], address[INET_ADDRSTRLEN] = "-", speed[24], node[16];

	print_name(name, sizeof name, port);
	if (port->address.s_addr)
		inet_ntop(AF_INET, &port->address, address, sizeof address);
	nezha_info_speed(speed, sizeof speed, port->speed);
	snprintf(node, sizeof node, port->numa < 0 ? "-" : "%d", port->numa);
	printf("  %-15s %-18s %12s %6s %10s\n", name, address, speed, "verbs", node);
}

static void print_ports(const struct nezha_verbs_port *ports, size_t count, const struct nezha_rail_nic *rails,
                        size_t rail_count)
{
	char name[NEZHA_VERBS_NAME + 8], gid[80], speed[24];

	printf("RDMA ports\n");
	for (size_t i = 0; i < count; i++) {
		print_name(name, sizeof name, &ports[i]);
		print_gid(gid, sizeof gid, &ports[i]);
		nezha_info_speed(speed, sizeof speed, ports[i].speed);
		printf("  %-15s %-10s %-12s %s\n", name, ports[i].state, speed,
		       is_rail(&ports[i], rails, rail_count) ? "a rail" : why_no_rail(&ports[i]));
		printf("  %-15s %s\n", "", gid);
	}
}

void nezha_info_ports(const struct nezha_verbs_port *ports, size_t count, const struct nezha_rail_nic *rails,
                      size_t rail_count, json_t *json)
{
	json_t *list;

	if (!json && count)
		print_ports(ports, count, rails, rail_count);
	if (!json)
		return;
	list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, nezha_info_describe_port(
			&ports[i], is_rail(&ports[i], rails, rail_count) ? NULL : why_no_rail(&ports[i])));
	json_object_set_new(json, "rdma_ports", list);
}
