/* SPDX-License-Identifier: BSD-3-Clause
 * What the kernel tells about the interfaces of this process's network namespace. */
#ifndef NEZHA_RAILS_NIC_KERNEL_H
#define NEZHA_RAILS_NIC_KERNEL_H

#include "rails/nic_class.h"

/* All interfaces and all IPv4 addresses (malloc'd, the caller frees both).  Asks rtnetlink, with a time
 * limit, and not sysfs, which in a container may show another namespace's devices; /sys is only asked for
 * NUMA nodes, of devices that it shows with the same index and hardware address.  NEZHA_ERR_SYSTEM
 * (logged) or NEZHA_ERR_NOMEM. */
int nezha_kernel_interfaces(struct nezha_interface **interfaces, size_t *interface_count,
                            struct nezha_interface_address **addresses, size_t *address_count);

#endif
