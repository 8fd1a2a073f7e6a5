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

/* A rail of this process: an interface, and the key by which the ranks find what they have in common. */
struct nezha_rail_nic {
	struct nezha_nic nic;
	uint32_t key_subnet;       /* auto, or named by subnet: the subnet (network byte order) */
	uint8_t key_prefix;        /* its prefix length */
	uint8_t key_entry; /* named by device: position in NEZHA_RAILS + 1 (key_subnet is 0 then); else 0 */
	uint8_t key_ordinal;       /* the how-many-th interface with that same key on this host, from 0 */
};

/* Chooses the rails by `spec`, the text of NEZHA_RAILS ("auto", or "tcp:eth0,tcp:10.1.0.0/16", each also with ",ina:10.1.0.254"), out of
 * `nics`, in the spec's order, duplicates removed, at most NEZHA_RAILS_MAX.  NEZHA_ERR_INVALID with one
 * line in *error (malloc'd, the caller frees) for a malformed spec (always) or a device that does not
 * exist on this host.  A subnet that this host is not in, or a device without an address, is no error:
 * other nodes may have it; it is told in *notes (malloc'd lines, maybe ""). Physical or not does not
 * matter for what was named. */
int nezha_nic_select(const char *spec, const struct nezha_nic *nics, size_t count,
                     struct nezha_rail_nic *rails, size_t *rail_count, char **notes, char **error);

/* How many aggregators the spec names, and which, in its order.  A spec with an error names none. */
uint32_t nezha_nic_aggregators(const char *spec, struct nezha_ina_address out[NEZHA_INA_MAX]);

/* Only the syntax of a spec; for checks where the devices are another host's.  Errors as above. */
int nezha_nic_spec_check(const char *spec, char **error);

#endif
