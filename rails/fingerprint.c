/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/fingerprint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tuning/rail_set.h"
#include "tuning/text.h"

/* What the kernel calls the first processor; "" if it does not tell (not all machines have such a line). */
static void find_model(char *out, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL;
	size_t room = 0;

	*out = '\0';
	while (f && !*out && getline(&line, &room, f) > 0) {
		const char *colon = strchr(line, ':');

		if (!strncmp(line, "model name", 10) && colon)
			snprintf(out, len, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
	}
	free(line);
	if (f)
		fclose(f);
}

static void describe_host(char *out, size_t len)
{
	struct utsname kernel;
	char model[128];

	find_model(model, sizeof model);
	if (uname(&kernel))
		strcpy(kernel.machine, "unknown");
	snprintf(out, len, "%.64s, %ld processors%s%s", kernel.machine, sysconf(_SC_NPROCESSORS_CONF),
	         *model ? ", " : "", model);
	nezha_text_clean(out, strlen(out));
}

/* By subnet, then by all else that the texts tell of a rail: neither the names of a host's interfaces nor the order in which
 * NEZHA_RAILS names them makes another cluster. */
static int compare_rails(const void *left, const void *right)
{
	const struct nezha_nic *a = &((const struct nezha_rail_nic *)left)->nic, *b = &((const struct nezha_rail_nic *)right)->nic;
	uint32_t x = ntohl(nezha_subnet_of(a->address.s_addr, a->prefix).address);
	uint32_t y = ntohl(nezha_subnet_of(b->address.s_addr, b->prefix).address);

	if (x != y)
		return x < y ? -1 : 1;
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (a->speed != b->speed)
		return a->speed < b->speed ? -1 : 1;
	return a->mtu < b->mtu ? -1 : a->mtu > b->mtu;
}

static void describe_rails(const struct nezha_rail_nic *rails, size_t count, struct nezha_fingerprint *out)
{
	struct nezha_rail_set set = { .count = 0 };
	struct nezha_rail_nic sorted[NEZHA_RAIL_SET_MAX];
	size_t listed = count < NEZHA_RAIL_SET_MAX ? count : NEZHA_RAIL_SET_MAX;
	int at = snprintf(out->topology, sizeof out->topology, "%zu rail%s", count, count == 1 ? "" : "s");

	memcpy(sorted, rails, listed * sizeof *sorted);
	qsort(sorted, listed, sizeof *sorted, compare_rails);
	for (size_t r = 0; r < listed; r++) {
		const struct nezha_nic *nic = &sorted[r].nic;
		const char *before = r ? ", " : ": ";

		set.subnet[set.count++] = nezha_subnet_of(nic->address.s_addr, nic->prefix);
		if (nic->speed && (size_t)at < sizeof out->topology)
			at += snprintf(out->topology + at, sizeof out->topology - (size_t)at, "%s%u Mbit/s MTU %u",
			               before, nic->speed, nic->mtu);
		else if ((size_t)at < sizeof out->topology)
			at += snprintf(out->topology + at, sizeof out->topology - (size_t)at, "%sMTU %u", before,
			               nic->mtu);
	}
	nezha_rail_set_print(&set, ',', out->rails, sizeof out->rails);
}

void nezha_fingerprint_host(const struct nezha_rail_nic *rails, size_t count, struct nezha_fingerprint *out)
{
	memset(out, 0, sizeof *out);
	describe_host(out->host, sizeof out->host);
	describe_rails(rails, count, out);
}
