/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/nic.h"
#include "rails/nic_spec.h"
#include "tuning/status.h"

/* What is being made: the rails so far, and the notes. */
struct selection {
	const struct nezha_nic *nics;
	size_t nic_count;
	const struct nezha_verbs_port *ports;
	size_t port_count;
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	size_t count;
	size_t beyond;             /* rails that no longer fitted */
	FILE *notes;
};

static struct in_addr subnet_of(struct in_addr address, unsigned prefix)
{
	address.s_addr &= prefix ? htonl(UINT32_MAX << (32 - prefix)) : 0;
	return address;
}

static bool is_same(const struct nezha_rail_nic *a, const struct nezha_rail_nic *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == NEZHA_RAIL_VERBS)
		return !strcmp(a->port.device, b->port.device) && a->port.port == b->port.port;
	return !strcmp(a->nic.device, b->nic.device) && a->nic.address.s_addr == b->nic.address.s_addr;
}

static bool is_selected(const struct selection *selection, const struct nezha_rail_nic *rail)
{
	for (size_t r = 0; r < selection->count; r++)
		if (is_same(&selection->rails[r], rail))
			return true;
	return false;
}

/* Adds a rail under the key (kind, subnet, prefix, entry), with the next free ordinal of it; port: NULL for TCP. */
static void add(struct selection *selection, const struct nezha_nic *nic, const struct nezha_verbs_port *port,
                struct in_addr subnet, unsigned prefix, size_t entry)
{
	struct nezha_rail_nic rail = {
		.kind = port ? NEZHA_RAIL_VERBS : NEZHA_RAIL_TCP,
		.nic = *nic,
		.key_subnet = subnet.s_addr,
		.key_prefix = (uint8_t)prefix,
		.key_entry = (uint8_t)entry,
	};

	if (port)
		rail.port = *port;
	if (is_selected(selection, &rail))
		return;
	if (selection->count == NEZHA_RAILS_MAX) {
		selection->beyond++;
		return;
	}
	for (size_t r = 0; r < selection->count; r++)
		if (selection->rails[r].kind == rail.kind && selection->rails[r].key_subnet == rail.key_subnet &&
		    selection->rails[r].key_prefix == prefix && selection->rails[r].key_entry == entry)
			rail.key_ordinal++;
	selection->rails[selection->count++] = rail;
}

/* How many usable NICs are faster than this one, or as fast and before it. */
static size_t rank_by_speed(const struct selection *selection, size_t index)
{
	const struct nezha_nic *nics = selection->nics;
	size_t rank = 0;

	for (size_t i = 0; i < selection->nic_count; i++)
		rank += !nics[i].why_not && (nics[i].speed > nics[index].speed ||
		                             (nics[i].speed == nics[index].speed && i < index));
	return rank;
}

/* All that are usable, or the fastest ones of them. */
static void select_auto(struct selection *selection)
{
	for (size_t i = 0; i < selection->nic_count; i++) {
		const struct nezha_nic *nic = &selection->nics[i];

		if (nic->why_not)
			continue;
		if (rank_by_speed(selection, i) < NEZHA_RAILS_MAX)
			add(selection, nic, NULL, subnet_of(nic->address, nic->prefix), nic->prefix, 0);
		else
			selection->beyond++;
	}
}

static bool exists(const struct selection *selection, const char *device)
{
	for (size_t i = 0; i < selection->nic_count; i++)
		if (strcmp(selection->nics[i].device, device) == 0)
			return true;
	return false;
}

/* The message, malloc'd; NULL: no memory.  Lists only what could be named instead: a host may have
 * hundreds of veths. */
static char *unknown_device(const struct selection *selection, const char *device)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	const char *last = "", *separator = "";

	if (!f)
		return NULL;
	fprintf(f,
	        "NEZHA_RAILS: \"tcp:%s\": there is no device %s on this host; those with an IPv4 address "
	        "are ",
	        device, device);
	for (size_t i = 0; i < selection->nic_count; i++) {
		if (!selection->nics[i].address.s_addr || strcmp(selection->nics[i].device, last) == 0)
			continue;
		last = selection->nics[i].device;
		fprintf(f, "%s%s", separator, last);
		separator = ", ";
	}
	if (!*separator)
		fputs("none", f);
	return fclose(f) ? NULL : text;
}

/* The first address of the device is taken; one that only counts on its own wire, 169.254/16, only if
 * there is no other. */
static void select_device(struct selection *selection, const char *device, size_t entry)
{
	const struct nezha_nic *best = NULL;

	for (size_t i = 0; i < selection->nic_count; i++) {
		const struct nezha_nic *nic = &selection->nics[i];
		bool link_local = ntohl(nic->address.s_addr) >> 16 == 0xa9fe;

		if (strcmp(nic->device, device) || !nic->address.s_addr)
			continue;
		if (!link_local) {
			best = nic;
			break;
		}
		if (!best)
			best = nic;
	}
	if (!best)
		fprintf(selection->notes, "NEZHA_RAILS: \"tcp:%s\": %s has no IPv4 address on this host\n",
		        device, device);
	else if (!best->carrier)
		fprintf(selection->notes,
		        "NEZHA_RAILS: \"tcp:%s\": %s is down or has no carrier on this host\n", device,
		        device);
	else
		add(selection, best, NULL, (struct in_addr){ 0 }, 0, entry + 1);
}

/* Of each device with addresses in the subnet the first one. */
static void select_subnet(struct selection *selection, const struct nezha_rail_entry *entry)
{
	const char *last = "", *down = NULL;
	char subnet[INET_ADDRSTRLEN];
	bool any = false;

	inet_ntop(AF_INET, &entry->subnet, subnet, sizeof subnet);
	for (size_t i = 0; i < selection->nic_count; i++) {
		const struct nezha_nic *nic = &selection->nics[i];

		if (!nic->address.s_addr || strcmp(nic->device, last) == 0 ||
		    subnet_of(nic->address, entry->prefix).s_addr != entry->subnet.s_addr)
			continue;
		last = nic->device;
		if (!nic->carrier) {
			down = nic->device;
			continue;
		}
		any = true;
		add(selection, nic, NULL, entry->subnet, entry->prefix, 0);
	}
	if (down)
		fprintf(selection->notes,
		        "NEZHA_RAILS: \"tcp:%s/%u\": %s is down or has no carrier on this host\n", subnet,
		        entry->prefix, down);
	else if (!any)
		fprintf(selection->notes, "NEZHA_RAILS: \"tcp:%s/%u\": this host has no address in it\n",
		        subnet, entry->prefix);
}

/* ---- RDMA devices ---- */

/* Where the port's connections are made. */
static const struct nezha_nic *find_nic(const struct selection *selection, const struct nezha_verbs_port *port)
{
	const struct nezha_nic *usable = NULL;

	for (size_t i = 0; i < selection->nic_count; i++) {
		const struct nezha_nic *nic = &selection->nics[i];

		if (nic->address.s_addr && nic->address.s_addr == port->address.s_addr)
			return nic;
		if (!nic->why_not && !usable)
			usable = nic;
	}
	return usable;
}

static void add_port(struct selection *selection, const struct nezha_verbs_port *port, struct in_addr subnet,
                     unsigned prefix, size_t entry)
{
	const struct nezha_nic *nic = find_nic(selection, port);

	if (port->why_not)
		fprintf(selection->notes, "NEZHA_RAILS: verbs:%s:%u cannot be used on this host: %s\n", port->device,
		        port->port, port->why_not);
	else if (!nic)
		fprintf(selection->notes, "NEZHA_RAILS: verbs:%s:%u cannot be used on this host: there is no interface with "
		        "an IPv4 address to make connections over\n", port->device, port->port);
	else
		add(selection, nic, port, subnet, prefix, entry);
}

/* The ports of a device, or the one that was named; false if there is none. */
static bool select_port(struct selection *selection, const struct nezha_rail_entry *named, size_t entry)
{
	bool any = false;

	for (size_t i = 0; i < selection->port_count; i++) {
		const struct nezha_verbs_port *port = &selection->ports[i];

		if (strcmp(port->device, named->device) || (named->port && named->port != port->port))
			continue;
		any = true;
		add_port(selection, port, (struct in_addr){ 0 }, 0, entry + 1);
	}
	return any;
}

static void select_port_subnet(struct selection *selection, const struct nezha_rail_entry *entry)
{
	char subnet[INET_ADDRSTRLEN];
	bool any = false;

	for (size_t i = 0; i < selection->port_count; i++) {
		const struct nezha_verbs_port *port = &selection->ports[i];

		if (!port->address.s_addr || subnet_of(port->address, entry->prefix).s_addr != entry->subnet.s_addr)
			continue;
		any = true;
		add_port(selection, port, entry->subnet, entry->prefix, 0);
	}
	if (!any)
		fprintf(selection->notes, "NEZHA_RAILS: \"verbs:%s/%u\": no RDMA device of this host has an address in it\n",
		        inet_ntop(AF_INET, &entry->subnet, subnet, sizeof subnet), entry->prefix);
}

/* The message, malloc'd; NULL: no memory. */
static char *unknown_port(const struct selection *selection, const struct nezha_rail_entry *entry)
{
	char *text = NULL, port[8] = "";
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	if (entry->port)
		snprintf(port, sizeof port, ":%u", entry->port);
	fprintf(f, "NEZHA_RAILS: \"verbs:%s%s\": there is no such RDMA device or port on this host; there are ", entry->device,
	        port);
	for (size_t i = 0; i < selection->port_count; i++)
		fprintf(f, "%s%s:%u", i ? ", " : "", selection->ports[i].device, selection->ports[i].port);
	if (!selection->port_count)
		fputs("none", f);
	return fclose(f) ? NULL : text;
}

static int refuse(char *text, char **error)
{
	if (!text)
		return NEZHA_ERR_NOMEM;
	*error = text;
	return NEZHA_ERR_INVALID;
}

static int select_entry(struct selection *selection, const struct nezha_rail_entry *entry, size_t index, char **error)
{
	if (entry->kind == NEZHA_RAIL_VERBS && !*entry->device)
		select_port_subnet(selection, entry);
	else if (entry->kind == NEZHA_RAIL_VERBS && !select_port(selection, entry, index))
		return refuse(unknown_port(selection, entry), error);
	else if (entry->kind == NEZHA_RAIL_TCP && !*entry->device)
		select_subnet(selection, entry);
	else if (entry->kind == NEZHA_RAIL_TCP && !exists(selection, entry->device))
		return refuse(unknown_device(selection, entry->device), error);
	else if (entry->kind == NEZHA_RAIL_TCP)
		select_device(selection, entry->device, index);
	return NEZHA_OK;
}

static int select_named(struct selection *selection, const struct nezha_rail_entry *entries, size_t count,
                        char **error)
{
	int status = NEZHA_OK;

	for (size_t e = 0; e < count && status == NEZHA_OK; e++)
		if (!nezha_rail_entry_reduces(&entries[e]))
			status = select_entry(selection, &entries[e], e, error);
	return status;
}

/* Those that reduce by themselves are beside the rails that are found. */
static bool names_rails(const struct nezha_rail_entry *entries, size_t count)
{
	for (size_t e = 0; e < count; e++)
		if (!nezha_rail_entry_reduces(&entries[e]))
			return true;
	return false;
}

int nezha_nic_select(const char *spec, const struct nezha_nic_set *set,
                     struct nezha_rail_nic *rails, size_t *rail_count, char **notes, char **error)
{
	struct nezha_rail_entry entries[NEZHA_RAIL_ENTRIES_MAX];
	struct selection selection = {
		.nics = set->nics, .nic_count = set->nic_count, .ports = set->ports, .port_count = set->port_count,
	};
	size_t entry_count, len;
	char *text = NULL;
	int status = nezha_rail_spec_parse(spec, entries, &entry_count, error);

	if (status != NEZHA_OK)
		return status;
	selection.notes = open_memstream(&text, &len);
	if (!selection.notes)
		return NEZHA_ERR_NOMEM;
	if (names_rails(entries, entry_count))
		status = select_named(&selection, entries, entry_count, error);
	else
		select_auto(&selection);
	if (selection.beyond)
		fprintf(selection.notes, "NEZHA_RAILS: %zu more rails are left out: at most %d can be used\n",
		        selection.beyond, NEZHA_RAILS_MAX);
	if (fclose(selection.notes) && status == NEZHA_OK)
		status = NEZHA_ERR_NOMEM;
	if (status != NEZHA_OK) {
		free(text);
		return status;
	}
	memcpy(rails, selection.rails, selection.count * sizeof *rails);
	*rail_count = selection.count;
	*notes = text;
	return NEZHA_OK;
}
