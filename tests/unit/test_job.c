/* SPDX-License-Identifier: BSD-3-Clause
 * What rank 0 tells all: nodes, bytes on the wire, and the floor below which calls are not looked at. */
#include "tests/unit/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmpi/job.h"
#include "pmpi/job_files.h"
#include "tuning/file.h"
#include "tuning/status.h"

#define K UINT64_C(1024)

/* Rank 0's job with these variables besides the defaults, one rank on each of the hosts. */
static void make_job(struct nezha_job *job, const char *tune, const uint64_t *hosts, int ranks)
{
	*job = (struct nezha_job){ .rank = 0, .ranks = ranks };
	unsetenv("NEZHA_TUNE");
	if (tune)
		setenv("NEZHA_TUNE", tune, 1);
	assert_int_equal(nezha_job_read(job), NEZHA_OK);
	assert_int_equal(nezha_job_place(job, hosts), NEZHA_OK);
}

static void test_places_ranks_on_nodes(void **state)
{
	const uint64_t hosts[] = { 7, UINT64_MAX, 7, 0, 7, UINT64_MAX };
	struct nezha_job job;

	(void)state;
	make_job(&job, NULL, hosts, 6);
	assert_int_equal(job.scale.ranks, 6);
	assert_int_equal(job.scale.nodes, 3);
	assert_int_equal(job.scale.ppn, 3);
	assert_int_equal(job.node[0], job.node[2]);
	assert_int_equal(job.node[0], job.node[4]);
	assert_int_equal(job.node[1], job.node[5]);
	assert_int_not_equal(job.node[0], job.node[1]);
	assert_int_not_equal(job.node[3], job.node[0]);
	assert_int_not_equal(job.node[3], job.node[1]);
	for (int i = 0; i < 6; i++)
		assert_in_range(job.node[i], 0, 2);
	nezha_job_free(&job);
}

static void test_others_get_the_same(void **state)
{
	const uint64_t hosts[] = { 5, 5, 3 };
	struct nezha_job job, other = { .rank = 2, .ranks = 3 };
	void *bytes;
	size_t len;

	(void)state;
	make_job(&job, "alg=ring,min=1M,block=128K", hosts, 3);
	assert_int_equal(nezha_job_pack(&job, &bytes, &len), NEZHA_OK);
	unsetenv("NEZHA_TUNE");
	assert_int_equal(nezha_job_guess(&other), NEZHA_OK);
	assert_int_equal(nezha_job_unpack(&other, bytes, len), NEZHA_OK);
	assert_int_equal(other.rank, 2);
	assert_memory_equal(&other.scale, &job.scale, sizeof(job.scale));
	assert_memory_equal(other.node, job.node, 3 * sizeof(*job.node));
	assert_memory_equal(other.key, job.key, sizeof(job.key));
	assert_string_equal(other.settings.tune, job.settings.tune);
	for (uint64_t size = 1; size < 8192 * K; size *= 2) {
		struct nezha_plan a, b;

		nezha_plan_make(job.table, &job.scale, size, &a);
		nezha_plan_make(other.table, &other.scale, size, &b);
		assert_true(nezha_plan_equal(&a, &b));
		assert_int_equal(a.alg, size >= 64 * K ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE);
		if (size >= 1024 * K)
			assert_int_equal(a.block, 128 * K);
	}
	free(bytes);
	nezha_job_free(&other);
	nezha_job_free(&job);
}

static void test_keys_differ(void **state)
{
	const uint64_t hosts[] = { 1, 2 };
	struct nezha_job a, b;

	(void)state;
	make_job(&a, NULL, hosts, 2);
	make_job(&b, NULL, hosts, 2);
	assert_memory_not_equal(a.key, b.key, sizeof(a.key));
	nezha_job_free(&a);
	nezha_job_free(&b);
}

/* Every cut of a packed job, and some bent ones, are refused. */
static void test_refuses_what_is_not_whole(void **state)
{
	const uint64_t hosts[] = { 1, 2 };
	struct nezha_job job, other = { .rank = 1, .ranks = 2 };
	unsigned char *bytes;
	void *packed;
	size_t len;

	(void)state;
	make_job(&job, NULL, hosts, 2);
	assert_int_equal(nezha_job_pack(&job, &packed, &len), NEZHA_OK);
	assert_int_equal(nezha_job_guess(&other), NEZHA_OK);
	for (size_t cut = 0; cut < len; cut++) {
		bytes = malloc(cut + 1);
		memcpy(bytes, packed, cut);
		assert_int_equal(nezha_job_unpack(&other, bytes, cut), NEZHA_ERR_PROTOCOL);
		free(bytes);
	}
	other.ranks = 3;
	assert_int_equal(nezha_job_unpack(&other, packed, len), NEZHA_ERR_PROTOCOL);
	other.ranks = 2;
	bytes = packed;
	bytes[0] ^= 0x80;          /* another length of the settings */
	assert_int_equal(nezha_job_unpack(&other, packed, len), NEZHA_ERR_PROTOCOL);
	bytes[0] ^= 0x80;
	bytes[len - 2] = '?';      /* the table's last bracket */
	assert_int_equal(nezha_job_unpack(&other, packed, len), NEZHA_ERR_INVALID);
	free(packed);
	nezha_job_free(&other);
	nezha_job_free(&job);
}

/* No plan of any communicator within the job may be other than native below the floor. */
static void check_floor(const struct nezha_job *job, uint64_t floor)
{
	for (int ranks = 2; ranks <= job->scale.ranks; ranks++) {
		for (int nodes = 1; nodes <= job->scale.nodes && nodes <= ranks; nodes++) {
			for (int ppn = (ranks + nodes - 1) / nodes; ppn <= job->scale.ppn; ppn++) {
				struct nezha_scale scale = { ranks, nodes, ppn };

				assert_true(nezha_plan_native_below(job->table, &scale) >= floor);
			}
		}
	}
}

/* Of a table with so many numbers of ranks, one on a node and several, in which nothing up to 32 KiB goes to the rails. */
static void check_floor_of(int groups, uint64_t floor)
{
	struct nezha_job job = { .ranks = 1000, .scale = { 1000, 500, 8 } };
	char text[128 * 160] = "{\"version\": 1, \"collectives\": {\"allreduce\": [";

	for (int i = 0; i < groups; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s{\"comm_size_min\": %d, \"nodes_min\": 2, \"ppn_max\": %d, \"rules\": "
		         "[{\"msg_size_max\": \"32K\", \"alg\": \"native\"}, {\"alg\": \"ring\"}]}", i ? ", " : "", 2 + i * 7, 1 + i % 5);
	strcat(text, "]}}");
	job.table = parse(text);
	assert_int_equal(nezha_job_floor(&job), floor);
	nezha_table_free(job.table);
}

static void test_floor(void **state)
{
	const uint64_t apart[] = { 1, 2, 3, 4 }, together[] = { 1, 1, 1, 1 }, pairs[] = { 1, 1, 2, 2 };
	struct nezha_scale scale = { 4, 4, 1 };
	struct nezha_job job;

	(void)state;
	make_job(&job, NULL, apart, 4);
	assert_int_equal(nezha_job_floor(&job), nezha_plan_native_below(job.table, &scale));
	check_floor(&job, nezha_job_floor(&job));
	nezha_job_free(&job);

	/* On one node nothing goes to the rails: nothing needs to be looked at. */
	make_job(&job, NULL, together, 4);
	assert_true(nezha_job_floor(&job) == UINT64_MAX);
	nezha_job_free(&job);

	/* Two of four ranks may make a communicator with one rank on each node. */
	make_job(&job, NULL, pairs, 4);
	assert_int_equal(nezha_job_floor(&job), nezha_plan_native_below(job.table, &scale));
	check_floor(&job, nezha_job_floor(&job));
	nezha_job_free(&job);

	make_job(&job, "alg=ring,min=100,max=200", together, 4);
	assert_int_equal(nezha_job_floor(&job), 100);
	nezha_job_free(&job);

	make_job(&job, "alg=ring", together, 4);
	assert_int_equal(nezha_job_floor(&job), 1);
	nezha_job_free(&job);
	check_floor_of(20, 32 * K + 1);     /* as many scales as nezha-tune may measure */
	check_floor_of(120, 1);             /* too many to look at all */
}

static void test_errors_of_the_user(void **state)
{
	struct nezha_job job = { .rank = 0, .ranks = 2 };

	(void)state;
	setenv("NEZHA_TUNE", "alg=rung", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_TUNE");
	setenv("NEZHA_TABLE", "/nonexistent", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_TABLE");
	setenv("NEZHA_REPORT", "/nonexistent/report", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_REPORT");
	setenv("NEZHA_TRACE", "/nonexistent/%r", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_TRACE");
	setenv("NEZHA_LEARNED", "/nonexistent/table", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	setenv("NEZHA_LEARNED", "/etc/passwd", 1);        /* not a table, and perhaps not ours to write */
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_LEARNED");
	setenv("NEZHA_RAILS", "10.0.0.0", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_RAILS");
	setenv("NEZHA_POLICY", "fastest", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_ERR_INVALID);
	nezha_job_free(&job);
	unsetenv("NEZHA_POLICY");
	assert_int_equal(nezha_job_read(&job), NEZHA_OK);
	nezha_job_free(&job);
}

/* To a new one whose name could not be a setting. */
static void go_to_odd_folder(char folder[32])
{
	strcpy(folder, "/tmp/nezha\tjob.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
}

/* The names of files that rank 0 writes are made whole, which is nothing that the others could be told. */
static void test_files_keep_their_folder(void **state)
{
	const uint64_t hosts[] = { 1, 2 };
	struct nezha_job job, other = { .rank = 1, .ranks = 2 };
	char folder[32], wanted[64];
	void *bytes;
	size_t len;

	(void)state;
	go_to_odd_folder(folder);
	setenv("NEZHA_REPORT", "report.json", 1);
	setenv("NEZHA_LEARNED", "link.json", 1);
	assert_int_equal(symlink("real.json", "link.json"), 0);       /* of what is there yet, it would have to be a table */
	assert_int_equal(nezha_job_guess(&other), NEZHA_OK);
	make_job(&job, NULL, hosts, 2);
	close(open("real.json", O_WRONLY | O_CREAT, 0600));
	assert_int_equal(nezha_job_pack(&job, &bytes, &len), NEZHA_OK);
	assert_int_equal(nezha_job_fix_files(&job.settings), NEZHA_OK);
	assert_int_equal(nezha_job_unpack(&other, bytes, len), NEZHA_OK);
	snprintf(wanted, sizeof wanted, "%s/report.json", folder);
	assert_string_equal(job.settings.report, wanted);
	/* not in the link's place, and with the lock of those who use the file's own name */
	snprintf(wanted, sizeof wanted, "%s/real.json", folder);
	assert_string_equal(job.settings.learned, wanted);
	unlink("link.json");
	unlink("real.json");
	unlink("report.json");          /* made when it was looked whether that can be written */
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
	unsetenv("NEZHA_REPORT");
	unsetenv("NEZHA_LEARNED");
	free(bytes);
	nezha_job_free(&other);
	nezha_job_free(&job);
}

/* Whether a job can be of this table. */
static int read_table(char *text)
{
	char path[] = "/tmp/nezha-job.XXXXXX";
	struct nezha_job job = { .rank = 0, .ranks = 2 };
	int file = mkstemp(path), status;

	assert_true(file >= 0);
	assert_int_equal(nezha_file_write(file, text, strlen(text)), NEZHA_OK);
	close(file);
	setenv("NEZHA_TABLE", path, 1);
	status = nezha_job_read(&job);
	unsetenv("NEZHA_TABLE");
	unlink(path);
	nezha_job_free(&job);
	free(text);
	return status;
}

/* Other ranks read the table as rank 0 prints it. */
static void test_tables_that_others_cannot_read(void **state)
{
	(void)state;
	assert_int_equal(read_table(full_table_text("{\"alg\":\"native\"}")), NEZHA_OK);
	assert_int_equal(read_table(full_table_text(RULE_THAT_GROWS)), NEZHA_ERR_INVALID);
}

/* A job of another one's has that one's environment. */
static void test_spawned_jobs_have_files_of_their_own(void **state)
{
	struct nezha_job job = { .rank = 0, .ranks = 2, .spawned = true };
	char folder[32], wanted[64];

	(void)state;
	go_to_odd_folder(folder);
	setenv("NEZHA_REPORT", "report.json", 1);
	setenv("NEZHA_TRACE", "t.%r.json", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_OK);
	snprintf(wanted, sizeof wanted, "report.json.%d", (int)getpid());
	assert_string_equal(job.settings.report, wanted);
	assert_int_equal(unlink(wanted), 0);
	snprintf(wanted, sizeof wanted, "t.%%r.json.%d", (int)getpid());
	assert_string_equal(job.settings.trace, wanted);
	snprintf(wanted, sizeof wanted, "t.0.json.%d", (int)getpid());
	assert_int_equal(unlink(wanted), 0);
	assert_int_equal(access("report.json", F_OK), -1);
	nezha_job_free(&job);
	setenv("NEZHA_REPORT", "/dev/null", 1);
	setenv("NEZHA_TRACE", "/dev/null", 1);
	assert_int_equal(nezha_job_read(&job), NEZHA_OK);
	assert_string_equal(job.settings.report, "/dev/null");
	assert_string_equal(job.settings.trace, "/dev/null");
	nezha_job_free(&job);
	unsetenv("NEZHA_REPORT");
	unsetenv("NEZHA_TRACE");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_ranks_on_nodes),
		cmocka_unit_test(test_others_get_the_same),
		cmocka_unit_test(test_keys_differ),
		cmocka_unit_test(test_refuses_what_is_not_whole),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_errors_of_the_user),
		cmocka_unit_test(test_files_keep_their_folder),
		cmocka_unit_test(test_spawned_jobs_have_files_of_their_own),
		cmocka_unit_test(test_tables_that_others_cannot_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
