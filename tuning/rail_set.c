/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/rail_set.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "tuning/status.h"

#define KIND "tcp:"
#define ENTRY_MAX 31     /* bytes of an entry; the longest right one is tcp:255.255.255.254/31 */

static uint32_t mask(uint8_t prefix)
{
	return prefix ? htonl(UINT32_MAX << (32 - prefix)) : 0;
}

struct nezha_subnet nezha_subnet_of(uint32_t address, uint8_t prefix)
{
	return (struct nezha_subnet){ .address = address & mask(prefix), .prefix = prefix };
}

/* 1 to 31; 0 for anything else. */
static uint8_t parse_bits(const char *text)
{
	unsigned bits = 0;

	if (*text == '0' || strlen(text) > 2)
		return 0;
	for (; *text >= '0' && *text <= '9'; text++)
		bits = bits * 10 + (unsigned)(*text - '0');
	return *text || bits > 31 ? 0 : (uint8_t)bits;
}

static bool parse_entry(const char *text, size_t len, struct nezha_subnet *out)
{
	char entry[ENTRY_MAX + 1], *slash;
	struct in_addr address;

	if (len > ENTRY_MAX || len < strlen(KIND) || memcmp(text, KIND, strlen(KIND)))
		return false;
	memcpy(entry, text, len);
	entry[len] = '\0';
	slash = strchr(entry, '/');
	if (!slash || strlen(entry) != len)
		return false;
	*slash = '\0';
	if (inet_pton(AF_INET, entry + strlen(KIND), &address) != 1)
		return false;
	*out = nezha_subnet_of(address.s_addr, parse_bits(slash + 1));
	return out->prefix && out->address == address.s_addr;
}

static bool same(const struct nezha_subnet *a, const struct nezha_subnet *b)
{
	return a->address == b->address && a->prefix == b->prefix;
}

static bool is_listed(const struct nezha_rail_set *set, const struct nezha_subnet *subnet)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (same(&set->subnet[i], subnet))
			return true;
	return false;
}

int nezha_rail_set_parse(const char *text, size_t len, struct nezha_rail_set *out)
{
	struct nezha_rail_set set = { .count = 0 };
	size_t at = 0;

	for (;; at++) {
		size_t begin = at;
		struct nezha_subnet subnet;

		while (at < len && text[at] != ',' && text[at] != '+')
			at++;
		if (set.count == NEZHA_RAIL_SET_MAX || !parse_entry(text + begin, at - begin, &subnet) ||
		    is_listed(&set, &subnet))
			return NEZHA_ERR_INVALID;
		set.subnet[set.count++] = subnet;
		if (at == len)
			break;
	}
	*out = set;
	return NEZHA_OK;
}

void nezha_rail_set_print(const struct nezha_rail_set *set, char between, char *buf, size_t len)
{
	size_t at = 0;

	if (len)
		buf[0] = '\0';
	for (uint32_t i = 0; i < set->count && at < len; i++) {
		struct in_addr address = { .s_addr = set->subnet[i].address };
		char dotted[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &address, dotted, sizeof dotted);
		at += (size_t)snprintf(buf + at, len - at, "%.*s" KIND "%s/%u", i ? 1 : 0, &between, dotted,
		                       set->subnet[i].prefix);
	}
}

bool nezha_rail_set_has(const struct nezha_rail_set *set, const struct nezha_subnet *rail)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (rail->prefix >= set->subnet[i].prefix &&
		    (rail->address & mask(set->subnet[i].prefix)) == set->subnet[i].address)
			return true;
	return false;
}

bool nezha_rail_set_equal(const struct nezha_rail_set *a, const struct nezha_rail_set *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!same(&a->subnet[i], &b->subnet[i]))
			return false;
	return true;
}
