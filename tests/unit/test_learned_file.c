/* SPDX-License-Identifier: BSD-3-Clause
 * What jobs have learnt: the file that it goes into (NEZHA_LEARNED). */
#include "tests/unit/learned_bed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/skip.h"
#include "tuning/file.h"
#include "tuning/log.h"

#define JOBS 6

static const struct nezha_fingerprint here = { .mpi = "An MPI 1", .host = "h", .topology = "2 rails", .rails = "r" };
static char folder[] = "/tmp/nezha-learned.XXXXXX", path[64], log_path[64];

static char *content(const char *of)
{
	int fd = open(of, O_RDONLY | O_CLOEXEC);
	size_t len;
	char *text;

	if (fd < 0)
		return strdup("(none)");
	text = nezha_file_read(fd, 1 << 20, &len);
	close(fd);
	return text;
}

/* Writes what one model of that scale has learnt: the class of `bytes` is the library's. */
static int write_one(const struct nezha_scale *scale, uint64_t bytes, const struct nezha_fingerprint *where,
                     const char *to)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_learned learned = { .count = 0 };
	int status;

	learn(&model, 20, bytes, 1, 1000000000);
	assert_int_equal(nezha_learned_keep(&learned, scale, &model), NEZHA_OK);
	status = nezha_learned_write(&learned, builtin, where, to);
	nezha_learned_clear(&learned);
	return status;
}

/* That the last thing was refused: one line in the log that has the text, and the file has this content still. */
static void assert_refused(const char *text, const char *of, const char *before)
{
	char *log = content(log_path), *now = content(of), *end = strchr(log, '\n'), new[80];

	if (!end || end[1] || !strstr(log, text))
		fail_msg("said: %s", log);
	assert_string_equal(now, before);
	snprintf(new, sizeof new, "%s.new", of);
	assert_int_equal(access(new, F_OK), -1);
	free(now);
	free(log);
	assert_int_equal(truncate(log_path, 0), 0);
}

/* That a class is the library's, and the one above is not. */
static void assert_native(const struct nezha_table *table, const struct nezha_scale *scale, uint64_t bytes)
{
	struct nezha_plan plan, above;

	nezha_plan_make(table, scale, bytes, &plan);
	nezha_plan_make(table, scale, 2 * bytes, &above);
	assert_true(plan.alg == NEZHA_ALG_NATIVE && above.alg == NEZHA_ALG_RING);
}

static void extends_what_is_there(void **state)
{
	struct nezha_table *table;
	char *error, *text;

	(void)state;
	assert_int_equal(nezha_learned_check(path, &here), NEZHA_OK);
	assert_int_equal(write_one(&four, M, &here, path), NEZHA_OK);
	assert_int_equal(nezha_table_load(path, &table, &error), NEZHA_OK);
	assert_native_between(table, &four, M, 2 * M);
	assert_native_between(table, &two, M, 2 * M);
	assert_string_equal(table->header[NEZHA_TABLE_HEADER_topology], here.topology);
	assert_int_equal(strlen(table->header[NEZHA_TABLE_HEADER_date]), 10);
	nezha_table_free(table);
	/* Another scale besides it; then other sizes of the same one. */
	assert_int_equal(write_one(&two, 4 * M, &here, path), NEZHA_OK);
	assert_int_equal(write_one(&four, 8 * M, &here, path), NEZHA_OK);
	assert_int_equal(nezha_table_load(path, &table, &error), NEZHA_OK);
	assert_int_equal(table->group_count, 5);      /* and the three built-in ones behind them */
	assert_true(nezha_scales_find(table, 2, 1) && nezha_scales_find(table, 4, 1));
	assert_native(table, &two, M);         /* as the table had it for the nearest number of ranks */
	assert_native(table, &two, 4 * M);
	assert_native(table, &four, M);
	assert_native(table, &four, 8 * M);
	nezha_table_free(table);
	text = content(log_path);
	assert_string_equal(text, "");
	free(text);
}

/* A full table gets what is new of the scales that it has, and what it has no room for is told. */
static void a_full_table_is_kept_up(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_learned learned = { .count = 0 };
	struct nezha_table *table;
	char *error, *text;

	(void)state;
	learn(&model, 20, M, 1, 1000000000);
	for (int ranks = 2; ranks < 2 + NEZHA_TABLE_GROUPS; ranks++) {
		struct nezha_scale scale = { ranks, ranks, 1 };

		nezha_learned_keep(&learned, &scale, &model);
	}
	assert_int_equal(nezha_learned_write(&learned, builtin, &here, path), NEZHA_OK);
	nezha_learned_clear(&learned);
	text = content(log_path);
	assert_non_null(strstr(text, "the table has no room for 3 of the 128 scales"));
	free(text);
	assert_int_equal(truncate(log_path, 0), 0);
	assert_int_equal(write_one(&two, 4 * M, &here, path), NEZHA_OK);
	assert_int_equal(nezha_table_load(path, &table, &error), NEZHA_OK);
	assert_int_equal(table->group_count, NEZHA_TABLE_GROUPS);
	assert_native(table, &two, M);
	assert_native(table, &two, 4 * M);
	nezha_table_free(table);
	text = content(log_path);
	assert_string_equal(text, "");
	free(text);
}

/* What jobs read, they can read still when a user with another umask has written it. */
static void readers_stay(void **state)
{
	mode_t before = umask(077);
	struct stat file;

	(void)state;
	assert_int_equal(nezha_file_replace(path, "one"), NEZHA_OK);
	assert_true(!stat(path, &file) && (file.st_mode & 0777) == 0600);
	assert_int_equal(chmod(path, 0664), 0);
	assert_int_equal(nezha_file_replace(path, "two"), NEZHA_OK);
	assert_true(!stat(path, &file) && (file.st_mode & 0777) == 0664);
	umask(before);
}

static void put(const char *text)
{
	assert_int_equal(nezha_file_replace(path, text), NEZHA_OK);
}

static void one_at_a_time(void **state)
{
	int reserved = nezha_file_reserve(path, 0);
	char new[80], *text;

	(void)state;
	snprintf(new, sizeof new, "%s.new", path);
	assert_true(reserved >= 0);
	assert_int_equal(nezha_file_reserve(path, 0.05), -1);
	assert_int_equal(errno, EBUSY);
	nezha_file_release(path, reserved);
	assert_int_equal(access(new, F_OK), -1);
	assert_int_equal(access(path, F_OK), -1);
	/* What somebody left who was killed. */
	assert_int_equal(nezha_file_replace(new, "rubbish"), NEZHA_OK);
	reserved = nezha_file_reserve(path, 0);
	assert_true(reserved >= 0);
	assert_int_equal(nezha_file_replace(path, "one"), NEZHA_OK);
	assert_int_equal(nezha_file_reserve(path, 0), -1);
	nezha_file_release(path, reserved);
	assert_int_equal(access(new, F_OK), -1);
	text = content(path);
	assert_string_equal(text, "one");
	free(text);
	assert_int_equal(nezha_file_reserve("/nonexistent/x", 5), -1);
	assert_int_equal(errno, ENOENT);
}

/* The error that another user meets; 0: none. */
static int reserve_as_other(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgid(65534) || setuid(65534))
			_exit(255);
		_exit(nezha_file_reserve(path, 0) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* What one of them has opened the other one may not write to: it waits all the same, and goes on where that one was killed. */
static void users_one_at_a_time(void **state)
{
	int reserved;
	char new[80];
	mode_t before;

	(void)state;
	if (geteuid())
		SKIP_DETAIL("another user: only root can become one");
	assert_int_equal(chmod(folder, 0711), 0);
	before = umask(077);
	reserved = nezha_file_reserve(path, 0);
	umask(before);
	assert_true(reserved >= 0);
	assert_int_equal(reserve_as_other(), EBUSY);
	nezha_file_release(path, reserved);
	snprintf(new, sizeof new, "%s.new", path);
	assert_int_equal(nezha_file_replace(new, "rubbish"), NEZHA_OK);
	assert_int_equal(reserve_as_other(), 0);
	unlink(new);
}

/* Jobs of several sizes that end at the same time. */
static void nothing_is_lost_at_once(void **state)
{
	struct nezha_model model = { .pending_count = 0 };
	struct nezha_table *table;
	pid_t jobs[JOBS];
	char *error, *text;
	int start[2];

	(void)state;
	learn(&model, 20, M, 1, 1000000000);
	assert_int_equal(pipe(start), 0);
	for (int i = 0; i < JOBS; i++) {
		struct nezha_scale scale = { 2 + i, 2 + i, 1 };
		struct nezha_learned learned = { .count = 0 };
		char byte;

		assert_int_equal(nezha_learned_keep(&learned, &scale, &model), NEZHA_OK);
		jobs[i] = fork();
		assert_true(jobs[i] >= 0);
		if (!jobs[i]) {
			close(start[1]);
			(void)!read(start[0], &byte, 1);     /* returns when the last one has been started */
			_exit(nezha_learned_write(&learned, builtin, &here, path) != NEZHA_OK);
		}
		nezha_learned_clear(&learned);
	}
	close(start[0]);
	close(start[1]);
	for (int i = 0; i < JOBS; i++) {
		int status = -1;

		assert_int_equal(waitpid(jobs[i], &status, 0), jobs[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(nezha_table_load(path, &table, &error), NEZHA_OK);
	for (int i = 0; i < JOBS; i++)
		assert_non_null(nezha_scales_find(table, 2 + i, 1));
	nezha_table_free(table);
	text = content(log_path);
	assert_string_equal(text, "");
	free(text);
}

static void refuses_without_loss(void **state)
{
	const struct nezha_learned nothing = { .count = 0 };
	struct nezha_fingerprint other = here;
	char *before;

	(void)state;
	assert_int_equal(write_one(&four, M, &here, path), NEZHA_OK);
	before = content(path);
	strcpy(other.topology, "3 rails");
	assert_int_equal(write_one(&two, M, &other, path), NEZHA_ERR_INVALID);
	assert_refused("topology is \"2 rails\" there, \"3 rails\" here", path, before);
	assert_int_equal(nezha_learned_check(path, &other), NEZHA_ERR_INVALID);
	assert_refused("topology is \"2 rails\" there, \"3 rails\" here", path, before);
	assert_int_equal(nezha_learned_write(&nothing, builtin, &here, path), NEZHA_OK);
	assert_refused("no size had calls enough", path, before);
	assert_int_equal(write_one(&two, M, &here, "/nonexistent/table"), NEZHA_ERR_SYSTEM);
	assert_refused("NEZHA_LEARNED=/nonexistent/table: the table cannot be written: /nonexistent/table.new: No such file", path, before);
	free(before);
	/* What is no table is left alone. */
	put("{}");
	assert_int_equal(write_one(&two, M, &here, path), NEZHA_ERR_INVALID);
	assert_refused("the key \"version\" is missing", path, "{}");
}

static void knows_where_it_can_write(void **state)
{
	char below[80];

	(void)state;
	assert_int_equal(nezha_file_is_replaceable(path), NEZHA_OK);
	assert_int_equal(nezha_file_is_replaceable("a-file-here"), NEZHA_OK);
	assert_int_equal(nezha_file_is_replaceable(folder), NEZHA_ERR_SYSTEM);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(nezha_file_is_replaceable("/nonexistent/x"), NEZHA_ERR_SYSTEM);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(nezha_file_is_replaceable("/dev/null"), NEZHA_ERR_SYSTEM);
	put("x");
	snprintf(below, sizeof below, "%s/x", path);
	assert_int_equal(nezha_file_is_replaceable(below), NEZHA_ERR_SYSTEM);
	assert_int_equal(errno, ENOTDIR);
}

static int begin_file(void **state)
{
	(void)state;
	unlink(path);
	nezha_log_open(NEZHA_LOG_WARN, log_path, -1);
	return truncate(log_path, 0);
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/table", folder);
	snprintf(log_path, sizeof log_path, "%s/log", folder);
	return nezha_table_builtin(&builtin);
}

static int end(void **state)
{
	(void)state;
	nezha_table_free(builtin);
	nezha_log_open(NEZHA_LOG_WARN, NULL, -1);
	unlink(path);
	unlink(log_path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(extends_what_is_there, begin_file),
		cmocka_unit_test_setup(a_full_table_is_kept_up, begin_file),
		cmocka_unit_test_setup(readers_stay, begin_file),
		cmocka_unit_test_setup(one_at_a_time, begin_file),
		cmocka_unit_test_setup(users_one_at_a_time, begin_file),
		cmocka_unit_test_setup(nothing_is_lost_at_once, begin_file),
		cmocka_unit_test_setup(refuses_without_loss, begin_file),
		cmocka_unit_test_setup(knows_where_it_can_write, begin_file),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
