/* SPDX-License-Identifier: BSD-3-Clause
 * Running commands of the user's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tuning/status.h"
#include "tuning/text.h"
#include "tuning/tune.h"

#define LISTEN_SECONDS 30
#define SILENCE_SECONDS 300     /* of a job: longer than the longest call that is worth measuring */
#define END_SECONDS 5           /* for a command to end when asked to, before it is made to */
#define AFTER_SECONDS 15        /* for a launcher to end after the worker's last line */
#define TURN_MS 100
#define KEPT 12                 /* of a job's other lines, for when it fails */
#define LINE_MAX 1024
#define WARNINGS 8              /* different ones that are known to have been shown */

struct child {
	pid_t pid;
	int fd;                     /* what it says; -1: closed */
	bool ended;
	int status;                 /* as of waitpid, if it ended */
	size_t len;
	char line[LINE_MAX];        /* so much of the next line; cut there */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In the child.  Its own process group: a Ctrl-C is for us, and we end the whole group. */
__attribute__((noreturn)) static void become(char *const *command, int out)
{
	int in = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	for (const char *const *name = nezha_tune_own; *name; name++)
		unsetenv(*name);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(127);
	execvp(command[0], command);
	dprintf(STDERR_FILENO, "%s: %s\n", command[0], strerror(errno));
	_exit(127);
}

static int begin(char *const *command, struct child *child)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		nezha_tune_problem("no pipe for \"%s\": %s", command[0], strerror(errno));
		return NEZHA_ERR_SYSTEM;
	}
	fflush(NULL);
	*child = (struct child){ .fd = ends[0] };
	child->pid = fork();
	if (child->pid == 0)
		become(command, ends[1]);
	close(ends[1]);
	if (child->pid < 0) {
		nezha_tune_problem("no process for \"%s\": %s", command[0], strerror(errno));
		close(ends[0]);
		return NEZHA_ERR_SYSTEM;
	}
	setpgid(child->pid, child->pid);
	return NEZHA_OK;
}

/* Passes on the lines that are in `bytes`. */
static int take(struct child *child, const char *bytes, size_t count, nezha_tune_line_fn *line, void *context)
{
	for (size_t i = 0; i < count; i++) {
		int status;

		if (bytes[i] != '\n') {
			if (child->len < LINE_MAX - 1)
				child->line[child->len++] = bytes[i];
			continue;
		}
		child->line[child->len] = '\0';
		if (child->len && child->line[child->len - 1] == '\r')
			child->line[child->len - 1] = '\0';
		child->len = 0;
		status = line(child->line, context);
		if (status < 0)
			return status;
	}
	return NEZHA_OK;
}

/* Waits a moment for what the child says, or its end.  *heard: something was said. */
static int turn(struct child *child, nezha_tune_line_fn *line, void *context, bool *heard)
{
	struct pollfd poll_fd = { .fd = child->fd, .events = POLLIN };
	char bytes[4096];
	ssize_t got;

	*heard = false;
	if (poll(&poll_fd, child->fd < 0 ? 0 : 1, TURN_MS) > 0) {
		got = read(child->fd, bytes, sizeof bytes);
		if (got > 0) {
			*heard = true;
			return take(child, bytes, (size_t)got, line, context);
		}
		if (got == 0 || errno != EINTR) {
			close(child->fd);
			child->fd = -1;
		}
	}
	/* Somebody that it left behind may still hold the pipe: only its own end counts, once all is read. */
	if (!child->ended && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->ended = true;
	return NEZHA_OK;
}

/* Lines of a command that is being ended. */
static int ignore(const char *line, void *context)
{
	(void)line, (void)context;
	return NEZHA_OK;
}

/* Asks it, then makes it. */
static void end(struct child *child)
{
	double begun = now();
	bool heard;

	if (!child->ended)
		kill(-child->pid, SIGTERM);
	while (!child->ended && now() - begun < END_SECONDS)
		turn(child, ignore, NULL, &heard);
	if (!child->ended) {
		kill(-child->pid, SIGKILL);
		waitpid(child->pid, &child->status, 0);
		child->ended = true;
	}
	if (child->fd >= 0)
		close(child->fd);
	child->fd = -1;
}

static bool failed(const struct child *child)
{
	return !WIFEXITED(child->status) || WEXITSTATUS(child->status);
}

int nezha_tune_listen(char *const *command, nezha_tune_line_fn *line, void *context)
{
	struct child child;
	double until = now() + LISTEN_SECONDS;
	int status = begin(command, &child);
	bool heard = true;

	if (status != NEZHA_OK)
		return status;
	while (status == NEZHA_OK && (heard || !child.ended)) {
		status = turn(&child, line, context, &heard);
		if (status == NEZHA_OK && now() > until)
			status = NEZHA_ERR_TIMEOUT;
	}
	end(&child);
	return status == NEZHA_OK && failed(&child) ? NEZHA_ERR_SYSTEM : status;
}

/* ---- jobs ---- */

struct listener {
	nezha_tune_line_fn *line;
	void *context;
	bool finished;             /* the worker said "end" */
	bool told;                 /* ... or why it failed */
	size_t kept;               /* how many other lines there were */
	char other[KEPT][161];
};

/* Nezha's own warnings, as that a rail does not work: they are about all that is measured.  Each job has the same ones. */
static void show_warning(const char *line)
{
	static char shown[WARNINGS][161];
	static size_t count;

	for (size_t i = 0; i < count && i < WARNINGS; i++)
		if (!strncmp(line, shown[i], sizeof shown[i] - 1))
			return;
	snprintf(shown[count++ % WARNINGS], sizeof *shown, "%.160s", line);
	nezha_tune_problem("a job says: %s", line);
}

static int hear(const char *line, void *context)
{
	struct listener *l = context;
	const char *mark = strstr(line, NEZHA_TUNE_MARK);   /* launchers may put the rank before it */

	if (!mark && strstr(line, "nezha[") && strstr(line, "] warn: "))
		show_warning(line);
	if (!mark) {
		snprintf(l->other[l->kept++ % KEPT], sizeof *l->other, "%.160s", line);
		return NEZHA_OK;
	}
	mark += strlen(NEZHA_TUNE_MARK);
	l->finished = l->finished || !strcmp(mark, "end");
	l->told = l->told || !strncmp(mark, "failed ", 7);
	return l->line(mark, l->context);
}

static void show_other(const struct listener *l)
{
	size_t first = l->kept > KEPT ? l->kept - KEPT : 0;

	for (size_t i = first; i < l->kept; i++) {
		char text[sizeof *l->other];

		snprintf(text, sizeof text, "%s", l->other[i % KEPT]);
		nezha_text_clean(text, strlen(text));
		fprintf(stderr, "    | %.74s\n", text);
	}
}

static int judge(const struct child *child, const struct listener *l, const char *what)
{
	if (l->finished)
		return NEZHA_OK;
	if (!l->told && WIFSIGNALED(child->status))
		nezha_tune_problem("%s: mpirun was ended by signal %d; its last words:", what,
		                   WTERMSIG(child->status));
	else if (!l->told)
		nezha_tune_problem("%s: mpirun ended with status %d before all was measured%s", what,
		                   WEXITSTATUS(child->status), l->kept ? "; its last words:" : "");
	show_other(l);
	return NEZHA_ERR_SYSTEM;
}

int nezha_tune_run(char *const *command, const char *what, nezha_tune_line_fn *line, void *context,
                   const volatile int *stop)
{
	struct listener l = { .line = line, .context = context };
	double last = now(), finished = 0;
	struct child child;
	int status = begin(command, &child);
	bool heard = true;

	if (status != NEZHA_OK)
		return status;
	while (status == NEZHA_OK && (heard || !child.ended) && !*stop) {
		status = turn(&child, hear, &l, &heard);
		if (heard)
			last = now();
		if (l.finished && !finished)
			finished = now();
		if (finished && now() - finished > AFTER_SECONDS)
			break;
		if (now() - last > SILENCE_SECONDS) {
			nezha_tune_problem("%s: nothing was heard of the job for %d s; its last words:", what,
			                   SILENCE_SECONDS);
			show_other(&l);
			status = NEZHA_ERR_TIMEOUT;
		}
	}
	end(&child);
	if (status != NEZHA_OK)
		return status;
	if (*stop && !l.finished)
		return NEZHA_INPROGRESS;
	return judge(&child, &l, what);
}
