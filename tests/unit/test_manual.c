/* SPDX-License-Identifier: BSD-3-Clause
 * The manual pages say what the source says: the settings of nezha(7) are those of tuning/settings.h, its reasons those of
 * tuning/plan.h, the
 * example of nezha-table(5) is a table. */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/plan.h"
#include "tuning/settings.h"
#include "tuning/status.h"
#include "tuning/table.h"

static char *read_doc(const char *name)
{
	const char *top = getenv("abs_top_srcdir");
	char path[4096], *text = calloc(1, 1 << 16);
	FILE *f;

	snprintf(path, sizeof path, "%s/doc/%s", top ? top : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be read (abs_top_srcdir tells where the sources are)", path);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
	fclose(f);
	return text;
}

/* As roff wants it. */
static void escape(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '-' ? "\\-" : *text == '\\' ? "\\e" : "%c", *text);
}

static char *settings_as_roff(void)
{
	const struct nezha_setting_doc *doc;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (size_t i = 0; (doc = nezha_setting_doc(i)); i++) {
		fprintf(f, ".TP\n.B %s\n%c", doc->name, toupper((unsigned char)*doc->help));
		escape(f, doc->help + 1);
		fputs(".\nAllowed: ", f);
		escape(f, doc->allowed);
		fputs(".\nDefault: ", f);
		escape(f, *doc->def ? doc->def : "none");
		fputs(".\n", f);
	}
	fclose(f);
	return text;
}

static char *reasons_as_roff(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (int reason = 0; reason < NEZHA_REASONS_END; reason++) {
		const char *means = nezha_reason_text((enum nezha_reason)reason);

		fputs(".TP\n.B ", f);
		escape(f, nezha_reason_name((enum nezha_reason)reason));
		fprintf(f, "\n%c", toupper((unsigned char)*means));
		escape(f, means + 1);
		fputs(".\n", f);
	}
	fclose(f);
	return text;
}

/* Between these two lines of nezha(7) stands what is wanted. */
static void compare_part(const char *first, const char *last, char *want)
{
	char *page = read_doc("nezha.7");
	char *begin = strstr(page, first), *end = strstr(page, last);

	assert_true(begin && end && begin < end);
	begin = strchr(begin, '\n') + 1;
	*end = '\0';
	if (strcmp(begin, want)) {
		fprintf(stderr, "%s", want);
		fail_msg("in doc/nezha.7 there should be what is above");
	}
	free(want);
	free(page);
}

static void settings_are_those_of_the_source(void **state)
{
	(void)state;
	compare_part(".\\\" The settings:", ".\\\" End of the settings.\n", settings_as_roff());
}

static void reasons_are_those_of_the_source(void **state)
{
	(void)state;
	compare_part(".\\\" The reasons:", ".\\\" End of the reasons.\n", reasons_as_roff());
}

/* Back from what roff wants, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\')
			text++;
		*to++ = *text == 'e' && text[-1] == '\\' ? '\\' : *text;
	}
	*to = '\0';
}

static void example_is_a_table(void **state)
{
	char *page = read_doc("nezha-table.5"), *begin = strstr(page, ".nf\n{\n"), *end, *error = NULL;
	const struct nezha_scale scale = { .ranks = 8, .nodes = 8, .ppn = 1 };
	struct nezha_table *table = NULL;
	struct nezha_plan plan;

	(void)state;
	assert_non_null(begin);
	begin += strlen(".nf\n");
	end = strstr(begin, ".fi\n");
	assert_non_null(end);
	*end = '\0';
	unescape(begin);
	if (nezha_table_parse(begin, strlen(begin), "doc/nezha-table.5", &table, &error) != NEZHA_OK)
		fail_msg("%s", error);
	nezha_plan_make(table, &scale, 1 << 20, &plan);
	assert_int_equal(plan.alg, NEZHA_ALG_RING);
	nezha_table_free(table);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_those_of_the_source),
		cmocka_unit_test(reasons_are_those_of_the_source),
		cmocka_unit_test(example_is_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
