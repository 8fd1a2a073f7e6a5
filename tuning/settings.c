/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/settings_values.h"
#include "tuning/status.h"
#include "tuning/text.h"

#define PREFIX "NEZHA_"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define SHOWN_MAX 60             /* bytes of a wrong value or name in a message */

static const struct setting {
	struct nezha_setting_doc doc;
	const struct nezha_value_kind *kind;
	size_t offset;
} settings_list[] = {
#define X(field, NAME, kind, def, allowed, help) \
	{ { PREFIX #NAME, def, allowed, help }, &nezha_value_##kind, offsetof(struct nezha_settings, field) },
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
		if (settings_list[i].kind->is_text) {
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
	fprintf(f, " is malformed: allowed is %s", setting->doc.allowed);
	if (setting->kind->is_text)
		fprintf(f, ", of up to %d bytes, without control characters", NEZHA_VALUE_BYTES);
	fputc('\n', f);
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
	char line[NEZHA_VALUE_BYTES + 64];
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
