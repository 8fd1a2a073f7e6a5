/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "rails/nic_kernel.h"
#include "tuning/status.h"

int nezha_nic_list(struct nezha_nic *nics, size_t max, size_t *count)
{
	struct nezha_interface *interfaces;
	struct nezha_interface_address *addresses;
	size_t interface_count, address_count;
	int status = nezha_kernel_interfaces(&interfaces, &interface_count, &addresses, &address_count);

	if (status != NEZHA_OK)
		return status;
	*count = nezha_nic_classify(interfaces, interface_count, addresses, address_count, nics, max);
	free(interfaces);
	free(addresses);
	return NEZHA_OK;
}
