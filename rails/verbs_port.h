/* SPDX-License-Identifier: BSD-3-Clause
 * The ports of this host's RDMA devices, as the kernel's sysfs tells them: InfiniBand and RoCE.  Needs no library, so
 * that one knows what is there, and why it is not used, also where libibverbs is missing. */
#ifndef NEZHA_RAILS_VERBS_PORT_H
#define NEZHA_RAILS_VERBS_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_VERBS_NAME 64             /* bytes of a device's name */
#define NEZHA_VERBS_SYSFS "/sys/class/infiniband"

enum nezha_verbs_link { NEZHA_VERBS_ETHERNET, NEZHA_VERBS_INFINIBAND, NEZHA_VERBS_OTHER };

struct nezha_verbs_port {
	char device[NEZHA_VERBS_NAME];
	uint8_t port;                   /* from 1 */
	bool active;                    /* its state lets data through */
	char state[16];                 /* the kernel's word: "ACTIVE", "DOWN", ... */
	enum nezha_verbs_link link;
	uint32_t speed;                 /* Mbit/s, 0: unknown */
	int numa;                       /* NUMA node, -1: unknown or none */
	int gid;                        /* index of the GID that a connection would use, -1: none */
	char gid_type[16];              /* the kernel's word: "RoCE v2", "IB/RoCE v1"; "": in a container it does not tell */
	unsigned char gid_bytes[16];
	struct in_addr address;         /* the IPv4 address that belongs to it, network byte order; 0: none */
	const char *why_not;            /* NULL: can be a rail; else why not, static text of <= 38 bytes */
};

/* The ports below `sysfs` (NEZHA_VERBS_SYSFS) in order of device name, then port; up to `max`.  Returns how many there
 * are in `ports`; 0 if there is no such folder.
 *
 * The GID of an Ethernet port is its first one of RoCE v2 that stands for an IPv4 address (::ffff:a.b.c.d); of an
 * InfiniBand port it is the first one, and its address is that of the port's network interface (IPoIB).  The address is
 * where the connection is made; a port without one cannot be a rail. */
size_t nezha_verbs_ports(const char *sysfs, struct nezha_verbs_port *ports, size_t max);

#endif
