/* SPDX-License-Identifier: BSD-3-Clause
 * The parts of nezha-info.  Each finds something out, then prints it as text for people, or, if `json` is
 * not NULL, adds it to that object instead.  Returns true if all is well; what is not has been said (in
 * text mode on stderr). */
#ifndef NEZHA_TUNING_INFO_H
#define NEZHA_TUNING_INFO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tuning/plan.h"

/* This host: rails and the other interfaces, settings, what is built in and installed. */
bool nezha_info_host(json_t *json);

/* Whether the aggregators that NEZHA_RAILS names answer; one that does not is no problem: jobs then go without. */
void nezha_info_aggregators(const char *spec, json_t *json);

/* The RDMA ports of this host and why those that are no rails are none; nothing if there are none. */
struct nezha_verbs_port;
struct nezha_rail_nic;
void nezha_info_ports(const struct nezha_verbs_port *ports, size_t count, const struct nezha_rail_nic *rails,
                      size_t rail_count, json_t *json);

/* One that is a rail: as JSON (why_not may be NULL), and as a line of the table of rails. */
json_t *nezha_info_describe_port(const struct nezha_verbs_port *port, const char *why_not);
void nezha_info_print_port(const struct nezha_verbs_port *port);

/* "25 Gbit/s", "unknown". */
void nezha_info_speed(char *text, size_t len, uint32_t mbit);

/* What the table says. */
struct nezha_info_query {
	struct nezha_scale scale;
	bool all_sizes;            /* where the decision changes, instead of `bytes` */
	uint64_t bytes;
	const char *table;         /* path; NULL: that of NEZHA_TABLE, or the built-in rules */
};
bool nezha_info_table(const struct nezha_info_query *query, json_t *json);

/* Only whether NEZHA_TABLE and NEZHA_TUNE are in order; prints nothing but problems.  A table that was measured
 * elsewhere than `here` is told, but in order. */
struct nezha_settings;
struct nezha_fingerprint;
bool nezha_info_settings_table(const struct nezha_settings *settings, const struct nezha_fingerprint *here,
                               json_t *json);

/* Whether `program` (a path, or a name looked up in PATH) can be intercepted. */
bool nezha_info_check(const char *program, json_t *json);

/* One line "nezha-info: ..." on stderr, and in "problems" of `json` if that is not NULL. */
void nezha_info_problem(json_t *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each line of `lines` (NULL: none) as a problem. */
void nezha_info_problems(json_t *json, const char *lines);

/* Prints `first` and `text` in lines of at most 80 columns; the further ones begin below the text. */
void nezha_info_wrap(const char *first, const char *text);

/* The text in quotation marks, cut to 60 bytes, for messages: in one of four static buffers. */
const char *nezha_info_quote(const char *text);

#endif
