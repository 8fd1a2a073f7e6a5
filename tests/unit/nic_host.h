/* SPDX-License-Identifier: BSD-3-Clause
 * Made-up hosts for tests of the NIC selector. */
#ifndef NEZHA_TESTS_NIC_HOST_H
#define NEZHA_TESTS_NIC_HOST_H

#include "tests/unit/unit.h"

#include "rails/nic_class.h"

#define HOST_MOST 32
#define HOST_ON (IFF_UP | IFF_RUNNING)

/* A host under construction, and what the selector makes of it. */
struct host {
	struct nezha_interface interfaces[HOST_MOST];
	struct nezha_interface_address addresses[HOST_MOST];
	struct nezha_nic nics[2 * HOST_MOST];
	struct nezha_verbs_port ports[4];
	size_t interface_count, address_count, nic_count, port_count;
};

/* An Ethernet interface that is up, without an address; `speed` in Mbit/s.  What is returned is the host's. */
struct nezha_interface *host_device(struct host *host, const char *name, const char *kind, uint32_t speed);

void host_address(struct host *host, const struct nezha_interface *interface, const char *text, unsigned prefix);

/* An interface with one address of a /24. */
struct nezha_interface *host_nic(struct host *host, const char *name, const char *kind, uint32_t speed, const char *text);

void host_loopback(struct host *host);

/* The host is complete: fills its nics. */
void host_classify(struct host *host);

/* A whole host: lo, the rails e0 and e1, em, one without an address and one that is down. */
void host_of_lab(struct host *host);

/* The rails that `spec`, a value of NEZHA_RAILS, names on a host. */
struct host_rails {
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	size_t count;
	char *notes;                     /* the caller frees them */
};

/* Fails the test if `spec` is refused. */
void host_choose(const struct host *host, const char *spec, struct host_rails *out);

#endif
