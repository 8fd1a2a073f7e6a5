/* SPDX-License-Identifier: BSD-3-Clause */
#include <hwloc.h>
#include <string.h>

#include "rails/nic.h"

/* The NUMA node nearest to a network device; -1: hwloc does not know the device. */
static int node_of(hwloc_topology_t topology, const char *device)
{
	hwloc_obj_t io = NULL;

	while ((io = hwloc_get_next_osdev(topology, io))) {
		hwloc_obj_t near;
		int node;

		if ((io->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK &&
		     io->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS) ||
		    !io->name || strcmp(io->name, device))
			continue;
		near = hwloc_get_non_io_ancestor_obj(topology, io);
		node = near && near->nodeset ? hwloc_bitmap_first(near->nodeset) : -1;
		/* Attached to the whole of a machine with several nodes: that is no locality. */
		return node >= 0 && hwloc_bitmap_weight(near->nodeset) == 1 ? node : -1;
	}
	return -1;
}

/* NICs are found in sysfs: keep hwloc from starting GPU drivers, and from libpciaccess, which leaks. */
static void leave_drivers_alone(hwloc_topology_t topology)
{
#if HWLOC_API_VERSION >= 0x00020100
	static const char *const components[] = {
		"pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"
	};

	for (size_t i = 0; i < sizeof components / sizeof *components; i++)
		hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
		                              components[i]);
#else
	(void)topology;
#endif
}

void nezha_nic_locate(struct nezha_nic *nics, size_t count)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology))
		return;
	leave_drivers_alone(topology);
	if (!hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) &&
	    !hwloc_topology_load(topology))
		for (size_t i = 0; i < count; i++)
			if (nics[i].physical && nics[i].numa < 0)
				nics[i].numa = node_of(topology, nics[i].device);
	hwloc_topology_destroy(topology);
}
