/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-info: what Nezha finds on this host, and what it would do. */
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/info.h"
#include "tuning/json_text.h"
#include "tuning/settings.h"
#include "tuning/status.h"
#include "tuning/text.h"

#define SHOWN_MAX 60

enum { GOOD = 0, BAD = 1, USAGE = 2 };

static const char help[] =
	"Usage: nezha-info [--json]\n"
	"       nezha-info --ranks N [--nodes N] [--bytes SIZE] [--table FILE] [--json]\n"
	"       nezha-info --check PROGRAM [--json]\n"
	"Says what Nezha finds on this host: the rails and why other interfaces are none,\n"
	"the settings in force, what is built in.\n"
	"\n"
	"  --ranks N        what the tuning table says for a communicator of N ranks\n"
	"  --nodes N        that run on N nodes (one rank on each, if not given)\n"
	"  --bytes SIZE     for a vector of SIZE bytes, such as 4096, 64K, 1M or 2G;\n"
	"                   without it, for all sizes\n"
	"  --table FILE     by this table instead of that of NEZHA_TABLE\n"
	"  --check PROGRAM  whether the preload can step between PROGRAM and its MPI\n"
	"  --json           print JSON\n"
	"  --help           print this\n"
	"  --version        print the version\n"
	"\n"
	"Exit status: 0 settings, table and program are in order (which does not say\n"
	"that there is a rail); 1 one of them is not; 2 wrong arguments.\n";

struct options {
	int ranks, nodes;          /* 0: not given */
	const char *bytes, *table, *check;
	bool json;
};

void nezha_info_problem(json_t *json, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return;
	nezha_text_clean(text, (size_t)len);
	fflush(stdout);
	fprintf(stderr, "nezha-info: %s\n", text);
	if (json) {
		json_t *problems = json_object_get(json, "problems");

		json_array_append_new(problems, nezha_json_text(text));
	}
	free(text);
}

void nezha_info_problems(json_t *json, const char *lines)
{
	while (lines && *lines) {
		size_t length = strcspn(lines, "\n");

		nezha_info_problem(json, "%.*s", (int)length, lines);
		lines += length + (lines[length] == '\n');
	}
}

const char *nezha_info_quote(const char *text)
{
	static char buffers[4][SHOWN_MAX + 8];
	static unsigned next;
	char *buffer = buffers[next++ % 4];

	snprintf(buffer, sizeof *buffers, "\"%.*s%s\"", SHOWN_MAX, text,
	         strlen(text) > SHOWN_MAX ? "..." : "");
	return buffer;
}

void nezha_info_wrap(const char *first, const char *text)
{
	const int indent = (int)strlen(first), room = 80 - indent;

	while (*text) {
		int len = (int)strlen(text);

		if (len > room)
			for (len = room; len > 1 && text[len] != ' '; len--)
				;
		printf("%-*s%.*s\n", indent, first, len, text);
		text += len;
		text += *text == ' ';
		first = "";
	}
}

static void print_help(void)
{
	const struct nezha_setting_doc *doc;

	fputs(help, stdout);
	puts("\nSettings (environment variables; nezha(7) tells more):");
	for (size_t i = 0; (doc = nezha_setting_doc(i)); i++) {
		char text[512];

		snprintf(text, sizeof text, "%s; allowed is %s%s%s", doc->help, doc->allowed,
		         *doc->def ? "; default " : "", doc->def);
		printf("  %s\n", doc->name);
		nezha_info_wrap("      ", text);
	}
}

static int usage(const char *message, const char *value, const char *allowed)
{
	char text[256];
	int len = snprintf(text, sizeof text, "nezha-info: %s %s%s%s", message, nezha_info_quote(value),
	                   allowed ? "; allowed is " : "", allowed ? allowed : "");

	nezha_text_clean(text, len < (int)sizeof text ? (size_t)len : sizeof text - 1);
	fprintf(stderr, "%s\nTry nezha-info --help\n", text);
	return USAGE;
}

/* A whole number from 1 to INT_MAX; 0 for anything else. */
static int parse_count(const char *text)
{
	long value = 0;

	for (; *text >= '0' && *text <= '9' && value <= INT_MAX; text++)
		value = value * 10 + (*text - '0');
	return *text || value > INT_MAX ? 0 : (int)value;
}

enum { OPT_RANKS = 256, OPT_NODES, OPT_BYTES, OPT_TABLE, OPT_CHECK, OPT_JSON, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, OPT_RANKS }, { "nodes", required_argument, NULL, OPT_NODES },
	{ "bytes", required_argument, NULL, OPT_BYTES }, { "table", required_argument, NULL, OPT_TABLE },
	{ "check", required_argument, NULL, OPT_CHECK }, { "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },         { "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

/* -1: go on; else the exit status. */
static int take_option(int option, char **argv, struct options *out)
{
	char letter[] = "-?";

	switch (option) {
	case OPT_RANKS:
		out->ranks = parse_count(optarg);
		return out->ranks ? -1 : usage("--ranks is not", optarg, "a number from 1 to 2147483647");
	case OPT_NODES:
		out->nodes = parse_count(optarg);
		return out->nodes ? -1 : usage("--nodes is not", optarg, "a number from 1 to 2147483647");
	case OPT_BYTES:
		out->bytes = optarg;
		return -1;
	case OPT_TABLE:
		out->table = optarg;
		return -1;
	case OPT_CHECK:
		out->check = optarg;
		return -1;
	case OPT_JSON:
		out->json = true;
		return -1;
	case OPT_HELP:
		print_help();
		return GOOD;
	case OPT_VERSION:
		printf("nezha-info %s\n", PACKAGE_VERSION);
		return GOOD;
	case ':':
		return usage("a value is missing after", argv[optind - 1], NULL);
	default:
		letter[1] = (char)optopt;
		return usage("there is no option",
		             optopt > 0 && optopt < OPT_RANKS ? letter : argv[optind - 1], NULL);
	}
}

/* The arguments as a whole.  -1: go on; else the exit status. */
static int parse_query(const struct options *options, struct nezha_info_query *query)
{
	char numbers[64];

	*query = (struct nezha_info_query){ .all_sizes = !options->bytes, .table = options->table };
	if (options->check && (options->ranks || options->nodes || options->bytes || options->table))
		return usage("--check does not go together with other questions:", options->check, NULL);
	if (!options->ranks && (options->nodes || options->bytes || options->table))
		return usage("a question to the table needs", "--ranks",
		             "--ranks N with --nodes, --bytes, --table");
	if (options->bytes && nezha_bytes_parse(options->bytes, &query->bytes) != NEZHA_OK)
		return usage("--bytes is not", options->bytes, "a number, or one with K, M or G behind it");
	query->scale.ranks = options->ranks;
	query->scale.nodes = options->nodes ? options->nodes : options->ranks;
	if (options->ranks && query->scale.nodes > options->ranks) {
		snprintf(numbers, sizeof numbers, "--ranks %d --nodes %d", options->ranks, options->nodes);
		return usage("there are more nodes than ranks:", numbers, "as many at most");
	}
	if (options->ranks)
		query->scale.ppn = (int)(((long)options->ranks + query->scale.nodes - 1) /
		                         query->scale.nodes);
	return -1;
}

static int answer(const struct options *options, const struct nezha_info_query *query)
{
	json_t *json = NULL;
	bool good;

	if (options->json)
		json = json_pack("{s:s, s:[]}", "version", PACKAGE_VERSION, "problems");
	if (options->check)
		good = nezha_info_check(options->check, json);
	else if (options->ranks)
		good = nezha_info_table(query, json);
	else
		good = nezha_info_host(json);
	if (json) {
		good &= json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) == 0;
		putchar('\n');
		json_decref(json);
	}
	if (fflush(stdout) || ferror(stdout)) {
		perror("nezha-info: standard output");
		return BAD;
	}
	return good ? GOOD : BAD;
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	struct nezha_info_query query;
	int option, status;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		status = take_option(option, argv, &options);
		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return usage("there is no argument", argv[optind], NULL);
	status = parse_query(&options, &query);
	return status >= 0 ? status : answer(&options, &query);
}
