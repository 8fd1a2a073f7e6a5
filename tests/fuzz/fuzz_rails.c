/* SPDX-License-Identifier: BSD-3-Clause
 * Any text as NEZHA_RAILS on a made-up host: refused with one clean line, or rails of that host, each
 * once, and aggregators, each once. */
#include <arpa/inet.h>
#include <string.h>

#include "rails/nic.h"
#include "tests/fuzz/fuzz.h"
#include "tuning/status.h"
#include "tuning/text.h"

static void check_error(int status, const char *error)
{
	fuzz_assert(status == NEZHA_ERR_INVALID && error && *error);
	for (const char *c = error; *c; c++)
		fuzz_assert(!nezha_is_control(*c));
}

static void check_aggregators(const char *spec, bool good)
{
	struct nezha_ina_address found[NEZHA_INA_MAX];
	uint32_t count = nezha_nic_aggregators(spec, found);

	fuzz_assert(count <= (good ? NEZHA_INA_MAX : 0));
	for (uint32_t i = 0; i < count; i++) {
		fuzz_assert(found[i].port);
		for (uint32_t k = 0; k < i; k++)
			fuzz_assert(found[i].port != found[k].port || found[i].address.s_addr != found[k].address.s_addr);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nezha_nic nics[] = {
		{ .device = "e0", .address.s_addr = htonl(0x0a4d0001), .prefix = 24, .carrier = true },
		{ .device = "e0",
		  .address.s_addr = htonl(0x0a4d0002),
		  .prefix = 24,
		  .carrier = true,
		  .why_not = "again" },
		{ .device = "e1", .address.s_addr = htonl(0x0a4d0101), .prefix = 24, .carrier = true },
		{ .device = "e2", .address.s_addr = htonl(0x0a4d0201), .prefix = 24, .why_not = "down" },
		{ .device = "lo",
		  .address.s_addr = htonl(0x7f000001),
		  .prefix = 8,
		  .carrier = true,
		  .why_not = "loopback" },
		{ .device = "none", .why_not = "no IPv4 address" },
	};
	const struct nezha_verbs_port ports[] = {
		{ .device = "mlx5_0", .port = 1, .address.s_addr = htonl(0x0a4d0001) },
		{ .device = "mlx5_0", .port = 2, .why_not = "the port is not active" },
		{ .device = "rxe0", .port = 1, .address.s_addr = htonl(0x0a4d0901) },
	};
	const struct nezha_nic_set set = { nics, sizeof nics / sizeof *nics, ports, sizeof ports / sizeof *ports };
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	size_t count;
	char *spec = malloc(size + 1), *notes = NULL, *error = NULL;
	int status;

	fuzz_assert(spec);
	memcpy(spec, data, size);
	spec[size] = '\0';
	status = nezha_nic_spec_check(spec, &error);
	check_aggregators(spec, status == NEZHA_OK);
	if (status != NEZHA_OK) {
		check_error(NEZHA_ERR_INVALID, error);
		free(error);
		error = NULL;
		status = nezha_nic_select(spec, &set, rails, &count, &notes, &error);
		check_error(status, error);
	} else if ((status = nezha_nic_select(spec, &set, rails, &count, &notes, &error))) {
		check_error(status, error);     /* a device that is not there */
	} else {
		fuzz_assert(count <= NEZHA_RAILS_MAX && notes);
		for (size_t i = 0; i < count; i++) {
			fuzz_assert(rails[i].nic.carrier && !rails[i].port.why_not);
			for (size_t j = 0; j < i; j++)
				fuzz_assert(rails[i].kind != rails[j].kind || strcmp(nezha_rail_name(&rails[i]),
				                                                     nezha_rail_name(&rails[j])));
		}
	}
	free(notes);
	free(error);
	free(spec);
	return 0;
}
