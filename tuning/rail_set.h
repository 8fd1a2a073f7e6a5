/* SPDX-License-Identifier: BSD-3-Clause
 * The rails that a rule of the table is restricted to, named by subnet: a table is for all nodes, and devices may have
 * other names on others. */
#ifndef NEZHA_TUNING_RAIL_SET_H
#define NEZHA_TUNING_RAIL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_RAIL_SET_MAX 8     /* as many as a process may have rails */
#define NEZHA_RAIL_SET_TEXT 192  /* bytes that the text of any set fits into */
#define NEZHA_RAIL_SET_ALLOWED "one to eight different tcp:SUBNET/BITS, such as tcp:10.1.0.0/16"

struct nezha_subnet {
	uint32_t address;      /* network byte order, no bit set behind the prefix */
	uint8_t prefix;        /* 1..31 */
};

struct nezha_rail_set {
	uint32_t count;        /* 0: all rails */
	struct nezha_subnet subnet[NEZHA_RAIL_SET_MAX];
};

/* Reads "tcp:10.1.0.0/16,tcp:10.2.0.0/16", with ',' or '+' between the rails, out of `len` bytes.  NEZHA_ERR_INVALID
 * for anything else
 * (NEZHA_RAIL_SET_ALLOWED tells what is right); *out is then as it was. */
int nezha_rail_set_parse(const char *text, size_t len, struct nezha_rail_set *out);

/* Prints the set with `between` between the rails, "" if it is empty, into buf (NEZHA_RAIL_SET_TEXT bytes suffice). */
void nezha_rail_set_print(const struct nezha_rail_set *set, char between, char *buf, size_t len);

/* Whether the set names a rail whose subnet is `rail`: one of its subnets is that, or contains it. */
bool nezha_rail_set_has(const struct nezha_rail_set *set, const struct nezha_subnet *rail);

/* Whether both list the same subnets in the same order. */
bool nezha_rail_set_equal(const struct nezha_rail_set *a, const struct nezha_rail_set *b);

/* The subnet that an address (network byte order) is in. */
struct nezha_subnet nezha_subnet_of(uint32_t address, uint8_t prefix);

#endif
