/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rails/crc32c.h"
#include "rails/fingerprint.h"
#include "rails/nic.h"
#include "rails/verbs.h"
#include "tuning/info.h"
#include "tuning/json_text.h"
#include "tuning/settings.h"
#include "tuning/status.h"

#define NICS_MAX 1024
#define PORTS_MAX 64

struct host {
	struct nezha_nic *nics;    /* NICS_MAX */
	size_t nic_count;
	struct nezha_verbs_port ports[PORTS_MAX];
	size_t port_count;
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	size_t rail_count;
};

/* ---- rails and other interfaces ---- */

static void print_address(char *text, size_t len, struct in_addr address, unsigned prefix)
{
	char dotted[INET_ADDRSTRLEN];

	if (address.s_addr)
		snprintf(text, len, "%s/%u", inet_ntop(AF_INET, &address, dotted, sizeof dotted), prefix);
	else
		snprintf(text, len, "-");
}

static bool is_rail(const struct host *host, const struct nezha_nic *nic)
{
	for (size_t r = 0; r < host->rail_count; r++)
		if (host->rails[r].kind == NEZHA_RAIL_TCP && strcmp(host->rails[r].nic.device, nic->device) == 0 &&
		    host->rails[r].nic.address.s_addr == nic->address.s_addr)
			return true;
	return false;
}

/* With rails named by the user, "usable" is not why something is none. */
static const char *why_no_rail(const struct nezha_nic *nic, bool automatic)
{
	if (nic->why_not)
		return nic->why_not;
	return automatic ? "more rails than can be used" : "not named by NEZHA_RAILS";
}

static json_t *describe(const struct nezha_nic *nic, const char *why_not)
{
	char address[32];
	json_t *object;

	print_address(address, sizeof address, nic->address, nic->prefix);
	object = json_pack("{s:s, s:s?, s:I, s:I, s:b}", "device", nic->device, "address",
	                   nic->address.s_addr ? address : NULL, "speed_mbit", (json_int_t)nic->speed, "mtu",
	                   (json_int_t)nic->mtu, "carrier", (int)nic->carrier);
	json_object_set_new(object, "numa", nic->numa < 0 ? json_null() : json_integer(nic->numa));
	if (why_not)
		json_object_set_new(object, "why_not", json_string(why_not));
	return object;
}

static void add_rails(const struct host *host, bool automatic, json_t *json)
{
	json_t *rails = json_array(), *others = json_array();

	for (size_t r = 0; r < host->rail_count; r++)
		json_array_append_new(rails, host->rails[r].kind == NEZHA_RAIL_VERBS ?
		                             nezha_info_describe_port(&host->rails[r].port, NULL) :
		                             describe(&host->rails[r].nic, NULL));
	for (size_t i = 0; i < host->nic_count; i++)
		if (!is_rail(host, &host->nics[i]))
			json_array_append_new(
				others, describe(&host->nics[i], why_no_rail(&host->nics[i], automatic)));
	json_object_set_new(json, "rails", rails);
	json_object_set_new(json, "other_interfaces", others);
	nezha_info_ports(host->ports, host->port_count, host->rails, host->rail_count, json);
}

static void print_rails(const struct host *host, bool automatic)
{
	char address[32], speed[24], node[16];

	printf("Rails of this host%s\n",
	       host->rail_count ? "" : ": none, so all calls go to the MPI library");
	if (host->rail_count)
		printf("  %-15s %-18s %12s %6s %10s\n", "device", "address", "speed", "MTU", "NUMA node");
	for (size_t r = 0; r < host->rail_count; r++) {
		const struct nezha_nic *nic = &host->rails[r].nic;

		if (host->rails[r].kind == NEZHA_RAIL_VERBS) {
			nezha_info_print_port(&host->rails[r].port);
			continue;
		}
		print_address(address, sizeof address, nic->address, nic->prefix);
		nezha_info_speed(speed, sizeof speed, nic->speed);
		snprintf(node, sizeof node, nic->numa < 0 ? "-" : "%d", nic->numa);
		printf("  %-15s %-18s %12s %6u %10s\n", nic->device, address, speed, nic->mtu, node);
	}
	if (host->nic_count)
		printf("Other interfaces\n");
	for (size_t i = 0; i < host->nic_count; i++) {
		const struct nezha_nic *nic = &host->nics[i];

		if (is_rail(host, nic))
			continue;
		print_address(address, sizeof address, nic->address, nic->prefix);
		printf("  %-15s %-18s %s\n", nic->device, address, why_no_rail(nic, automatic));
	}
	nezha_info_ports(host->ports, host->port_count, host->rails, host->rail_count, NULL);
}

static bool show_rails(struct host *host, const char *spec, json_t *json)
{
	bool automatic = strcmp(spec, "auto") == 0;
	char *notes = NULL, *error = NULL;
	int status;
	bool good;

	if (nezha_nic_list(host->nics, NICS_MAX, &host->nic_count) != NEZHA_OK) {
		nezha_info_problem(json, "the network interfaces of this host are not known");
		return false;
	}
	nezha_nic_locate(host->nics, host->nic_count);
	host->port_count = nezha_verbs_ports(NEZHA_VERBS_SYSFS, host->ports, PORTS_MAX);
	status = nezha_nic_select(spec, &(struct nezha_nic_set){ host->nics, host->nic_count, host->ports, host->port_count },
	                          host->rails, &host->rail_count, &notes,
	                          &error);
	good = status == NEZHA_OK;
	if (!good)
		nezha_info_problem(json, "%s", error ? error : "no memory");
	nezha_info_problems(json, notes);
	if (json)
		add_rails(host, automatic && good, json);
	else
		print_rails(host, automatic && good);
	free(notes);
	free(error);
	return good;
}

/* ---- settings ---- */

/* Whether a problem of nezha_settings_read is about this setting: its line then begins with "NAME=". */
static bool is_malformed(const char *problems, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = problems; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, name, len) == 0 && line[len] == '=')
			return true;
	return false;
}

/* The value in force out of what nezha_settings_pack gives, in `value`: seconds without the zeros at their
 * end. */
static void value_in_force(const char *packed, const char *name, char *value, size_t len)
{
	size_t name_len = strlen(name);

	snprintf(value, len, "%s", "");
	for (const char *line = packed; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, name, name_len) != 0 || line[name_len] != '=')
			continue;
		snprintf(value, len, "%.*s", (int)strcspn(line + name_len + 1, "\n"), line + name_len + 1);
		break;
	}
	if (strcmp(name, "NEZHA_OPEN_TIMEOUT") == 0) {
		size_t end = strlen(value);

		while (end > 1 && value[end - 1] == '0' && strchr(value, '.'))
			value[--end] = '\0';
		if (end && value[end - 1] == '.')
			value[end - 1] = '\0';
	}
}

static void show_settings(const char *packed, const char *problems, json_t *json)
{
	json_t *list = json ? json_object() : NULL;
	const struct nezha_setting_doc *doc;

	if (!json)
		printf("Settings\n");
	for (size_t i = 0; (doc = nezha_setting_doc(i)); i++) {
		const char *given = getenv(doc->name);
		bool in_force = given && *given && !is_malformed(problems, doc->name);
		const char *source = in_force ? "environment" : "default";
		char value[4200];

		value_in_force(packed, doc->name, value, sizeof value);
		if (json)
			json_object_set_new(list, doc->name,
			                    json_pack("{s:o, s:s}", "value", nezha_json_text(value), "source", source));
		else
			printf("  %-18s %-11s  %s\n", doc->name, source, *value ? value : "(none)");
	}
	if (json)
		json_object_set_new(json, "settings", list);
}

/* ---- what is built in ---- */

static const char *sanitizers(void)
{
	const char *flag = strstr(NEZHA_SANITIZE_CFLAGS, "-fsanitize=");
	static char names[64];

	if (!flag)
		return "none";
	flag += strlen("-fsanitize=");
	snprintf(names, sizeof names, "%.*s", (int)strcspn(flag, " "), flag);
	return names;
}

static void show_built_in(json_t *json)
{
	static const struct { const char *what, *key, *file; } parts[] = {
		{ "preload", "preload", NEZHA_LIBDIR "/libnezha_pmpi.so" },
		{ "for MPICH", "mpich", NEZHA_LIBDIR "/libnezha_pmpi_mpich.so" },
		{ "for Open MPI", "openmpi", NEZHA_LIBDIR "/libnezha_pmpi_openmpi.so" },
	};
	json_t *object = json ? json_object() : NULL;

	if (!json)
		printf("Built in\n  %-18s %s\n", "folder", NEZHA_LIBDIR);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		bool there = access(parts[i].file, R_OK) == 0;

		if (json)
			json_object_set_new(object, parts[i].key,
			                    there ? json_string(parts[i].file) : json_null());
		else
			printf("  %-18s %s\n", parts[i].what,
			       there ? strrchr(parts[i].file, '/') + 1 : "not installed");
	}
	if (!json) {
		printf("  %-18s %s\n  %-18s by %s\n  %-18s %s\n", "kinds of rails",
		       nezha_verbs_built() ? "tcp, verbs, ina, sharp" : "tcp, ina, sharp", "CRC32C", nezha_crc32c_by(),
		       "sanitizers", sanitizers());
		return;
	}
	json_object_set_new(object, "rails", nezha_verbs_built() ? json_pack("[s, s, s, s]", "tcp", "verbs", "ina", "sharp") :
	                                                           json_pack("[s, s, s]", "tcp", "ina", "sharp"));
	json_object_set_new(object, "crc32c", json_string(nezha_crc32c_by()));
	json_object_set_new(object, "sanitizers", json_string(sanitizers()));
	json_object_set_new(json, "built_in", object);
}

bool nezha_info_host(json_t *json)
{
	struct host host = { .nics = calloc(NICS_MAX, sizeof *host.nics) };
	struct nezha_settings settings;
	char *problems = NULL, *packed = NULL;
	struct nezha_fingerprint here;
	int errors;
	bool good = false;

	if (!host.nics || nezha_settings_read(environ, &settings, &problems, &errors) != NEZHA_OK) {
		nezha_info_problem(json, "no memory");
		free(host.nics);
		return false;
	}
	packed = nezha_settings_pack(&settings);
	if (packed) {
		nezha_info_problems(json, problems);
		good = show_rails(&host, settings.rails, json) && errors == 0;
		nezha_info_aggregators(settings.rails, json);
		nezha_fingerprint_host(host.rails, host.rail_count, &here);
		good &= nezha_info_settings_table(&settings, &here, json);
		show_settings(packed, problems, json);
		show_built_in(json);
	}
	free(packed);
	free(problems);
	nezha_settings_free(&settings);
	free(host.nics);
	return good;
}
