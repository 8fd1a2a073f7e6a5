/* SPDX-License-Identifier: BSD-3-Clause
 * The NIC selector: which interfaces of this host are rails, and why the others are not. */
#ifndef NEZHA_RAILS_NIC_H
#define NEZHA_RAILS_NIC_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/ina_address.h"
#include "rails/verbs_port.h"

#define NEZHA_SHARP_DEVICE 24 /* bytes of the name of an InfiniBand device's port */
#define NEZHA_RAILS_MAX 8     /* rails of one process */

/* One IPv4 address of one interface, or an interface that has none. */
struct nezha_nic {
	char device[IF_NAMESIZE];
	struct in_addr address;    /* network byte order; 0: none */
	uint8_t prefix;            /* length of the subnet's prefix, 0..32 */
	uint32_t speed;            /* nominal, Mbit/s; 0: the kernel does not know */
	uint32_t mtu;              /* bytes */
	int numa;                  /* NUMA node, -1: unknown or none (virtual device) */
	bool carrier;              /* up and running */
	bool physical; /* a network adapter, or a bond, VLAN or bridge of some (not veth, docker, tun ...) */
	const char *why_not; /* NULL: usable as a rail by default; else why not, static text of <= 38 bytes */
};

/* All IPv4 addresses of this host's network namespace and the interfaces without one, in order of device
 * name (natural order: eth2 before eth10), then address; fills `nics` up to `max` and sets *count.  Costs
 * a few system calls for each interface.  numa is what the kernel says (sysfs).  nic_class.h tells what
 * why_not is set for. NEZHA_ERR_SYSTEM (logged) or NEZHA_ERR_NOMEM. */
int nezha_nic_list(struct nezha_nic *nics, size_t max, size_t *count);

/* Asks hwloc for the NUMA node of those NICs where it is unknown.  hwloc looks at the whole machine, which
 * takes 10 ms on a small one and over 50 on a large one: for tools, not for a job's start.  What hwloc
 * does not know stays -1. */
void nezha_nic_locate(struct nezha_nic *nics, size_t count);

enum nezha_rail_kind { NEZHA_RAIL_TCP, NEZHA_RAIL_VERBS };

/* A rail of this process: an interface, and the key by which the ranks find what they have in common. */
struct nezha_rail_nic {
	enum nezha_rail_kind kind;
	struct nezha_nic nic;      /* VERBS: the one that has the port's IPv4 address, where connections are made */
	struct nezha_verbs_port port;  /* VERBS: what carries the data */
	uint32_t key_subnet;       /* auto, or named by subnet: the subnet (network byte order) */
	uint8_t key_prefix;        /* its prefix length */
	uint8_t key_entry; /* named by device: position in NEZHA_RAILS + 1 (key_subnet is 0 then); else 0 */
	uint8_t key_ordinal;       /* the how-many-th interface with that same key on this host, from 0 */
};

/* What users know the rail by: its interface, or its RDMA device. */
static inline const char *nezha_rail_name(const struct nezha_rail_nic *rail)
{
	return rail->kind == NEZHA_RAIL_VERBS ? rail->port.device : rail->nic.device;
}

/* What a host has. */
struct nezha_nic_set {
	const struct nezha_nic *nics;
	size_t nic_count;
	const struct nezha_verbs_port *ports;  /* looked at if nezha_nic_names_verbs; may be NULL with no ports */
	size_t port_count;
};

/* Chooses the rails by `spec`, the text of NEZHA_RAILS ("auto", or "tcp:eth0,tcp:10.1.0.0/16,verbs:mlx5_0:1", each also with
 * ",ina:10.1.0.254"), out of `set`, in the spec's order, duplicates removed, at most NEZHA_RAILS_MAX.  NEZHA_ERR_INVALID with one
 * line in *error (malloc'd, the caller frees) for a malformed spec (always) or a device that does not
 * exist on this host.  A subnet that this host is not in, or a device without an address, is no error:
 * other nodes may have it; it is told in *notes (malloc'd lines, maybe ""). Physical or not does not
 * matter for what was named.  RDMA devices are only rails if they are named; a connection of one is made over the
 * interface that has its port's IPv4 address, else (RoCE in a container) over the first usable one. */
int nezha_nic_select(const char *spec, const struct nezha_nic_set *set,
                     struct nezha_rail_nic *rails, size_t *rail_count, char **notes, char **error);

/* How many aggregators the spec names, and which, in its order.  A spec with an error names none. */
uint32_t nezha_nic_aggregators(const char *spec, struct nezha_ina_address out[NEZHA_INA_MAX]);

/* Whether the spec names RDMA devices, so that nezha_verbs_ports is needed.  A spec with an error names none. */
bool nezha_nic_names_verbs(const char *spec);

/* Whether the spec names SHARP, and with which device and port ("mlx5_0:1"; "": none is named). */
bool nezha_nic_sharp(const char *spec, char device[NEZHA_SHARP_DEVICE]);

/* Only the syntax of a spec; for checks where the devices are another host's.  Errors as above. */
int nezha_nic_spec_check(const char *spec, char **error);

#endif
