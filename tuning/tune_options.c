/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune's command line. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/file.h"
#include "tuning/status.h"
#include "tuning/tune.h"

#define SIZES "4K-64M"
#define SECONDS 30.0

static const char help[] =
	"Usage: nezha-tune --ranks LIST [--mpirun COMMAND] -o FILE [OPTION]...\n"
	"Measures, through your own mpirun, how MPI_Allreduce is fastest on this cluster for\n"
	"each number of ranks and each size, and writes a tuning table (nezha-table(5)).\n"
	"\n"
	"  --ranks LIST       numbers of ranks, such as 2,4,8\n"
	"  --ppn N            so many of them on each node, 1 to 256; 1\n"
	"  --mpirun COMMAND   what starts your jobs, without the number of ranks, such as\n"
	"                     \"mpirun --hostfile hosts --map-by node\"; \"mpirun\" if not given\n"
	"  -o, --output FILE  the table; one that exists is extended by what is new in it\n"
	"  --extend FILE      begin with this table, and write the extended one to -o FILE\n"
	"  --again            measure also what the table has already\n"
	"  --sizes LIST       bytes, such as 64K,1M or 64K-64M (x2 steps); " SIZES "\n"
	"  --seconds S        time for each number of ranks, 1 to 86400; 30\n"
	"  --launcher NAME    openmpi or mpich: whose mpirun it is; asked of it if not given\n"
	"  --library FILE     libnezha_pmpi.so, at the same place on every node\n"
	"  --worker FILE      the program that measures, at the same place on every node\n"
	"  --help, --version\n"
	"\n"
	"Stopped half-way (Ctrl-C, a failed job), it goes on where it was when started again.\n"
	"Settings (NEZHA_RAILS, NEZHA_POLICY, ...) hold for the measurement, too.\n"
	"\n"
	"Exit status: 0 all is measured; 1 a job failed, or a file cannot be written or is not\n"
	"in order; 2 wrong arguments; 128 + N stopped by signal N.\n";

static int usage(const char *format, const char *value)
{
	nezha_tune_problem(format, value);
	fputs("Try nezha-tune --help\n", stderr);
	return NEZHA_TUNE_USAGE;
}

enum {
	OPT_RANKS = 256, OPT_PPN, OPT_MPIRUN, OPT_EXTEND, OPT_AGAIN, OPT_SIZES, OPT_SECONDS, OPT_LAUNCHER, OPT_LIBRARY,
	OPT_WORKER, OPT_HELP, OPT_VERSION
};

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, OPT_RANKS },
	{ "ppn", required_argument, NULL, OPT_PPN },
	{ "mpirun", required_argument, NULL, OPT_MPIRUN },
	{ "output", required_argument, NULL, 'o' },
	{ "extend", required_argument, NULL, OPT_EXTEND },
	{ "again", no_argument, NULL, OPT_AGAIN },
	{ "sizes", required_argument, NULL, OPT_SIZES },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "launcher", required_argument, NULL, OPT_LAUNCHER },
	{ "library", required_argument, NULL, OPT_LIBRARY },
	{ "worker", required_argument, NULL, OPT_WORKER },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int read_seconds(struct nezha_tune_options *options)
{
	char *end;
	double value = strtod(optarg, &end);

	if (!*optarg || *end || !isfinite(value) || value < 1 || value > 86400)
		return usage("--seconds \"%.60s\": allowed is a number from 1 to 86400", optarg);
	options->seconds = value;
	return -1;
}

static int read_launcher(struct nezha_tune_options *options)
{
	if (!strcmp(optarg, "openmpi"))
		options->mpi = NEZHA_TUNE_OPENMPI;
	else if (!strcmp(optarg, "mpich"))
		options->mpi = NEZHA_TUNE_MPICH;
	else
		return usage("--launcher \"%.60s\": allowed are openmpi and mpich", optarg);
	return -1;
}

static int read_command(struct nezha_tune_options *options, const char *command)
{
	free(options->words);
	options->words = NULL;
	return nezha_tune_split(command, &options->words, &options->word_count) == NEZHA_OK ? -1 : NEZHA_TUNE_USAGE;
}

/* -1: go on; else the exit status. */
static int take_option(int option, char **argv, struct nezha_tune_options *options)
{
	char letter[] = "-?";

	switch (option) {
	case OPT_RANKS:
		return nezha_tune_read_ranks(optarg, &options->ranks) == NEZHA_OK ? -1 : NEZHA_TUNE_USAGE;
	case OPT_PPN:
		return nezha_tune_read_ppn(optarg, &options->ppn) == NEZHA_OK ? -1 : NEZHA_TUNE_USAGE;
	case OPT_SIZES:
		return nezha_tune_read_sizes(optarg, &options->sizes) == NEZHA_OK ? -1 : NEZHA_TUNE_USAGE;
	case OPT_MPIRUN:
		return read_command(options, optarg);
	case OPT_SECONDS:
		return read_seconds(options);
	case OPT_LAUNCHER:
		return read_launcher(options);
	case 'o':
		options->output = optarg;
		return -1;
	case OPT_EXTEND:
		options->extend = optarg;
		return -1;
	case OPT_AGAIN:
		options->again = true;
		return -1;
	case OPT_LIBRARY:
		options->library = optarg;
		return -1;
	case OPT_WORKER:
		options->worker = optarg;
		return -1;
	case OPT_HELP:
		fputs(help, stdout);
		return NEZHA_TUNE_GOOD;
	case OPT_VERSION:
		printf("nezha-tune %s\n", PACKAGE_VERSION);
		return NEZHA_TUNE_GOOD;
	case ':':
		return usage("a value is missing after \"%.60s\"", argv[optind - 1]);
	default:
		letter[1] = (char)optopt;
		return usage("there is no option \"%.60s\"",
		             optopt > 0 && optopt < OPT_RANKS ? letter : argv[optind - 1]);
	}
}

/* A check's own work would be measured with the rails', but not with the library. */
static int check_environment(void)
{
	const char *check = getenv("NEZHA_CHECK");

	if (!check || !*check || !strcmp(check, "crc"))
		return -1;
	return usage("NEZHA_CHECK=\"%.60s\": allowed is crc, since what else is checked would be measured", check);
}

/* Nodes must have equal numbers of ranks, and there must be two. */
static int check_ppn(const struct nezha_tune_options *options)
{
	for (size_t i = 0; i < options->ranks.count; i++) {
		int ranks = (int)options->ranks.value[i];

		if (ranks % options->ppn || ranks < 2 * options->ppn) {
			nezha_tune_problem("--ranks %d with --ppn %d: allowed are %d, %d, %d and so on", ranks,
			                   options->ppn, 2 * options->ppn, 3 * options->ppn, 4 * options->ppn);
			return NEZHA_TUNE_USAGE;
		}
	}
	return -1;
}

int nezha_tune_options_read(int argc, char **argv, struct nezha_tune_options *options)
{
	int option, status = -1;

	*options = (struct nezha_tune_options){ .seconds = SECONDS, .ppn = 1 };
	opterr = 0;
	nezha_tune_read_sizes(SIZES, &options->sizes);
	while (status < 0 && (option = getopt_long(argc, argv, ":o:", long_options, NULL)) != -1)
		status = take_option(option, argv, options);
	if (status >= 0)
		return status;
	if (optind < argc)
		return usage("there is no argument \"%.60s\"", argv[optind]);
	if (!options->ranks.count)
		return usage("%s is missing: the numbers of ranks, such as --ranks 2,4,8", "--ranks");
	if (!options->output || !*options->output)
		return usage("%s is missing: the file that gets the table, such as -o site.json", "-o");
	status = check_ppn(options);
	if (status < 0)
		status = check_environment();
	return status >= 0 || options->words ? status : read_command(options, "mpirun");
}

/* ---- the parts that jobs need ---- */

static int check_file(const char *path, int mode, const char *option, const char *what)
{
	if (!access(path, mode))
		return NEZHA_OK;
	nezha_tune_problem("%s \"%s\": %s is not there: %s", option, path, what, strerror(errno));
	return NEZHA_ERR_INVALID;
}

/* The loader and mpirun look for a bare name elsewhere than here, where it was found. */
static int make_whole(const char **path, char **own)
{
	char folder[PATH_MAX];

	if (**path == '/' || !getcwd(folder, sizeof folder))
		return NEZHA_OK;
	if (asprintf(own, "%s/%s", folder, *path) < 0) {
		nezha_tune_problem("no memory");
		return NEZHA_ERR_NOMEM;
	}
	*path = *own;
	return NEZHA_OK;
}

/* What jobs are made of, looked up on this host: the nodes have it at the same place. */
int nezha_tune_find_parts(struct nezha_tune_options *options)
{
	static const char *const workers[] = {
		[NEZHA_TUNE_OPENMPI] = NEZHA_LIBEXECDIR "/nezha-tune-worker.openmpi",
		[NEZHA_TUNE_MPICH] = NEZHA_LIBEXECDIR "/nezha-tune-worker.mpich",
	};
	int status = NEZHA_OK;

	/* A link stays one; and jobs with NEZHA_LEARNED lock the file itself. */
	options->own_output = nezha_file_follow(options->output);
	if (options->own_output)
		options->output = options->own_output;
	if (options->mpi == NEZHA_TUNE_UNKNOWN)
		status = nezha_tune_ask(options->words, options->word_count, &options->mpi);
	if (status != NEZHA_OK)
		return status;
	if (!options->library)
		options->library = NEZHA_LIBDIR "/libnezha_pmpi.so";
	if (!options->worker)
		options->worker = workers[options->mpi];
	status = check_file(options->library, R_OK, "--library", "Nezha's library");
	if (status == NEZHA_OK)
		status = check_file(options->worker, X_OK, "--worker",
		                    options->mpi == NEZHA_TUNE_OPENMPI ? "the worker for Open MPI"
		                                                       : "the worker for MPICH");
	if (status == NEZHA_OK)
		status = make_whole(&options->library, &options->own_library);
	return status == NEZHA_OK ? make_whole(&options->worker, &options->own_worker) : status;
}
