/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/nic_spec.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/nic.h"
#include "tuning/status.h"
#include "tuning/text.h"

#define ALLOWED \
	"allowed is auto, or a list of tcp:DEVICE, tcp:SUBNET/BITS, verbs:DEVICE[:PORT] and verbs:SUBNET/BITS separated by " \
	"commas; with either up to 4 of ina:ADDRESS[:PORT][,fixed], one of which may be sharp[:DEVICE[:PORT]] instead"
#define DEVICE_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
#define ENTRY_MAX 64           /* bytes of an entry; the longest right one is tcp:255.255.255.255/31 */

/* The only place that makes messages about the spec.  Always fails. */
static int refuse(char **error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(char **error, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return NEZHA_ERR_NOMEM;
	nezha_text_clean(text, (size_t)len);
	*error = text;
	return NEZHA_ERR_INVALID;
}

/* "16" with nothing before or behind it; -1 for anything else. */
static int parse_bits(const char *text)
{
	int bits = 0;

	if (!*text || strlen(text) > 2)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		bits = bits * 10 + (*text - '0');
	}
	return bits;
}

static const char *kind_name(enum nezha_rail_kind kind)
{
	return kind == NEZHA_RAIL_VERBS ? "verbs" : "tcp";
}

static int parse_subnet(const char *entry, const char *where, enum nezha_rail_kind kind, struct nezha_rail_entry *out,
                        char **error)
{
	char address[ENTRY_MAX + 1], right[INET_ADDRSTRLEN];
	const char *slash = strchr(where, '/'), *name = kind_name(kind);
	int bits = parse_bits(slash + 1);
	struct in_addr subnet, masked;

	memcpy(address, where, (size_t)(slash - where));
	address[slash - where] = '\0';
	if (strchr(address, ':'))
		return refuse(error, "NEZHA_RAILS: \"%s\": subnets are IPv4, such as %s:10.1.0.0/16", entry, name);
	if (inet_pton(AF_INET, address, &subnet) != 1)
		return refuse(error,
		              "NEZHA_RAILS: \"%s\": \"%s\" is no IPv4 address; a subnet is such as "
		              "%s:10.1.0.0/16",
		              entry, address, name);
	if (bits < 1 || bits > 31)
		return refuse(error,
		              "NEZHA_RAILS: \"%s\": \"%s\" is no length of a subnet; allowed are 1 to 31, as "
		              "in %s:10.1.0.0/16",
		              entry, slash + 1, name);
	masked.s_addr = subnet.s_addr & htonl(UINT32_MAX << (32 - bits));
	if (masked.s_addr != subnet.s_addr)
		return refuse(error,
		              "NEZHA_RAILS: \"%s\" has bits set behind the first %d; the subnet is %s:%s/%d",
		              entry, bits, name, inet_ntop(AF_INET, &masked, right, sizeof right), bits);
	*out = (struct nezha_rail_entry){ .kind = kind, .subnet = subnet, .prefix = (uint8_t)bits };
	return NEZHA_OK;
}

/* The kernel refuses blanks in a device's name; a colon is for alias labels. */
static bool has_odd_character(const char *device)
{
	for (; *device; device++)
		if (nezha_is_control(*device) || *device == ' ' || *device == ':')
			return true;
	return false;
}

static int parse_device(const char *entry, const char *where, enum nezha_rail_kind kind, struct nezha_rail_entry *out,
                        char **error)
{
	size_t len = strlen(where), most = kind == NEZHA_RAIL_TCP ? IF_NAMESIZE : NEZHA_VERBS_NAME;
	struct in_addr address;

	if (inet_pton(AF_INET, where, &address) == 1)
		return refuse(error,
		              "NEZHA_RAILS: \"%s\" is an address; a subnet needs its length, as in "
		              "%s:10.1.0.0/16",
		              entry, kind_name(kind));
	if (len == 0)
		return refuse(error, "NEZHA_RAILS: \"%s\" names no device; " ALLOWED, entry);
	if (len >= most || has_odd_character(where))
		return refuse(error,
		              "NEZHA_RAILS: \"%s\": \"%s\" cannot be a device (1 to %d characters, without "
		              "blank and colon); " ALLOWED,
		              entry, where, (int)most - 1);
	*out = (struct nezha_rail_entry){ .kind = kind };
	memcpy(out->device, where, len);
	return NEZHA_OK;
}

/* "mlx5_0" or "mlx5_0:1" */
static int parse_port(const char *entry, const char *where, struct nezha_rail_entry *out, char **error)
{
	const char *colon = strchr(where, ':');
	char device[ENTRY_MAX + 1];
	char *end = NULL;
	long port = 0;
	int status;

	snprintf(device, sizeof device, "%.*s", (int)(colon ? colon - where : ENTRY_MAX), where);
	if (colon && colon[1] >= '1' && colon[1] <= '9')
		port = strtol(colon + 1, &end, 10);
	if (colon && (!end || *end || port > 254))
		return refuse(error, "NEZHA_RAILS: \"%s\": \"%s\" is no port of a device; allowed are 1 to 254, as in "
		              "verbs:mlx5_0:1", entry, colon + 1);
	status = parse_device(entry, device, NEZHA_RAIL_VERBS, out, error);
	if (status == NEZHA_OK)
		out->port = (uint8_t)port;
	return status;
}

static int parse_aggregator(const char *entry, const char *where, struct nezha_rail_entry *out, char **error)
{
	struct nezha_ina_address address;
	const char *wrong;

	if (nezha_ina_address_parse(where, &address, &wrong) != NEZHA_OK)
		return refuse(error, "NEZHA_RAILS: \"%s\" %s", entry, wrong);
	*out = (struct nezha_rail_entry){ .aggregator = address };
	return NEZHA_OK;
}

static bool is_sharp(const char *entry)
{
	return strncmp(entry, "sharp", 5) == 0 && (!entry[5] || entry[5] == ':' || entry[5] == ',');
}

/* DEVICE or DEVICE:PORT as the library wants it, or nothing. */
static int parse_sharp(const char *entry, const char *where, struct nezha_rail_entry *out, char **error)
{
	const char *colon = strchr(where, ':');
	size_t name = colon ? (size_t)(colon - where) : strlen(where);
	int port = colon ? parse_bits(colon + 1) : 1;

	if (!name || strlen(where) + 2 >= NEZHA_SHARP_DEVICE || strspn(where, DEVICE_CHARACTERS) < name || port < 1)
		return refuse(error, "NEZHA_RAILS: \"%s\" names no port of an InfiniBand device; allowed is "
		              "sharp[:DEVICE[:PORT]], such as sharp:mlx5_0:1", entry);
	*out = (struct nezha_rail_entry){ .sharp = true };
	memcpy(out->sharp_port, where, strlen(where));
	if (!colon)
		memcpy(out->sharp_port + name, ":1", 2);
	return NEZHA_OK;
}

static int parse_entry(const char *entry, struct nezha_rail_entry *out, char **error)
{
	const char *colon = strchr(entry, ':');
	size_t kind = colon ? (size_t)(colon - entry) : strlen(entry);

	if (!*entry)
		return refuse(error, "NEZHA_RAILS: an entry is empty; " ALLOWED);
	if (strcmp(entry, "auto") == 0)
		return refuse(error, "NEZHA_RAILS: \"auto\" stands alone, but for ina:ADDRESS and sharp; " ALLOWED);
	if (!colon && strcmp(entry, "sharp") == 0) {
		*out = (struct nezha_rail_entry){ .sharp = true };
		return NEZHA_OK;
	}
	if (is_sharp(entry))
		return parse_sharp(entry, colon + 1, out, error);
	if (!colon && strcmp(entry, "ina") == 0)
		return refuse(error, "NEZHA_RAILS: \"ina\" lacks the address of the aggregator; " ALLOWED);
	if (!colon)
		return refuse(error,
		              "NEZHA_RAILS: \"%s\" lacks the kind of the rail: did you mean tcp:%s? " ALLOWED,
		              entry, entry);
	if (kind == 3 && memcmp(entry, "ina", 3) == 0)
		return parse_aggregator(entry, colon + 1, out, error);
	if (kind == 5 && memcmp(entry, "verbs", 5) == 0)
		return strchr(colon, '/') ? parse_subnet(entry, colon + 1, NEZHA_RAIL_VERBS, out, error) :
		                            parse_port(entry, colon + 1, out, error);
	if (kind != 3 || memcmp(entry, "tcp", 3) != 0)
		return refuse(error, "NEZHA_RAILS: \"%s\": \"%.*s\" is no kind of rail; " ALLOWED, entry,
		              (int)kind, entry);
	return strchr(colon, '/') ? parse_subnet(entry, colon + 1, NEZHA_RAIL_TCP, out, error) :
	                            parse_device(entry, colon + 1, NEZHA_RAIL_TCP, out, error);
}

bool nezha_rail_entry_reduces(const struct nezha_rail_entry *entry)
{
	return entry->aggregator.port || entry->sharp;
}

/* Entry n, if it is a rail that reduces by itself: another one than those before it, and not one too many. */
static int check_reducing(const char *entry, const struct nezha_rail_entry *entries, size_t n, char **error)
{
	const struct nezha_ina_address *last = &entries[n].aggregator;
	int count = 0;

	for (size_t i = 0; nezha_rail_entry_reduces(&entries[n]) && i < n; i++) {
		const struct nezha_ina_address *other = &entries[i].aggregator;

		if (last->port && other->port == last->port && other->address.s_addr == last->address.s_addr)
			return refuse(error, "NEZHA_RAILS: \"%s\" names an aggregator a second time; " ALLOWED, entry);
		if (entries[n].sharp && entries[i].sharp)
			return refuse(error, "NEZHA_RAILS: \"%s\" names sharp a second time; " ALLOWED, entry);
		count += nezha_rail_entry_reduces(&entries[i]);
	}
	if (count == NEZHA_INA_MAX)
		return refuse(error, "NEZHA_RAILS: \"%s\" is one aggregator too many; " ALLOWED, entry);
	return NEZHA_OK;
}

static bool is_fixed(const char *entry)
{
	return strncmp(entry, "fixed", 5) == 0 && (!entry[5] || entry[5] == ',');
}

/* Whether all entries are of rails that reduce by themselves. */
static bool only_reducing(const char *spec)
{
	for (;; spec++) {
		if (strncmp(spec, "ina:", 4) != 0 && !is_sharp(spec) && !is_fixed(spec))
			return false;
		spec += strcspn(spec, ",");
		if (!*spec)
			return true;
	}
}

/* "fixed" behind entry n - 1. */
static int parse_fixed(struct nezha_rail_entry *entries, size_t n, char **error)
{
	if (!n || !entries[n - 1].aggregator.port || entries[n - 1].aggregator.fixed)
		return refuse(error, "NEZHA_RAILS: \"fixed\" stands behind ina:ADDRESS, once; " ALLOWED);
	entries[n - 1].aggregator.fixed = true;
	return NEZHA_OK;
}

static int take_entry(const char *entry, struct nezha_rail_entry *entries, size_t *n, char **error)
{
	int status;

	if (is_fixed(entry))
		return parse_fixed(entries, *n, error);
	if (*n == NEZHA_RAIL_ENTRIES_MAX)
		return refuse(error, "NEZHA_RAILS: \"%s\" is one entry too many: allowed are %d", entry, NEZHA_RAIL_ENTRIES_MAX);
	status = parse_entry(entry, &entries[*n], error);
	if (status == NEZHA_OK)
		status = check_reducing(entry, entries, *n, error);
	*n += status == NEZHA_OK;
	return status;
}

int nezha_rail_spec_parse(const char *spec, struct nezha_rail_entry *entries, size_t *count, char **error)
{
	char entry[ENTRY_MAX + 1];
	size_t n = 0;

	if (strcmp(spec, "auto") == 0) {
		*count = 0;
		return NEZHA_OK;
	}
	if (strncmp(spec, "auto,", 5) == 0 && only_reducing(spec + 5))
		spec += 5;
	for (;; spec++) {
		size_t len = strcspn(spec, ",");
		int status;

		if (len > ENTRY_MAX)
			return refuse(error, "NEZHA_RAILS: \"%.*s...\" is too long for a rail; " ALLOWED,
			              ENTRY_MAX, spec);
		memcpy(entry, spec, len);
		entry[len] = '\0';
		status = take_entry(entry, entries, &n, error);
		if (status != NEZHA_OK)
			return status;
		spec += len;
		if (!*spec)
			break;
	}
	*count = n;
	return NEZHA_OK;
}

bool nezha_nic_names_verbs(const char *spec)
{
	struct nezha_rail_entry entries[NEZHA_RAIL_ENTRIES_MAX];
	size_t count;
	char *error = NULL;

	if (nezha_rail_spec_parse(spec, entries, &count, &error) != NEZHA_OK)
		count = 0;
	free(error);
	for (size_t i = 0; i < count; i++)
		if (!nezha_rail_entry_reduces(&entries[i]) && entries[i].kind == NEZHA_RAIL_VERBS)
			return true;
	return false;
}

uint32_t nezha_nic_aggregators(const char *spec, struct nezha_ina_address out[NEZHA_INA_MAX])
{
	struct nezha_rail_entry entries[NEZHA_RAIL_ENTRIES_MAX];
	uint32_t found = 0;
	size_t count;
	char *error = NULL;

	if (nezha_rail_spec_parse(spec, entries, &count, &error) != NEZHA_OK) {
		free(error);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		if (entries[i].aggregator.port)
			out[found++] = entries[i].aggregator;
	return found;
}

bool nezha_nic_sharp(const char *spec, char device[NEZHA_SHARP_DEVICE])
{
	struct nezha_rail_entry entries[NEZHA_RAIL_ENTRIES_MAX];
	size_t count;
	char *error = NULL;

	if (nezha_rail_spec_parse(spec, entries, &count, &error) != NEZHA_OK) {
		free(error);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		if (entries[i].sharp) {
			memcpy(device, entries[i].sharp_port, NEZHA_SHARP_DEVICE);
			return true;
		}
	return false;
}

int nezha_nic_spec_check(const char *spec, char **error)
{
	struct nezha_rail_entry entries[NEZHA_RAIL_ENTRIES_MAX];
	size_t count;

	return nezha_rail_spec_parse(spec, entries, &count, error);
}
