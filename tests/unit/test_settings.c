/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/settings.h"
#include "tuning/status.h"

/* Reads up to 8 variables. */
static struct nezha_settings read_settings(const char *const *variables, const char *expected_problems,
                                           int expected_errors)
{
	struct nezha_settings settings;
	char *problems = NULL, *block[16] = { NULL };
	int errors = -1;

	for (size_t i = 0; variables && variables[i] && i + 1 < sizeof block / sizeof *block; i++)
		block[i] = (char *)variables[i];
	assert_int_equal(nezha_settings_read(block, &settings, &problems, &errors), NEZHA_OK);
	assert_string_equal(problems, expected_problems);
	assert_int_equal(errors, expected_errors);
	free(problems);
	return settings;
}

#define READ(problems, errors, ...) \
	read_settings((const char *const[]){ __VA_ARGS__, NULL }, problems, errors)

static void defaults(void **state)
{
	struct nezha_settings s = read_settings(NULL, "", 0);

	(void)state;
	assert_true(s.enable);
	assert_string_equal(s.rails, "auto");
	assert_string_equal(s.table, "");
	assert_string_equal(s.tune, "");
	assert_string_equal(s.learned, "");
	assert_int_equal(s.policy, NEZHA_POLICY_ECF);
	assert_true(s.open_timeout == 10.0);
	assert_int_equal(s.check, 0);
	assert_string_equal(s.report, "0");
	assert_int_equal(s.log, NEZHA_LOG_WARN);
	assert_string_equal(s.log_file, "");
	nezha_settings_free(&s);
	assert_null(s.rails);
}

static void reads_values(void **state)
{
	struct nezha_settings s =
		READ("", 0, "PATH=/bin", "NEZHA_ENABLE=off", "NEZHA_RAILS=tcp:eth0,tcp:10.0.0.0/8",
	             "NEZHA_TABLE=/a=b c.json", "NEZHA_POLICY=slice", "NEZHA_OPEN_TIMEOUT=0.25",
	             "NEZHA_LOG=debug", "NEZHA_CHECK=native,plan,crc", "nezha_LOG=x");

	(void)state;
	assert_false(s.enable);
	assert_string_equal(s.rails, "tcp:eth0,tcp:10.0.0.0/8");
	assert_string_equal(s.table, "/a=b c.json");
	assert_int_equal(s.policy, NEZHA_POLICY_SLICE);
	assert_true(s.open_timeout == 0.25);
	assert_int_equal(s.log, NEZHA_LOG_DEBUG);
	assert_int_equal(s.check, NEZHA_CHECK_PLAN | NEZHA_CHECK_CRC | NEZHA_CHECK_NATIVE);
	nezha_settings_free(&s);
}

static void every_value_of_every_kind(void **state)
{
	static const char *const yes[] = { "1", "on", "yes", "true" };
	static const char *const no[] = { "0", "off", "no", "false" };
	static const char *const policies[] = { "ecf", "static", "slice", "share" };
	static const char *const levels[] = { "error", "warn", "info", "debug" };
	static const struct {
		const char *text;
		double value;
	} seconds[] = { { "0.1", 0.1 }, { "1", 1 }, { "007", 7 }, { "3600", 3600 }, { "3600.000", 3600 },
	                { "10.123456789", 10.123456789 }, { "0.100000000", 0.1 } };
	struct nezha_settings s;
	char variable[64];

	(void)state;
	for (int i = 0; i < 4; i++) {
		snprintf(variable, sizeof variable, "NEZHA_ENABLE=%s", yes[i]);
		s = READ("", 0, variable);
		assert_true(s.enable);
		nezha_settings_free(&s);
		snprintf(variable, sizeof variable, "NEZHA_ENABLE=%s", no[i]);
		s = READ("", 0, variable);
		assert_false(s.enable);
		nezha_settings_free(&s);
		snprintf(variable, sizeof variable, "NEZHA_LOG=%s", levels[i]);
		s = READ("", 0, variable);
		assert_int_equal(s.log, i);
		nezha_settings_free(&s);
	}
	for (int i = 0; i < 4; i++) {
		snprintf(variable, sizeof variable, "NEZHA_POLICY=%s", policies[i]);
		s = READ("", 0, variable);
		assert_int_equal(s.policy, i);
		nezha_settings_free(&s);
	}
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		snprintf(variable, sizeof variable, "NEZHA_OPEN_TIMEOUT=%s", seconds[i].text);
		s = READ("", 0, variable);
		assert_true(s.open_timeout == seconds[i].value);
		nezha_settings_free(&s);
	}
}

#define EVERY_CHECK "plan, crc, native, or several of them separated by commas"

static void malformed_values_keep_the_default(void **state)
{
	static const struct {
		const char *variable, *allowed;
	} cases[] = {
		{ "NEZHA_ENABLE=2", "0 or 1" },
		{ "NEZHA_ENABLE=12abc", "0 or 1" },
		{ "NEZHA_ENABLE=ON", "0 or 1" },
		{ "NEZHA_ENABLE= 1", "0 or 1" },
		{ "NEZHA_ENABLE=10", "0 or 1" },
		{ "NEZHA_POLICY=fast", "ecf, static, slice or share" },
		{ "NEZHA_POLICY=ecf ", "ecf, static, slice or share" },
		{ "NEZHA_LOG=2", "error, warn, info or debug" },
		{ "NEZHA_CHECK=plans", EVERY_CHECK },
		{ "NEZHA_CHECK=plan,", EVERY_CHECK },
		{ "NEZHA_CHECK=,plan", EVERY_CHECK },
		{ "NEZHA_CHECK=plan plan", EVERY_CHECK },
		{ "NEZHA_CHECK=plan,crc32", EVERY_CHECK },
		{ "NEZHA_CHECK=1", EVERY_CHECK },
		{ "NEZHA_OPEN_TIMEOUT=10s", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=0", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=0.099999999", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=3600.000000001", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=-5", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=.5", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=5.", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=1e1", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=1,5", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=nan", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=99999999999999999999999", "seconds, 0.1 to 3600" },
		{ "NEZHA_OPEN_TIMEOUT=1.0000000000", "seconds, 0.1 to 3600" },
	};
	char problem[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_settings s;

		snprintf(problem, sizeof problem, "%s is malformed: allowed is %s\n", cases[i].variable,
		         cases[i].allowed);
		s = READ(problem, 1, cases[i].variable);
		assert_true(s.enable);
		assert_int_equal(s.policy, NEZHA_POLICY_ECF);
		assert_int_equal(s.log, NEZHA_LOG_WARN);
		assert_true(s.open_timeout == 10.0);
		assert_int_equal(s.check, 0);
		nezha_settings_free(&s);
	}
}

#define LENGTH ", of up to 4096 bytes, without control characters\n"

static void reports_are_switched_like_others(void **state)
{
	static const struct {
		const char *variable, *report;
	} cases[] = {
		{ "NEZHA_REPORT=off", "0" }, { "NEZHA_REPORT=no", "0" }, { "NEZHA_REPORT=false", "0" }, { "NEZHA_REPORT=0", "0" },
		{ "NEZHA_REPORT=on", "1" }, { "NEZHA_REPORT=yes", "1" }, { "NEZHA_REPORT=true", "1" }, { "NEZHA_REPORT=1", "1" },
		{ "NEZHA_REPORT=./off", "./off" }, { "NEZHA_REPORT=2", "2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_settings s = READ("", 0, cases[i].variable);

		assert_string_equal(s.report, cases[i].report);
		nezha_settings_free(&s);
	}
}

static void malformed_texts(void **state)
{
	char *variable = malloc(6000), problem[512];
	struct nezha_settings s;

	(void)state;
	s = READ("NEZHA_TABLE=a?b is malformed: allowed is the path of a tuning table" LENGTH, 1,
	         "NEZHA_TABLE=a\nb");
	assert_string_equal(s.table, "");
	nezha_settings_free(&s);
	memset(variable, 'x', 6000);
	memcpy(variable, "NEZHA_TABLE=", 12);
	variable[12 + 4097] = '\0';
	snprintf(problem, sizeof problem,
	         "NEZHA_TABLE=%.60s... is malformed: allowed is the path of a tuning table" LENGTH, variable + 12);
	s = READ(problem, 1, variable);
	assert_string_equal(s.table, "");
	nezha_settings_free(&s);
	variable[12 + 4096] = '\0';
	s = READ("", 0, variable);
	assert_int_equal(strlen(s.table), 4096);
	nezha_settings_free(&s);
	free(variable);
}

static void unknown_names_are_told(void **state)
{
	static const char known[] =
		"; known are NEZHA_ENABLE, NEZHA_RAILS, NEZHA_VERBS, NEZHA_TABLE, NEZHA_TUNE, NEZHA_LEARNED, NEZHA_POLICY, "
		"NEZHA_OPEN_TIMEOUT, NEZHA_REPRODUCIBLE, NEZHA_CHECK, NEZHA_REPORT, NEZHA_TRACE, NEZHA_LOG, NEZHA_LOG_FILE\n";
	struct nezha_settings s;
	char problem[1024], name[200];

	(void)state;
	s = READ("NEZHA_RIALS is unknown and ignored; did you mean NEZHA_RAILS?\n"
	         "NEZHA_POLICY=x is malformed: allowed is ecf, static, slice or share\n"
	         "NEZHA_LOGFILE is unknown and ignored; did you mean NEZHA_LOG_FILE?\n"
	         "NEZHA_TUNES is unknown and ignored; did you mean NEZHA_TUNE?\n", 1,
	         "NEZHA_RIALS=a", "NEZHA_POLICY=x", "NEZHA_LOGFILE=", "NEZHA_TUNES=1");
	nezha_settings_free(&s);
	snprintf(problem, sizeof problem, "NEZHA_QUITE_OTHER is unknown and ignored%s", known);
	s = READ(problem, 0, "NEZHA_QUITE_OTHER=1");
	nezha_settings_free(&s);
	memset(name, 'A', sizeof name);
	memcpy(name, "NEZHA_", 6);
	strcpy(name + 150, "\n=1");
	snprintf(problem, sizeof problem, "%.60s... is unknown and ignored%s", name, known);
	s = READ(problem, 0, name);
	nezha_settings_free(&s);
	snprintf(problem, sizeof problem, "NEZHA_ is unknown and ignored%s", known);
	s = READ(problem, 0, "NEZHA_=1", "NEZHA_NOEQUALS", "NEZHA=1");
	nezha_settings_free(&s);
}

static void empty_is_unset_and_the_first_counts(void **state)
{
	struct nezha_settings s =
		READ("", 0, "NEZHA_RAILS=", "NEZHA_ENABLE=", "NEZHA_OPEN_TIMEOUT=", "NEZHA_LOG=info",
	             "NEZHA_LOG=debug", "NEZHA_ENABLE=0");

	(void)state;
	assert_string_equal(s.rails, "auto");
	assert_false(s.enable);
	assert_true(s.open_timeout == 10.0);
	assert_int_equal(s.log, NEZHA_LOG_INFO);
	nezha_settings_free(&s);
}

static void assert_packs_as(const struct nezha_settings *s, const char *expected)
{
	char *text = nezha_settings_pack(s), *exact, *back;
	struct nezha_settings again;
	size_t len = strlen(text);

	assert_string_equal(text, expected);
	exact = malloc(len);   /* no NUL behind it: a sanitizer sees a byte read too far */
	memcpy(exact, text, len);
	assert_int_equal(nezha_settings_unpack(exact, len, &again), NEZHA_OK);
	back = nezha_settings_pack(&again);
	assert_string_equal(back, expected);
	free(back);
	nezha_settings_free(&again);
	free(exact);
	free(text);
}

static void packs_and_unpacks(void **state)
{
	struct nezha_settings s = read_settings(NULL, "", 0);

	(void)state;
	assert_packs_as(&s, "NEZHA_ENABLE=1\nNEZHA_RAILS=auto\nNEZHA_VERBS=sl=0,retry=6,timeout=12,memory=256\nNEZHA_TABLE=\nNEZHA_TUNE=\nNEZHA_LEARNED=\nNEZHA_POLICY=ecf\n"
	                "NEZHA_OPEN_TIMEOUT=10.000000000\nNEZHA_REPRODUCIBLE=0\nNEZHA_CHECK=\nNEZHA_REPORT=0\nNEZHA_TRACE=\n"
	                "NEZHA_LOG=warn\nNEZHA_LOG_FILE=\n");
	nezha_settings_free(&s);
	s = READ("", 0, "NEZHA_ENABLE=0", "NEZHA_TUNE=alg=ring,min=1", "NEZHA_POLICY=static",
	         "NEZHA_LOG=debug", "NEZHA_OPEN_TIMEOUT=0.7", "NEZHA_LOG_FILE=%r.log", "NEZHA_REPORT=r.json",
	         "NEZHA_RAILS=tcp:a", "NEZHA_REPRODUCIBLE=yes", "NEZHA_CHECK=plan",
	         "NEZHA_LEARNED=l.json", "NEZHA_TRACE=t.%r");
	assert_packs_as(&s, "NEZHA_ENABLE=0\nNEZHA_RAILS=tcp:a\nNEZHA_VERBS=sl=0,retry=6,timeout=12,memory=256\nNEZHA_TABLE=\nNEZHA_TUNE=alg=ring,min=1\n"
	                "NEZHA_LEARNED=l.json\n"
	                "NEZHA_POLICY=static\nNEZHA_OPEN_TIMEOUT=0.700000000\nNEZHA_REPRODUCIBLE=1\nNEZHA_CHECK=plan\n"
	                "NEZHA_REPORT=r.json\nNEZHA_TRACE=t.%r\n"
	                "NEZHA_LOG=debug\nNEZHA_LOG_FILE=%r.log\n");
	nezha_settings_free(&s);
}

static void packs_in_any_locale(void **state)
{
	struct nezha_settings s = READ("", 0, "NEZHA_OPEN_TIMEOUT=1.5");

	(void)state;
	if (setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8"))
		print_message("with a decimal comma\n");
	assert_packs_as(&s, "NEZHA_ENABLE=1\nNEZHA_RAILS=auto\nNEZHA_VERBS=sl=0,retry=6,timeout=12,memory=256\nNEZHA_TABLE=\nNEZHA_TUNE=\nNEZHA_LEARNED=\nNEZHA_POLICY=ecf\n"
	                "NEZHA_OPEN_TIMEOUT=1.500000000\nNEZHA_REPRODUCIBLE=0\nNEZHA_CHECK=\nNEZHA_REPORT=0\nNEZHA_TRACE=\n"
	                "NEZHA_LOG=warn\nNEZHA_LOG_FILE=\n");
	setlocale(LC_ALL, "C");
	nezha_settings_free(&s);
}

static void assert_not_unpacked(const char *text, size_t len)
{
	struct nezha_settings s;

	memset(&s, 0xee, sizeof s);
	assert_int_equal(nezha_settings_unpack(text, len, &s), NEZHA_ERR_INVALID);
	assert_int_equal(*(unsigned char *)&s, 0xee);
}

static void unpack_refuses_all_else(void **state)
{
	struct nezha_settings s = read_settings(NULL, "", 0);
	char *good = nezha_settings_pack(&s), *text = malloc(9000);
	size_t len = strlen(good);

	(void)state;
	nezha_settings_free(&s);
	for (size_t cut = 0; cut < len; cut++)   /* every truncation */
		assert_not_unpacked(good, cut);
	assert_not_unpacked(good, len + 1);      /* a NUL behind it */
	snprintf(text, 9000, "%sNEZHA_LOG=warn\n", good);
	assert_not_unpacked(text, strlen(text)); /* twice */
	snprintf(text, 9000, "%sNEZHA_OTHER=1\n", good);
	assert_not_unpacked(text, strlen(text));
	snprintf(text, 9000, "%s\n", good);
	assert_not_unpacked(text, strlen(text));
	memcpy(text, good, len);
	text[strlen("NEZHA_ENABLE=")] = '7';
	assert_not_unpacked(text, len);
	memcpy(text, good, len);
	text[strlen("NEZHA_ENABLE=1\nNEZHA_RAILS=a")] = '\0';
	assert_not_unpacked(text, len);
	text[strlen("NEZHA_ENABLE=1\nNEZHA_RAILS=a")] = '\t';
	assert_not_unpacked(text, len);
	memset(text, 'x', 9000);                 /* a line longer than any allowed */
	memcpy(text, "NEZHA_TABLE=", 12);
	text[8999] = '\n';
	assert_not_unpacked(text, 9000);
	free(text);
	free(good);
}

static void every_setting_is_documented(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct nezha_setting_doc *doc; (doc = nezha_setting_doc(count)); count++) {
		assert_memory_equal(doc->name, "NEZHA_", 6);
		assert_true(*doc->allowed);
		assert_true(*doc->help);
	}
	assert_int_equal(count, 14);
	assert_string_equal(nezha_setting_doc(1)->name, "NEZHA_RAILS");
	assert_string_equal(nezha_setting_doc(1)->def, "auto");
	assert_null(nezha_setting_doc(count + 1));
}

static int quiet(void **state)
{
	(void)state;
	nezha_log_open(NEZHA_LOG_ERROR, "/dev/null", -1);   /* what unpack says of each refusal */
	return 0;
}

static void verbs_options(void **state)
{
	static const char *const wrong[] = {
		"gid", "gid=", "gid=-1", "gid=256", "mtu=0", "mtu=128", "mtu=1500", "mtu=8192", "sl=16", "retry=0", "retry=7",
		"timeout=7", "timeout=21", "memory=7", "memory=65537", "memory=99999999999999999999", "gid=1,gid=1", "gid=1,",
		",gid=1", "gid=1 ", "GID=1", "gid=1;sl=2", "qps=2",
	};
	struct nezha_verbs_options o, again;
	char text[NEZHA_VERBS_TEXT];

	(void)state;
	assert_int_equal(nezha_verbs_options_parse("", &o), NEZHA_OK);
	assert_true(o.gid == -1 && o.mtu == 0 && o.sl == 0 && o.retry == 6 && o.timeout == 12 && o.memory == 256);
	assert_int_equal(nezha_verbs_options_parse("timeout=8,gid=255,mtu=4096,sl=15,retry=1,memory=65536", &o), NEZHA_OK);
	nezha_verbs_options_print(&o, text, sizeof text);
	assert_string_equal(text, "gid=255,mtu=4096,sl=15,retry=1,timeout=8,memory=65536");
	assert_int_equal(nezha_verbs_options_parse(text, &again), NEZHA_OK);
	assert_memory_equal(&o, &again, sizeof o);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		if (nezha_verbs_options_parse(wrong[i], &again) != NEZHA_ERR_INVALID)
			fail_msg("\"%s\" was taken", wrong[i]);
		assert_memory_equal(&o, &again, sizeof o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_options),
		cmocka_unit_test(defaults),
		cmocka_unit_test(reads_values),
		cmocka_unit_test(every_value_of_every_kind),
		cmocka_unit_test(malformed_values_keep_the_default),
		cmocka_unit_test(malformed_texts),
		cmocka_unit_test(reports_are_switched_like_others),
		cmocka_unit_test(unknown_names_are_told),
		cmocka_unit_test(empty_is_unset_and_the_first_counts),
		cmocka_unit_test(packs_and_unpacks),
		cmocka_unit_test(packs_in_any_locale),
		cmocka_unit_test(unpack_refuses_all_else),
		cmocka_unit_test(every_setting_is_documented),
	};
	return cmocka_run_group_tests(tests, quiet, NULL);
}
