/* SPDX-License-Identifier: BSD-3-Clause
 * The syntax of NEZHA_RAILS: "auto", or entries separated by commas. */
#ifndef NEZHA_RAILS_NIC_SPEC_H
#define NEZHA_RAILS_NIC_SPEC_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/ina_address.h"
#include "rails/nic.h"

#define NEZHA_RAIL_ENTRIES_MAX 32

/* One entry: a device, or (device empty) a subnet, or an aggregator, or SHARP. */
struct nezha_rail_entry {
	bool sharp;
	char sharp_port[NEZHA_SHARP_DEVICE];   /* "mlx5_0:1", or "" */
	struct nezha_ina_address aggregator;   /* port 0: it is none */
	enum nezha_rail_kind kind;
	char device[NEZHA_VERBS_NAME];         /* TCP: shorter than IF_NAMESIZE */
	uint8_t port;              /* VERBS: of the device, 0: all */
	struct in_addr subnet;     /* network byte order, no bit set behind the prefix */
	uint8_t prefix;            /* 1..31 */
};

/* Parses `spec` into `entries` (room for NEZHA_RAIL_ENTRIES_MAX); none but those that reduce by themselves, at most
 * NEZHA_INA_MAX, for "auto" (which may be left out before these).
 * NEZHA_ERR_INVALID with one line in *error (malloc'd, the caller frees) that names the entry and what is
 * allowed, or NEZHA_ERR_NOMEM. */
int nezha_rail_spec_parse(const char *spec, struct nezha_rail_entry *entries, size_t *count, char **error);

/* Whether it is an aggregator or SHARP, which are beside other rails. */
bool nezha_rail_entry_reduces(const struct nezha_rail_entry *entry);

#endif
