/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/nic_class.h"

#include <arpa/inet.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#define MANAGEMENT_RATIO 4     /* 1G beside 10G, 10G beside 100G; but 10G beside 25G is worth having */
#define CHAIN_MAX 8            /* VLAN on macvlan on bond ...: how far down to follow, so that a loop ends */

struct host {
	const struct nezha_interface *interfaces;
	size_t count;
};

static const struct nezha_interface *find(const struct host *host, int index)
{
	for (size_t i = 0; index > 0 && i < host->count; i++)
		if (host->interfaces[i].index == index)
			return &host->interfaces[i];
	return NULL;
}

static bool is_kind(const struct nezha_interface *interface, const char *const *kinds)
{
	for (; *kinds; kinds++)
		if (strcmp(interface->kind, *kinds) == 0)
			return true;
	return false;
}

/* Stands on one other interface and shares its wire. */
static bool is_upper(const struct nezha_interface *interface)
{
	static const char *const kinds[] = { "vlan", "macvlan", "ipvlan", "ipoib", NULL };
	return is_kind(interface, kinds);
}

static bool is_tunnel(const struct nezha_interface *interface)
{
	static const char *const kinds[] = { "tun", "wireguard", "gre",  "gretap", "ipip", "sit",
		                             "ppp", "vti",       "xfrm", "erspan", NULL };
	return interface->flags & IFF_POINTOPOINT || is_kind(interface, kinds);
}

/* The interface whose wire this one uses in the end: the adapter, the bond. */
static const struct nezha_interface *wire_of(const struct host *host, const struct nezha_interface *interface)
{
	for (int i = 0; i < CHAIN_MAX && is_upper(interface); i++) {
		const struct nezha_interface *lower = find(host, interface->lower);
		if (!lower)
			break;
		interface = lower;
	}
	return interface;
}

/* Has a network adapter behind it, as far as can be seen: the lower device of a macvlan may be in another
 * namespace. */
static bool is_physical(const struct host *host, const struct nezha_interface *interface, bool with_bridges)
{
	static const char *const made_of_adapters[] = { "",     "ipoib",   "bond",   "team",
		                                        "vlan", "macvlan", "ipvlan", NULL };

	if (interface->flags & (IFF_LOOPBACK | IFF_POINTOPOINT))
		return false;
	interface = wire_of(host, interface);
	if (with_bridges && strcmp(interface->kind, "bridge") == 0) {
		for (size_t i = 0; i < host->count; i++)
			if (host->interfaces[i].master == interface->index &&
			    is_physical(host, &host->interfaces[i], false))
				return true;
		return false;
	}
	return is_kind(interface, made_of_adapters);
}

static const char *why_member(const struct nezha_interface *master)
{
	if (master && (strcmp(master->kind, "bond") == 0 || strcmp(master->kind, "team") == 0))
		return "a member of a bond";
	if (master && strcmp(master->kind, "bridge") == 0)
		return "a port of a bridge";
	if (master && strcmp(master->kind, "vrf") == 0)
		return "in a VRF";
	return "belongs to another interface";
}

/* What an interface and an address of it are by themselves; NULL: nothing against it. */
static const char *why_not_alone(const struct host *host, const struct nezha_interface *interface,
                                 const struct nezha_interface_address *address)
{
	if (interface->flags & IFF_LOOPBACK)
		return "loopback";
	if (!address)
		return "no IPv4 address";
	if (!(interface->flags & IFF_UP))
		return "down";
	if (!(interface->flags & IFF_RUNNING))
		return "no carrier";
	if (interface->master)
		return why_member(find(host, interface->master));
	if ((ntohl(address->address.s_addr) >> 16) == 0xa9fe)
		return "a link-local address";
	if (address->prefix >= 32)
		return "a /32 says nothing of its network";
	if (is_tunnel(interface))
		return "a tunnel or point-to-point";
	if (strcmp(interface->kind, "bridge") == 0 && !is_physical(host, interface, true))
		return "a bridge of virtual ports";
	if (!is_physical(host, interface, true))
		return "a virtual device";
	if (interface->type != ARPHRD_ETHER && interface->type != ARPHRD_INFINIBAND)
		return "neither Ethernet nor InfiniBand";
	return NULL;
}

/* eth2 before eth10: runs of digits compare as numbers. */
static int compare_names(const char *a, const char *b)
{
	while (*a && *b) {
		if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
			char *a_end, *b_end;
			unsigned long long x = strtoull(a, &a_end, 10), y = strtoull(b, &b_end, 10);

			if (x != y)
				return x < y ? -1 : 1;
			if (a_end - a != b_end - b)
				return a_end - a < b_end - b ? -1 : 1;
			a = a_end;
			b = b_end;
		} else if (*a != *b) {
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		} else {
			a++;
			b++;
		}
	}
	return !*b - !*a;
}

/* One line of the result while it is worked on. */
struct candidate {
	const struct nezha_interface *interface, *wire;
	const struct nezha_interface_address *address;   /* NULL: none */
	const char *why_not;
};

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	int order = compare_names(a->interface->device, b->interface->device);
	uint32_t x, y;

	if (order || !a->address || !b->address)
		return order;
	x = ntohl(a->address->address.s_addr);
	y = ntohl(b->address->address.s_addr);
	return x < y ? -1 : x > y;
}

/* Of several candidates on one wire the first one stays; one without the default route goes before one
 * with it. */
static void leave_one_on_each_wire(struct candidate *candidates, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct candidate *best = &candidates[i];

		if (best->why_not)
			continue;
		for (size_t j = i + 1; j < count; j++) {
			struct candidate *other = &candidates[j], *worse = other;

			if (other->why_not || other->wire != best->wire)
				continue;
			if (best->interface->default_route && !other->interface->default_route) {
				worse = best;
				best = other;
			}
			worse->why_not = worse->interface == best->interface ? "a second address of a rail" :
			                 "shares the wire of a rail";
		}
	}
}

static void leave_management_out(struct candidate *candidates, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct nezha_interface *interface = candidates[i].interface;

		if (candidates[i].why_not || !interface->default_route || !interface->speed)
			continue;
		for (size_t j = 0; j < count; j++)
			if (!candidates[j].why_not && !candidates[j].interface->default_route &&
			    candidates[j].interface->speed / MANAGEMENT_RATIO >= interface->speed)
				candidates[i].why_not = "management: slow, has the default route";
	}
}

static struct nezha_nic describe(const struct host *host, const struct candidate *candidate)
{
	const struct nezha_interface *interface = candidate->interface;
	struct nezha_nic nic = {
		.speed = interface->speed,
		.mtu = interface->mtu,
		.numa = interface->numa,
		.carrier = (interface->flags & IFF_UP) && (interface->flags & IFF_RUNNING),
		.physical = is_physical(host, interface, true),
		.why_not = candidate->why_not,
	};

	memcpy(nic.device, interface->device, sizeof nic.device);
	if (candidate->address) {
		nic.address = candidate->address->address;
		nic.prefix = candidate->address->prefix;
	}
	return nic;
}

static size_t collect(const struct host *host, const struct nezha_interface_address *addresses,
                      size_t address_count, struct candidate *candidates, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < host->count; i++) {
		const struct nezha_interface *interface = &host->interfaces[i];
		struct candidate candidate = { interface, wire_of(host, interface), NULL, NULL };
		bool any = false;

		for (size_t a = 0; a <= address_count && count < max; a++) {
			if (a < address_count ? addresses[a].index != interface->index : any)
				continue;
			any = true;
			candidate.address = a < address_count ? &addresses[a] : NULL;
			candidate.why_not = why_not_alone(host, interface, candidate.address);
			candidates[count++] = candidate;
		}
	}
	return count;
}

static bool has_no_address(const struct candidate *candidate)
{
	return !candidate->address;
}

static bool is_out(const struct candidate *candidate)
{
	return candidate->why_not != NULL;
}

static bool is_any(const struct candidate *candidate)
{
	(void)candidate;
	return true;
}

/* Drops candidates of this sort, the last first, until `max` are left. */
static size_t drop(struct candidate *candidates, size_t count, size_t max,
                   bool (*sort)(const struct candidate *))
{
	for (size_t i = count; i-- > 0 && count > max;)
		if (sort(&candidates[i])) {
			memmove(&candidates[i], &candidates[i + 1], (count - i - 1) * sizeof *candidates);
			count--;
		}
	return count;
}

size_t nezha_nic_classify(const struct nezha_interface *interfaces, size_t interface_count,
                          const struct nezha_interface_address *addresses, size_t address_count,
                          struct nezha_nic *nics, size_t max)
{
	const struct host host = { interfaces, interface_count };
	size_t count, room = interface_count + address_count;
	struct candidate *candidates = calloc(room ? room : 1, sizeof *candidates);

	if (!candidates)
		return 0;
	count = collect(&host, addresses, address_count, candidates, room);
	qsort(candidates, count, sizeof *candidates, compare_candidates);
	leave_one_on_each_wire(candidates, count);
	leave_management_out(candidates, count);
	/* A container host may have thousands of interfaces: the rails must not drown among them. */
	count = drop(candidates, count, max, has_no_address);
	count = drop(candidates, count, max, is_out);
	count = drop(candidates, count, max, is_any);
	for (size_t i = 0; i < count; i++)
		nics[i] = describe(&host, &candidates[i]);
	free(candidates);
	return count;
}
