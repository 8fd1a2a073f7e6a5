/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune's arguments, the commands that it makes of them, and its journal. */
#include "tests/unit/unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/file.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/tune.h"

#define K UINT64_C(1024)
#define M (K * K)

static char problem[600];

void nezha_tune_problem(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(problem, sizeof problem, format, args);
	va_end(args);
}

typedef int read_fn(const char *text, struct nezha_tune_list *out);

static void assert_list(read_fn *read, const char *text, size_t count, const uint64_t *values)
{
	struct nezha_tune_list list;

	if (read(text, &list) != NEZHA_OK)
		fail_msg("refused: %s", text);
	assert_int_equal(list.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list.value[i], values[i]);
}

/* Refused with a line that has the value and `allowed` in it. */
static void assert_refused(read_fn *read, const char *text, const char *allowed)
{
	struct nezha_tune_list list;

	*problem = '\0';
	if (read(text, &list) != NEZHA_ERR_INVALID)
		fail_msg("accepted: %s", text);
	if (!strstr(problem, text) || !strstr(problem, allowed))
		fail_msg("\"%s\" for \"%s\"", problem, text);
}

static void reads_ranks(void **state)
{
	static const char *const wrong[] = {
		"", "0", "1", "2,", ",2", "2,,4", "2 4", "-2", "2K", "100001", "two", "2;4", "2,4x",
		"2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34",
	};

	(void)state;
	assert_list(nezha_tune_read_ranks, "2", 1, (uint64_t[]){ 2 });
	assert_list(nezha_tune_read_ranks, "8,2,4,2", 3, (uint64_t[]){ 2, 4, 8 });
	for (size_t i = 0; i + 1 < sizeof wrong / sizeof *wrong; i++)
		assert_refused(nezha_tune_read_ranks, wrong[i], "from 2 to 100000");
	assert_int_equal(nezha_tune_read_ranks(wrong[13], &(struct nezha_tune_list){ 0 }), NEZHA_ERR_INVALID);
}

static void reads_sizes(void **state)
{
	static const char *const wrong[] = {
		"", "0", "5", "64K,", "1M-64K", "64K-", "-64K", "2G", "64Q", "1M-2M-4M", "4-1G,8-1G,12-1G",
	};

	(void)state;
	assert_list(nezha_tune_read_sizes, "64K", 1, (uint64_t[]){ 64 * K });
	assert_list(nezha_tune_read_sizes, "1M,4", 2, (uint64_t[]){ 4, M });
	assert_list(nezha_tune_read_sizes, "64K-512K", 4, (uint64_t[]){ 64 * K, 128 * K, 256 * K, 512 * K });
	assert_list(nezha_tune_read_sizes, "64K-200K,100K", 3, (uint64_t[]){ 64 * K, 100 * K, 128 * K });
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_refused(nezha_tune_read_sizes, wrong[i], "from 4 to 1G");
}

static void ladders_of_blocks(void **state)
{
	static const struct {
		uint64_t bytes;
		size_t count;
		uint32_t block[3];
		int ppn;
	} cases[] = {
		{ 4, 1, { 4096 }, 1 },
		{ 4096, 1, { 4096 }, 1 },
		{ 8 * K, 2, { 8 * K, 4 * K }, 1 },
		{ 64 * K, 3, { 8 * K, 4 * K, 16 * K }, 1 },
		{ 256 * K, 3, { 12 * K, 4 * K, 24 * K }, 1 },
		{ M, 3, { 24 * K, 12 * K, 48 * K }, 1 },
		{ 64 * M, 3, { 512 * K, 256 * K, M }, 1 },
		{ 64 * M, 3, { 128 * K, 64 * K, 256 * K }, 2 },
	};
	struct nezha_table *builtin;

	(void)state;
	assert_int_equal(nezha_table_builtin(&builtin), NEZHA_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nezha_sweep_blocks blocks;

		nezha_tune_blocks(builtin, cases[i].ppn, cases[i].bytes, &blocks);
		if (blocks.count != cases[i].count || memcmp(blocks.bytes, cases[i].block, blocks.count * 4))
			fail_msg("%llu bytes: %zu blocks, first %u", (unsigned long long)cases[i].bytes, blocks.count,
			         blocks.bytes[0]);
	}
	nezha_table_free(builtin);
}

/* Words as one text, '|' after each. */
static void join(char *const *words, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (; *words; words++)
		at += (size_t)snprintf(buf + at, len - at, "%s|", *words);
}

static void splits_as_a_shell_would(void **state)
{
	static const char *const cases[][2] = {
		{ "mpirun", "mpirun|" },
		{ "  mpirun  -x a ", "mpirun|-x|a|" },
		{ "a 'b c' \"d e\"f", "a|b c|d ef|" },
		{ "a\\ b 'c\\d' \"e\\\"f\" ''", "a b|c\\d|e\"f||" },
		{ "a $B `c` *", "a|$B|`c`|*|" },
		{ "a b c d e f g h", "a|b|c|d|e|f|g|h|" },
	};
	static const char *const wrong[] = { "", "  ", "a 'b", "\"" };
	char text[200], **words;
	size_t count;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(nezha_tune_split(cases[i][0], &words, &count), NEZHA_OK);
		join(words, text, sizeof text);
		assert_string_equal(text, cases[i][1]);
		free(words);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(nezha_tune_split(wrong[i], &words, &count), NEZHA_ERR_INVALID);
}

static void knows_launchers(void **state)
{
	(void)state;
	assert_int_equal(nezha_tune_recognise("mpirun (Open MPI) 4.1.4\n"), NEZHA_TUNE_OPENMPI);
	assert_int_equal(nezha_tune_recognise("HYDRA build details:\n    Version: 4.0.2\n"), NEZHA_TUNE_MPICH);
	assert_int_equal(nezha_tune_recognise("slurm 22.05"), NEZHA_TUNE_UNKNOWN);
	assert_int_equal(nezha_tune_recognise(""), NEZHA_TUNE_UNKNOWN);
}

static void makes_commands(void **state)
{
	char *const words[] = { "mpirun", "--hostfile", "my hosts", NULL };
	char *const environment[] = {
		"HOME=/root", "NEZHA_RAILS=tcp:e0,tcp:e1", "NEZHA_TUNE=alg=native", "NEZHA_TABLE=x", "NEZHA_ENABLE=0",
		"NEZHA_REPORT=1", "NEZHA_LEARNED=y", "LD_PRELOAD=/lib/other.so", "NEZHA_POLICY=", NULL,
	};
	char *const again[] = { "LD_PRELOAD=/old/libnezha_pmpi.so", "NEZHA_TRACE=t", "NEZHA_TRACED", NULL };
	char *const several[] = { "LD_PRELOAD=/lib/a.so:/old/libnezha_pmpi.so /lib/b.so:", NULL };
	const struct nezha_tune_list sizes = { .count = 2, .value = { 64 * K, M } };
	struct nezha_tune_job job = {
		.words = words, .word_count = 3, .mpi = NEZHA_TUNE_OPENMPI, .library = "/l/libnezha_pmpi.so",
		.worker = "/w/worker", .seconds = 2.5, .ranks = 4, .ppn = 1, .sizes = &sizes,
	};
	struct nezha_table *builtin;
	char text[600], **command;

	(void)state;
	assert_int_equal(nezha_table_builtin(&builtin), NEZHA_OK);
	job.builtin = builtin;
	command = nezha_tune_command(&job, environment);
	join(command, text, sizeof text);
	assert_string_equal(text, "mpirun|--hostfile|my hosts|-n|4|-x|LD_PRELOAD=/lib/other.so:/l/libnezha_pmpi.so|-x|"
	                          "NEZHA_RAILS=tcp:e0,tcp:e1|-x|NEZHA_POLICY=|/w/worker|1|2.5|65536:8192,4096,16384|"
	                          "1048576:24576,12288,49152|");
	free(command);
	job.mpi = NEZHA_TUNE_MPICH;
	command = nezha_tune_command(&job, environment);
	join(command, text, sizeof text);
	assert_string_equal(text, "mpirun|--hostfile|my hosts|-n|4|-genv|LD_PRELOAD|/lib/other.so:/l/libnezha_pmpi.so|"
	                          "-genv|NEZHA_RAILS|tcp:e0,tcp:e1|-genv|NEZHA_POLICY||/w/worker|1|2.5|"
	                          "65536:8192,4096,16384|1048576:24576,12288,49152|");
	free(command);
	command = nezha_tune_command(&job, again);
	join(command, text, sizeof text);
	assert_non_null(strstr(text, "|LD_PRELOAD|/l/libnezha_pmpi.so|/w/worker|"));
	free(command);
	command = nezha_tune_command(&job, several);
	join(command, text, sizeof text);
	assert_non_null(strstr(text, "|LD_PRELOAD|/lib/a.so:/lib/b.so:/l/libnezha_pmpi.so|/w/worker|"));
	free(command);
	job.ppn = 2;
	command = nezha_tune_command(&job, again);
	join(command, text, sizeof text);
	assert_non_null(strstr(text, "|-n|4|-ppn|2|-genv|"));
	assert_non_null(strstr(text, "|/w/worker|2|2.5|"));
	free(command);
	job.mpi = NEZHA_TUNE_OPENMPI;
	command = nezha_tune_command(&job, again);
	join(command, text, sizeof text);
	assert_non_null(strstr(text, "|-n|4|--map-by|ppr:2:node|-x|"));
	free(command);
	nezha_table_free(builtin);
}

static void tells_what_is_left(void **state)
{
	/* weights 512, 1024, 2048 */
	const struct nezha_tune_list sizes = { .count = 3, .value = { 3 * 64 * K, 15 * 64 * K, 63 * 64 * K } };
	struct nezha_tune_progress progress = { .seconds = 14, .job_seconds = 14, .scales_left = 2, .sizes = &sizes, .done = 0 };

	(void)state;
	assert_true(nezha_tune_left(&progress) == 2 * 17 + 14);
	progress.done = 2;
	progress.scales_left = 0;
	assert_true(nezha_tune_left(&progress) == 8);
	progress.done = 3;
	assert_true(nezha_tune_left(&progress) == 0);
	/* a short job after the one that measured all */
	progress.job_seconds = 7;
	progress.done = 0;
	assert_true(nezha_tune_left(&progress) == 7);
	progress.after_seconds = 3;
	assert_true(nezha_tune_left(&progress) == 10);
}

/* Opens a journal that has this text: as many scales as that. */
static void read_journal(const char *text, size_t scales, struct nezha_tune_journal *out)
{
	char folder[] = "/tmp/nezha-tune.XXXXXX", output[64], path[80];

	assert_non_null(mkdtemp(folder));
	snprintf(output, sizeof output, "%s/table", folder);
	snprintf(path, sizeof path, "%s.journal", output);
	assert_int_equal(nezha_file_replace(path, text), NEZHA_OK);
	assert_int_equal(nezha_tune_journal_open(output, out), NEZHA_OK);
	assert_int_equal(out->count, scales);
	unlink(path);
	rmdir(folder);
}

#define MEASURED "time 65536 5 1 alg=native\nsize 65536\n"

static void leaves_out_what_makes_no_sense(void **state)
{
	struct nezha_tune_journal journal;

	(void)state;
	read_journal("job 4 2 2\n" MEASURED "concluded 1 1\n" MEASURED "concluded -4 2\nconcluded 4 0\nconcluded 4\njob 1 1 1\n"
	             MEASURED, 1, &journal);
	assert_int_equal(journal.scale[0].scale.ranks, 4);
	assert_int_equal(journal.scale[0].scale.ppn, 2);
	assert_non_null(nezha_measured_find(&journal.scale[0], 64 * K));
	nezha_tune_journal_close(&journal);
	read_journal("job 4 2 2\n" MEASURED "job 2 2 1\n" MEASURED "concluded 4 2\n", 2, &journal);
	assert_null(nezha_measured_find(&journal.scale[0], 64 * K));
	assert_non_null(nezha_measured_find(&journal.scale[1], 64 * K));
	nezha_tune_journal_close(&journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_ranks),
		cmocka_unit_test(reads_sizes),
		cmocka_unit_test(ladders_of_blocks),
		cmocka_unit_test(splits_as_a_shell_would),
		cmocka_unit_test(knows_launchers),
		cmocka_unit_test(makes_commands),
		cmocka_unit_test(tells_what_is_left),
		cmocka_unit_test(leaves_out_what_makes_no_sense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
