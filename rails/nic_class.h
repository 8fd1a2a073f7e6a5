/* SPDX-License-Identifier: BSD-3-Clause
 * Which of a host's interfaces are rails by default, as a pure function of what the kernel tells about
 * them.
 *
 * Out are, by the first of these that holds:
 *   no IPv4 address; loopback; down; no carrier;
 *   a member of a bond, a bridge or a VRF (the bond is a rail, its members are not);
 *   link-local addresses (169.254/16) and /32 (nothing says who else is there; such a device can be named);
 *   tunnels and point-to-point devices;
 *   virtual devices, and bridges that have only virtual ports: docker0, virbr0, cni0, flannel.1, veth, dummy;
 *   what is neither Ethernet nor InfiniBand;
 *   a second address, VLAN or macvlan on a wire that is a rail already: it would add no bandwidth;
 *   the management interface: it has the default route, and another rail is at least four times as fast.
 * A host's only interface stays in, and so does the one with the default route if the others are no
 * faster. */
#ifndef NEZHA_RAILS_NIC_CLASS_H
#define NEZHA_RAILS_NIC_CLASS_H

#include "rails/nic.h"

/* One interface as the kernel describes it. */
struct nezha_interface {
	char device[IF_NAMESIZE];
	int index;                 /* > 0 */
	int lower; /* index of what a VLAN, macvlan or child interface stands on, 0: none or elsewhere */
	int master;                /* index of the bond, bridge or VRF it belongs to, 0: none */
	unsigned flags;            /* IFF_* */
	unsigned type;             /* ARPHRD_* */
	char kind[16];             /* "veth", "bridge", "bond", ... ; "" for most adapters */
	uint32_t speed;            /* Mbit/s, 0: unknown */
	uint32_t mtu;              /* bytes */
	int numa;                  /* -1: unknown */
	bool default_route;        /* the host's first default route leaves here */
};

struct nezha_interface_address {
	int index;                 /* of the interface */
	struct in_addr address;    /* network byte order */
	uint8_t prefix;            /* 0..32 */
};

/* What nezha_nic_list gives, for a host as described.  Returns how many of `nics` (room for `max`) were
 * filled; where that is too little, those without an address are left out first, and those that are no
 * rails next. */
size_t nezha_nic_classify(const struct nezha_interface *interfaces, size_t interface_count,
                          const struct nezha_interface_address *addresses, size_t address_count,
                          struct nezha_nic *nics, size_t max);

#endif
