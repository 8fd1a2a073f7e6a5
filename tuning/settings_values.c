/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/settings_values.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/settings.h"
#include "tuning/status.h"
#include "tuning/text.h"

#define NSEC UINT64_C(1000000000)

static int parse_name(const char *text, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}

/* Odd ones are true. */
static const char *const bool_names[] = { "0", "1", "off", "on", "no", "yes", "false", "true" };

static int parse_bool(const char *text, void *out)
{
	int i = parse_name(text, bool_names, sizeof bool_names / sizeof *bool_names);

	if (i < 0)
		return NEZHA_ERR_INVALID;
	*(bool *)out = i % 2;
	return NEZHA_OK;
}

static void print_bool(FILE *f, const void *value)
{
	fputs(bool_names[*(const bool *)value], f);
}

static int parse_text(const char *text, void *out)
{
	char *copy;

	if (strlen(text) > NEZHA_VALUE_BYTES)
		return NEZHA_ERR_INVALID;
	for (const char *c = text; *c; c++)
		if (nezha_is_control(*c))
			return NEZHA_ERR_INVALID;
	copy = strdup(text);
	if (!copy)
		return NEZHA_ERR_NOMEM;
	free(*(char **)out);
	*(char **)out = copy;
	return NEZHA_OK;
}

/* What switches other settings on and off does not name a file. */
static int parse_report(const char *text, void *out)
{
	bool on;

	return parse_text(parse_bool(text, &on) != NEZHA_OK ? text : on ? "1" : "0", out);
}

static void print_text(FILE *f, const void *value)
{
	fputs(*(char *const *)value, f);
}

static const char *const policy_names[] = { "ecf", "static", "slice", "share" };

static int parse_policy(const char *text, void *out)
{
	int i = parse_name(text, policy_names, sizeof policy_names / sizeof *policy_names);

	if (i < 0)
		return NEZHA_ERR_INVALID;
	*(enum nezha_policy_kind *)out = (enum nezha_policy_kind)i;
	return NEZHA_OK;
}

static void print_policy(FILE *f, const void *value)
{
	fputs(policy_names[*(const enum nezha_policy_kind *)value], f);
}

static int parse_level(const char *text, void *out)
{
	for (int i = NEZHA_LOG_ERROR; i <= NEZHA_LOG_DEBUG; i++)
		if (!strcmp(text, nezha_log_level_name((enum nezha_log_level)i))) {
			*(enum nezha_log_level *)out = (enum nezha_log_level)i;
			return NEZHA_OK;
		}
	return NEZHA_ERR_INVALID;
}

static void print_level(FILE *f, const void *value)
{
	fputs(nezha_log_level_name(*(const enum nezha_log_level *)value), f);
}

/* In the order of the bits NEZHA_CHECK_*. */
static const char *const check_names[] = { "plan", "crc", "native" };
#define CHECKS (sizeof check_names / sizeof *check_names)

static int parse_checks(const char *text, void *out)
{
	unsigned checks = 0;
	size_t len;

	for (; *text; text += len) {
		size_t i = 0;

		if (checks && *text++ != ',')
			return NEZHA_ERR_INVALID;
		len = strcspn(text, ",");
		while (i < CHECKS && (strlen(check_names[i]) != len || memcmp(text, check_names[i], len)))
			i++;
		if (i == CHECKS)
			return NEZHA_ERR_INVALID;
		checks |= 1u << i;
	}
	*(unsigned *)out = checks;
	return NEZHA_OK;
}

static void print_checks(FILE *f, const void *value)
{
	const char *between = "";

	for (size_t i = 0; i < CHECKS; i++)
		if (*(const unsigned *)value & 1u << i) {
			fprintf(f, "%s%s", between, check_names[i]);
			between = ",";
		}
}

/* strtod would follow the application's locale. */
static int parse_seconds(const char *text, void *out)
{
	uint64_t ns = 0, unit = NSEC;
	const char *c = text;

	for (; *c >= '0' && *c <= '9' && ns <= 3600 * NSEC; c++)
		ns = ns * 10 + (uint64_t)(*c - '0') * NSEC;
	if (c == text)
		return NEZHA_ERR_INVALID;
	if (*c == '.' && c[1]) {
		for (c++; *c >= '0' && *c <= '9' && unit > 1; c++) {
			unit /= 10;
			ns += (uint64_t)(*c - '0') * unit;
		}
	}
	if (*c || ns < NSEC / 10 || ns > 3600 * NSEC)
		return NEZHA_ERR_INVALID;
	*(double *)out = (double)ns / NSEC;
	return NEZHA_OK;
}

static void print_seconds(FILE *f, const void *value)
{
	uint64_t ns = (uint64_t)(*(const double *)value * NSEC + 0.5);

	fprintf(f, "%" PRIu64 ".%09" PRIu64, ns / NSEC, ns % NSEC);
}

static int parse_verbs(const char *text, void *out)
{
	return nezha_verbs_options_parse(text, out);
}

static void print_verbs(FILE *f, const void *value)
{
	char text[NEZHA_VERBS_TEXT];

	nezha_verbs_options_print(value, text, sizeof text);
	fputs(text, f);
}

const struct nezha_value_kind nezha_value_bool = { parse_bool, print_bool, false };
const struct nezha_value_kind nezha_value_text = { parse_text, print_text, true };
const struct nezha_value_kind nezha_value_report = { parse_report, print_text, true };
const struct nezha_value_kind nezha_value_policy = { parse_policy, print_policy, false };
const struct nezha_value_kind nezha_value_level = { parse_level, print_level, false };
const struct nezha_value_kind nezha_value_checks = { parse_checks, print_checks, false };
const struct nezha_value_kind nezha_value_seconds = { parse_seconds, print_seconds, false };
const struct nezha_value_kind nezha_value_verbs = { parse_verbs, print_verbs, false };
