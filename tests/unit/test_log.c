/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning/log.h"

static char folder[] = "/tmp/nezha-test-log-XXXXXX";

/* The test's standard error is a pipe in packet mode: each read returns what one write(2) wrote. */
static struct {
	int read, saved;
} captured;

static void capture(void)
{
	int ends[2];

	assert_return_code(pipe2(ends, O_DIRECT | O_NONBLOCK | O_CLOEXEC), errno);
	captured.saved = dup(STDERR_FILENO);
	captured.read = ends[0];
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
}

static void release(void)
{
	dup2(captured.saved, STDERR_FILENO);
	close(captured.saved);
	close(captured.read);
}

/* The next line on standard error, "" if there is none. */
static const char *next(void)
{
	static char line[PIPE_BUF + 1];
	ssize_t n = read(captured.read, line, sizeof line - 1);

	line[n > 0 ? n : 0] = '\0';
	return line;
}

static const char *expected(const char *who, const char *rest)
{
	static char line[1100];
	char host[HOST_NAME_MAX + 1];

	gethostname(host, sizeof host);
	snprintf(line, sizeof line, "nezha[%s%s] %s", host, who, rest);
	return line;
}

static char *read_file(const char *path)
{
	static char text[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_return_code(fd, errno);
	n = read(fd, text, sizeof text - 1);
	close(fd);
	assert_return_code(n, errno);
	text[n] = '\0';
	return text;
}

/* Must come first: nothing was opened yet. */
static void before_open_warnings_go_to_stderr(void **state)
{
	(void)state;
	assert_int_equal(nezha_log_level(), NEZHA_LOG_WARN);
	capture();
	nezha_info("not shown");
	nezha_debug("not shown");
	nezha_warn("shown %d", 7);
	nezha_error("bad");
	assert_string_equal(next(), expected("", "warn: shown 7\n"));
	assert_string_equal(next(), expected("", "error: bad\n"));
	assert_string_equal(next(), "");
	release();
}

static void levels_and_ranks(void **state)
{
	(void)state;
	capture();
	nezha_log_open(NEZHA_LOG_DEBUG, NULL, 12);
	assert_int_equal(nezha_log_level(), NEZHA_LOG_DEBUG);
	nezha_debug("a");
	assert_string_equal(next(), expected(":12", "debug: a\n"));
	nezha_log_open(NEZHA_LOG_INFO, "", 0);
	nezha_debug("b");
	nezha_info("c");
	assert_string_equal(next(), expected(":0", "info: c\n"));
	nezha_log_open(NEZHA_LOG_ERROR, NULL, -1);
	nezha_warn("d");
	nezha_error("e");
	assert_string_equal(next(), expected("", "error: e\n"));
	assert_string_equal(next(), "");
	release();
}

static void a_line_is_one_write_and_one_line(void **state)
{
	char text[3000];
	const char *line;

	(void)state;
	capture();
	nezha_log_open(NEZHA_LOG_WARN, NULL, -1);
	nezha_warn("ends already\n");
	assert_string_equal(next(), expected("", "warn: ends already\n"));
	nezha_warn("two\nlines\tand \033[31mred\r");
	assert_string_equal(next(), expected("", "warn: two lines and ?[31mred?\n"));
	nezha_warn("%s", "");
	assert_string_equal(next(), expected("", "warn: \n"));
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	nezha_warn("%s", text);
	line = next();
	assert_int_equal(strlen(line), 1024);
	assert_int_equal(line[1023], '\n');
	assert_int_equal(line[1022], 'x');
	assert_string_equal(next(), "");
	release();
}

static void errno_is_printed_and_kept(void **state)
{
	(void)state;
	capture();
	nezha_log_open(NEZHA_LOG_WARN, NULL, 3);
	errno = ENOENT;
	nezha_warn("open: %m");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(next(), expected(":3", "warn: open: No such file or directory\n"));
	close(captured.read);
	errno = EAGAIN;
	dup2(captured.saved, STDERR_FILENO);
	close(STDERR_FILENO);
	nezha_warn("nowhere to go");   /* EBADF from write must not show */
	assert_int_equal(errno, EAGAIN);
	dup2(captured.saved, STDERR_FILENO);
	close(captured.saved);
}

static void files_are_appended_to_and_named_by_rank(void **state)
{
	char name[128], path[128], text[2300];

	(void)state;
	capture();
	snprintf(name, sizeof name, "%s/%%r-%%r.log", folder);
	snprintf(path, sizeof path, "%s/5-5.log", folder);
	nezha_log_open(NEZHA_LOG_INFO, name, 5);
	nezha_info("one");
	nezha_log_open(NEZHA_LOG_INFO, name, 5);   /* replaced by itself: appended */
	nezha_info("two");
	snprintf(text, sizeof text, "%s", expected(":5", "info: one\n"));
	strcat(text, expected(":5", "info: two\n"));
	assert_string_equal(read_file(path), text);
	nezha_log_open(NEZHA_LOG_INFO, NULL, 5);   /* and back */
	nezha_info("three");
	assert_string_equal(read_file(path), text);
	assert_string_equal(next(), expected(":5", "info: three\n"));
	assert_string_equal(next(), "");
	release();
	unlink(path);
}

static void a_file_that_cannot_be_opened_is_told(void **state)
{
	char path[128], rest[300], *longname;

	(void)state;
	capture();
	nezha_log_open(NEZHA_LOG_WARN, NULL, -1);
	snprintf(path, sizeof path, "%s/no/such/folder", folder);
	nezha_log_open(NEZHA_LOG_WARN, path, 1);
	snprintf(rest, sizeof rest,
	         "warn: cannot open the log file %s: No such file or directory; the log goes to "
	         "standard error\n",
	         path);
	assert_string_equal(next(), expected("", rest));
	nezha_warn("here");
	assert_string_equal(next(), expected(":1", "warn: here\n"));
	longname = malloc(PATH_MAX + 2);
	memset(longname, 'x', PATH_MAX + 1);
	longname[PATH_MAX + 1] = '\0';
	nezha_log_open(NEZHA_LOG_WARN, longname, 1);
	free(longname);
	assert_int_equal(strlen(next()), 1024);   /* the message, cut */
	nezha_warn("still");
	assert_string_equal(next(), expected(":1", "warn: still\n"));
	release();
}

#define THREADS 4
#define LINES 50

static void *log_lines(void *arg)
{
	for (int i = 0; i < LINES; i++)
		nezha_info("thread %d line %02d %s", *(int *)arg, i, "................................");
	return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
	char path[128], *line, *rest;
	pthread_t threads[THREADS];
	int ids[THREADS], next_line[THREADS] = { 0 }, total = 0;

	(void)state;
	snprintf(path, sizeof path, "%s/threads.log", folder);
	nezha_log_open(NEZHA_LOG_INFO, path, 0);
	for (int i = 0; i < THREADS; i++) {
		ids[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, log_lines, &ids[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	nezha_log_open(NEZHA_LOG_WARN, NULL, -1);
	for (line = strtok_r(read_file(path), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		int id, number, end = 0;

		assert_non_null(strstr(line, "thread "));
		sscanf(strstr(line, "thread "), "thread %d line %d ................................%n", &id,
		       &number, &end);
		assert_int_not_equal(end, 0);
		assert_in_range(id, 0, THREADS - 1);
		assert_int_equal(number, next_line[id]++);
		total++;
	}
	assert_int_equal(total, THREADS * LINES);
	unlink(path);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_open_warnings_go_to_stderr),
		cmocka_unit_test(levels_and_ranks),
		cmocka_unit_test(a_line_is_one_write_and_one_line),
		cmocka_unit_test(errno_is_printed_and_kept),
		cmocka_unit_test(files_are_appended_to_and_named_by_rank),
		cmocka_unit_test(a_file_that_cannot_be_opened_is_told),
		cmocka_unit_test(lines_of_threads_do_not_mix),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
