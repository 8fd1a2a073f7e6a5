/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/settings.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/status.h"
#include "tuning/text.h"

#define PREFIX "NEZHA_"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define TEXT_MAX_BYTES 4096      /* of a value */
#define SHOWN_MAX 60             /* bytes of a wrong value or name in a message */
#define NSEC UINT64_C(1000000000)

/* Reading and printing a value of each kind.  `parse` sets *out only on success; it may return
 * NEZHA_ERR_NOMEM. */
struct kind {
	int (*parse)(const char *text, void *out);
	void (*print)(FILE *f, const void *value);
};

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

	if (strlen(text) > TEXT_MAX_BYTES)
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
static const char *const check_names[] = { "plan" };
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

static const struct kind kind_bool = { parse_bool, print_bool };
static const struct kind kind_text = { parse_text, print_text };
static const struct kind kind_policy = { parse_policy, print_policy };
static const struct kind kind_level = { parse_level, print_level };
static const struct kind kind_checks = { parse_checks, print_checks };
static const struct kind kind_seconds = { parse_seconds, print_seconds };

static const struct setting {
	struct nezha_setting_doc doc;
	const struct kind *kind;
	size_t offset;
} settings_list[] = {
#define X(field, NAME, kind, def, allowed, help) \
	{ { PREFIX #NAME, def, allowed, help }, &kind_##kind, offsetof(struct nezha_settings, field) },
	NEZHA_SETTINGS(X)
#undef X
};
#define COUNT (sizeof settings_list / sizeof *settings_list)

const struct nezha_setting_doc *nezha_setting_doc(size_t index)
{
	return index < COUNT ? &settings_list[index].doc : NULL;
}

static void *member(const struct setting *setting, struct nezha_settings *settings)
{
	return (char *)settings + setting->offset;
}

void nezha_settings_free(struct nezha_settings *settings)
{
	for (size_t i = 0; i < COUNT; i++)
		if (settings_list[i].kind == &kind_text) {
			char **text = member(&settings_list[i], settings);

			free(*text);
			*text = NULL;
		}
}

static int set_defaults(struct nezha_settings *out)
{
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < COUNT; i++) {
		int status = settings_list[i].kind->parse(settings_list[i].doc.def,
		                                          member(&settings_list[i], out));

		if (status != NEZHA_OK) {
			nezha_settings_free(out);
			return status;
		}
	}
	return NEZHA_OK;
}

static const struct setting *find(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strlen(settings_list[i].doc.name) == len && !memcmp(settings_list[i].doc.name, name, len))
			return &settings_list[i];
	return NULL;
}

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* How many letters must be put in, taken out or changed to make b of a (Levenshtein); both shorter
 * than SHOWN_MAX. */
static size_t edits(const char *a, const char *b)
{
	size_t row[SHOWN_MAX + 1], la = strlen(a), lb = strlen(b);

	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[lb];
}

static void print_cut(FILE *f, const char *text, size_t len)
{
	for (size_t i = 0; i < len && i < SHOWN_MAX; i++)
		fputc(nezha_is_control(text[i]) ? '?' : text[i], f);
	if (len > SHOWN_MAX)
		fputs("...", f);
}

static void report_unknown(FILE *f, const char *name, size_t len)
{
	const char *nearest = NULL;
	size_t best = (len - PREFIX_LEN + 1) / 2 + 1;   /* more than half of it wrong: another word */
	char copy[SHOWN_MAX] = "";

	if (len < sizeof copy) {
		memcpy(copy, name, len);
		for (size_t i = 0; i < COUNT; i++) {
			size_t n = edits(copy, settings_list[i].doc.name);

			if (n < best) {
				best = n;
				nearest = settings_list[i].doc.name;
			}
		}
	}
	print_cut(f, name, len);
	fputs(" is unknown and ignored", f);
	if (nearest) {
		fprintf(f, "; did you mean %s?\n", nearest);
		return;
	}
	fputs("; known are", f);
	for (size_t i = 0; i < COUNT; i++)
		fprintf(f, "%s %s", i ? "," : "", settings_list[i].doc.name);
	fputc('\n', f);
}

static void report_malformed(FILE *f, const struct setting *setting, const char *value)
{
	fprintf(f, "%s=", setting->doc.name);
	print_cut(f, value, strlen(value));
	fprintf(f, " is malformed: allowed is %s\n", setting->doc.allowed);
}

/* `seen` has a flag for each setting: as with getenv, the first of a name counts. */
static int read_variable(const char *variable, bool *seen, struct nezha_settings *out, FILE *problems,
                         int *errors)
{
	const char *equals = strchr(variable, '=');
	const struct setting *setting;
	int status;

	if (!equals || strncmp(variable, PREFIX, PREFIX_LEN))
		return NEZHA_OK;
	setting = find(variable, (size_t)(equals - variable));
	if (!setting) {
		report_unknown(problems, variable, (size_t)(equals - variable));
		return NEZHA_OK;
	}
	if (seen[setting - settings_list] || !equals[1])
		return NEZHA_OK;
	seen[setting - settings_list] = true;
	status = setting->kind->parse(equals + 1, member(setting, out));
	if (status == NEZHA_ERR_INVALID) {
		report_malformed(problems, setting, equals + 1);
		++*errors;
		return NEZHA_OK;
	}
	return status;
}

int nezha_settings_read(char *const *environ_block, struct nezha_settings *out, char **problems, int *errors)
{
	struct nezha_settings settings;
	bool seen[COUNT] = { false };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int bad = 0, status = f ? set_defaults(&settings) : NEZHA_ERR_NOMEM;

	if (status != NEZHA_OK)
		goto no_settings;
	for (; *environ_block && status == NEZHA_OK; environ_block++)
		status = read_variable(*environ_block, seen, &settings, f, &bad);
	if (status == NEZHA_OK && (ferror(f) || fflush(f)))
		status = NEZHA_ERR_NOMEM;
	if (status != NEZHA_OK)
		goto failed;
	fclose(f);
	*out = settings;
	*problems = text;
	*errors = bad;
	return NEZHA_OK;

failed:
	nezha_settings_free(&settings);
no_settings:
	if (f)
		fclose(f);
	free(text);
	return status;
}

char *nezha_settings_pack(const struct nezha_settings *settings)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool failed;

	if (!f)
		return NULL;
	for (size_t i = 0; i < COUNT; i++) {
		fprintf(f, "%s=", settings_list[i].doc.name);
		settings_list[i].kind->print(f, (const char *)settings + settings_list[i].offset);
		fputc('\n', f);
	}
	failed = ferror(f);
	if (fclose(f) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* One line, without its '\n' and ended by NUL.  `seen` as in read_variable. */
static int unpack_line(const char *line, bool *seen, struct nezha_settings *out)
{
	const char *equals = strchr(line, '=');
	const struct setting *setting = equals ? find(line, (size_t)(equals - line)) : NULL;

	if (!setting || seen[setting - settings_list])
		return NEZHA_ERR_INVALID;
	seen[setting - settings_list] = true;
	return setting->kind->parse(equals + 1, member(setting, out));
}

static int unpack_lines(const char *text, size_t len, struct nezha_settings *out)
{
	char line[TEXT_MAX_BYTES + 64];
	bool seen[COUNT] = { false };
	size_t lines = 0;

	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) : len;
		int status;

		if (!newline || n >= sizeof line || memchr(text, '\0', n))
			return NEZHA_ERR_INVALID;
		memcpy(line, text, n);
		line[n] = '\0';
		status = unpack_line(line, seen, out);
		if (status != NEZHA_OK)
			return status;
		text += n + 1;
		len -= n + 1;
		lines++;
	}
	return lines == COUNT ? NEZHA_OK : NEZHA_ERR_INVALID;
}

int nezha_settings_unpack(const char *text, size_t len, struct nezha_settings *out)
{
	struct nezha_settings settings;
	int status = set_defaults(&settings);

	if (status != NEZHA_OK)
		return status;
	status = unpack_lines(text, len, &settings);
	if (status != NEZHA_OK) {
		nezha_settings_free(&settings);
		if (status == NEZHA_ERR_INVALID)
			nezha_error("the settings that were received are malformed (%zu bytes)", len);
		return status;
	}
	*out = settings;
	return NEZHA_OK;
}
