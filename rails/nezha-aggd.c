/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-aggd: the aggregation daemon that an operator runs on the switch or gateway. */
#include <getopt.h>
#include <net/if.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "rails/aggd.h"
#include "rails/aggd_xdp.h"
#include "rails/ina_address.h"
#include "tuning/bytes.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define SHOWN_MAX 60
#define MEMORY_DEFAULT (256ull << 20)
#define MEMORY_LEAST (64ull << 10)

enum { GOOD = 0, BAD = 1, USAGE = 2 };

static const char help[] =
	"Usage: nezha-aggd --listen ADDRESS[:PORT] [--memory BYTES] [--unicast]\n"
	"                  [--xdp DEVICE[,DEVICE...]]\n"
	"Reduces what the ranks of Nezha's jobs send it, and gives each the result.  Run it on\n"
	"the switch, the gateway, or a host whose network is as fast as all its clients'\n"
	"together; jobs name it as NEZHA_RAILS=ina:ADDRESS[:PORT],...\n"
	"\n"
	"  --listen ADDRESS[:PORT]  an IPv4 address of this host, in a subnet of the clients;\n"
	"                           port 4790 (UDP and TCP), if none is given\n"
	"  --memory BYTES           for all jobs together, such as 64M or 1G; 256M, if not\n"
	"                           given.  Jobs that do not fit are refused and go on without\n"
	"  --unicast                results go to each rank, also where multicast would work;\n"
	"                           not with --xdp\n"
	"  --xdp DEVICE[,DEVICE...] fold integers of 4 and 8 bytes by an XDP program on these\n"
	"                           devices, by which all clients come; see nezha-aggd(1)\n"
	"  --help                   print this\n"
	"  --version                print the version, and whether XDP is built in\n"
	"\n"
	"SIGTERM: take no more jobs, end when those that are in have left, or after 10 s, or\n"
	"at a second SIGTERM.  SIGUSR1: print statistics.\n"
	"Exit status: 0 it was told to end; 1 it cannot listen, or load XDP; 2 wrong arguments.\n";

static struct nezha_aggd *aggd;

static void on_signal(int number)
{
	nezha_aggd_order(aggd, number == SIGUSR1 ? NEZHA_AGGD_REPORT :
	                       number == SIGTERM ? NEZHA_AGGD_DRAIN : NEZHA_AGGD_STOP);
}

/* SIG_BLOCK: they wait; SIG_UNBLOCK: those that waited come. */
static void hold_signals(int how)
{
	sigset_t orders;

	sigemptyset(&orders);
	sigaddset(&orders, SIGTERM);
	sigaddset(&orders, SIGINT);
	sigaddset(&orders, SIGUSR1);
	sigprocmask(how, &orders, NULL);
}

static void handle_signals(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGPIPE, SIG_IGN);       /* whoever reads what it says may go; it stays */
}

static int wrong(const char *option, const char *value, const char *what)
{
	fprintf(stderr, "nezha-aggd: %s: \"%.*s%s\" %s\n", option, SHOWN_MAX, value,
	        strlen(value) > SHOWN_MAX ? "..." : "", what);
	return USAGE;
}

static int take_listen(const char *value, struct nezha_aggd_config *config)
{
	struct nezha_ina_address address;
	const char *why;

	if (nezha_ina_address_parse(value, &address, &why) != NEZHA_OK)
		return wrong("--listen", value, why);
	config->address = address.address;
	config->port = address.port;
	return GOOD;
}

static int take_memory(const char *value, struct nezha_aggd_config *config)
{
	if (nezha_bytes_parse(value, &config->memory) != NEZHA_OK || config->memory < MEMORY_LEAST)
		return wrong("--memory", value, "is no amount of memory; allowed are 64K and more, such as 256M or 1G");
	return GOOD;
}

static int take_devices(const char *value, struct nezha_aggd_config *config)
{
	for (const char *name = value; name; name = strchr(name, ',')) {
		size_t length;

		name += name > value;            /* behind the comma */
		length = strcspn(name, ",");
		if (!length || length >= IF_NAMESIZE)
			return wrong("--xdp", value, "does not name network devices of this host, separated by commas");
	}
	config->devices = value;
	return GOOD;
}

/* GOOD to go on; else the exit status + 1. */
static int parse(int argc, char **argv, struct nezha_aggd_config *config)
{
	static const struct option options[] = {
		{ "listen", required_argument, NULL, 'l' }, { "memory", required_argument, NULL, 'm' },
		{ "unicast", no_argument, NULL, 'u' },      { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },      { "xdp", required_argument, NULL, 'x' },
		{ NULL, 0, NULL, 0 },
	};
	int option, status = GOOD;

	while (status == GOOD && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 'l':
			status = take_listen(optarg, config);
			break;
		case 'm':
			status = take_memory(optarg, config);
			break;
		case 'u':
			config->multicast = false;
			break;
		case 'x':
			status = take_devices(optarg, config);
			break;
		case 'h':
			fputs(help, stdout);
			return GOOD + 1;
		case 'v':
			printf("nezha-aggd " PACKAGE_VERSION "\nXDP: %s\n", aggd_xdp_about());
			return GOOD + 1;
		default:
			fputs("nezha-aggd --help tells what is allowed\n", stderr);
			status = USAGE;
		}
	if (status == GOOD && optind < argc)
		status = wrong("argument", argv[optind], "is too much; nezha-aggd --help tells what is allowed");
	if (status == GOOD && !config->address.s_addr) {
		fputs("nezha-aggd: --listen ADDRESS[:PORT] is missing: where its clients reach it\n", stderr);
		status = USAGE;
	}
	if (status == GOOD && config->devices && !config->multicast)
		status = wrong("--xdp", config->devices, "cannot stand beside --unicast: XDP sends results to groups only");
	return status == GOOD ? GOOD : status + 1;
}

/* There is a connection for each rank of each communicator. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	struct nezha_aggd_config config = { .memory = MEMORY_DEFAULT, .multicast = true };
	int status = parse(argc, argv, &config);

	if (status != GOOD)
		return status - 1;
	nezha_log_open(NEZHA_LOG_INFO, NULL, -1);
	if (sodium_init() < 0) {
		fputs("nezha-aggd: libsodium cannot be used\n", stderr);
		return BAD;
	}
	raise_descriptor_limit();
	/* Who sees that it listens may order it at once.  An order that comes before the handlers would end it, or be lost:
	 * a shell starts what shall run in the background with SIGINT ignored. */
	hold_signals(SIG_BLOCK);
	if (nezha_aggd_create(&config, &aggd) != NEZHA_OK)
		return BAD;
	handle_signals(on_signal);
	hold_signals(SIG_UNBLOCK);
	nezha_aggd_run(aggd);
	handle_signals(SIG_IGN);   /* it ends; there is no aggd to order any more */
	nezha_aggd_destroy(aggd);
	return GOOD;
}
