/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/daemons.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define PORTS 12000                      /* PORTS to 2 * PORTS - 1: below those that the kernel gives out, which others may have */

struct nezha_ina_address daemons_where[DAEMONS];
pid_t daemons[DAEMONS];

static const char *program;
static char listens[DAEMONS][32];
static pid_t keeper;                     /* leads the daemons' process group */
static int keeper_pipe[2] = { -1, -1 };

void pause_ms(long ms)
{
	struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

void daemons_end_one(int i, int signal)
{
	if (daemons[i] <= 0)
		return;
	kill(daemons[i], signal);
	kill(daemons[i], SIGCONT);
	waitpid(daemons[i], NULL, 0);
	daemons[i] = 0;
}

/* What a test that failed has left: its daemon, and perhaps a bad network. */
static void end_left_over(int i)
{
	if (daemons[i] <= 0)
		return;
	daemons_end_one(i, SIGKILL);
	unsetenv("LD_PRELOAD");
}

static void end_all_left_over(void)
{
	for (int i = 0; i < DAEMONS; i++)
		end_left_over(i);
}

/* ---- the keeper ---- */

/* Ends the group that it leads, itself too, when the other end of the pipe is closed, however this program ends: a signal kills, or a time
 * limit, before any of its own code could.  A daemon's own wish to die with its parent would come true with the thread that has started it,
 * a member's or a killer's.  What the caller has open is not the keeper's to hold. */
static void keep(void)
{
	char byte;

	setpgid(0, 0);
	dup2(keeper_pipe[0], 0);
	closefrom(1);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	kill(0, SIGKILL);
	_exit(1);
}

static void start_keeper(void)
{
	if (pipe2(keeper_pipe, O_CLOEXEC))
		abort();
	keeper = fork();
	if (!keeper)
		keep();
	/* Here, too: the first daemon may be quicker than the keeper. */
	if (keeper < 0 || setpgid(keeper, keeper))
		abort();
	close(keeper_pipe[0]);
}

static void end_keeper(void)
{
	close(keeper_pipe[1]);
	waitpid(keeper, NULL, 0);
}

/* ---- daemons ---- */

/* Whether it listens: within 10 s on the busiest host. */
static bool listens_now(int i)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = daemons_where[i].address,
	                          .sin_port = htons(daemons_where[i].port) };

	for (int k = 0; k < 2000; k++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool connected = !connect(fd, (struct sockaddr *)&to, sizeof to);

		close(fd);
		if (connected)
			return true;
		pause_ms(5);
	}
	return false;
}

void daemons_start_one(int i, const char *memory)
{
	char *argv[] = { (char *)program, "--listen", listens[i], "--memory", (char *)memory, NULL };
	const struct sched_param first = { .sched_priority = 1 };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;

	end_left_over(i);

	/* If this program is killed, the daemon stays for a moment: it must not hold what a caller has open, a lock for instance. */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setpgroup(&attributes, keeper);
	if (posix_spawn(&daemons[i], program, &actions, &attributes, argv, environ))
		abort();
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	/* It stands for a switch, which has processors of its own: on a busy host it would be late, and rightly count as dead.  Not all
	 * users may do that. */
	sched_setscheduler(daemons[i], SCHED_RR, &first);
	if (!listens_now(i))
		abort();
}

uint64_t daemons_waited(int i)
{
	unsigned long long waited = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)daemons[i]);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %llu", &waited) != 1)
		waited = 0;
	fclose(file);
	return waited;
}

void daemons_start(const char *memory)
{
	daemons_start_one(0, memory);
}

void daemons_end(int signal)
{
	daemons_end_one(0, signal);
}

void daemons_start_several(int count)
{
	for (int i = 0; i < count; i++)
		daemons_start_one(i, "64M");
}

void daemons_end_several(int count)
{
	for (int i = 0; i < count; i++)
		daemons_end_one(i, SIGTERM);
}

bool daemons_make_lossy(const char *how)
{
	const char *build = getenv("abs_top_builddir");
	char lossy[4096];

	end_all_left_over();
	snprintf(lossy, sizeof lossy, "%s/tests/conformance/lossy.so", build ? build : ".");
	if (access(lossy, R_OK))
		return false;
	setenv("LD_PRELOAD", lossy, 1);
	setenv("LOSSY", how, 1);
	return true;
}

bool daemons_find(void)
{
	static char path[4096];
	const char *build = getenv("abs_top_builddir");

	snprintf(path, sizeof path, "%s/nezha-aggd", build ? build : ".");
	program = path;
	/* The leak check of a daemon that gets a signal meanwhile may wait for ever; tests/tools/aggd.test has it checked. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	if (access(path, X_OK)) {
		printf("skipped: there is no %s (abs_top_builddir)\n", path);
		return false;
	}
	for (int i = 0; i < DAEMONS; i++) {
		daemons_where[i] = (struct nezha_ina_address){ .address = { htonl(0x7f4d00feu + ((uint32_t)i << 8)) },
		                                               .port = (uint16_t)(PORTS + getpid() % PORTS) };
		snprintf(listens[i], sizeof listens[i], "127.77.%d.254:%u", i, daemons_where[i].port);
	}
	start_keeper();
	atexit(end_keeper);
	atexit(end_all_left_over);       /* before that */
	return true;
}
