/* SPDX-License-Identifier: BSD-3-Clause
 * The helper thread, with a pthread_create that can fail and an MPI that is only counted. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static bool no_threads;

static int create_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	return no_threads ? EAGAIN : pthread_create(thread, attr, start, argument);
}

#define pthread_create create_thread
#include "pmpi/helper.c"
#undef pthread_create

static _Thread_local bool barred;
static atomic_int progressed, bars;

void nezha_progress(void *context)
{
	(void)context;
	assert_false(barred);
	progressed++;
}

void nezha_progress_never(void)
{
	barred = true;
	bars++;
}

static void add_one(void *argument)
{
	*(int *)argument += barred;
}

/* Ends when the waiting thread has let MPI progress, or after 10 s. */
static void wait_for_progress(void *argument)
{
	const struct timespec pause = { 0, 1000000 };

	for (int i = 0; i < 10000 && !progressed; i++)
		nanosleep(&pause, NULL);
	*(int *)argument = progressed;
}

static void does_its_jobs(void **state)
{
	struct nezha_helper *helper = nezha_helper_create();
	int done = 0;

	(void)state;
	assert_non_null(helper);
	for (int i = 0; i < 1000; i++) {
		nezha_helper_start(helper, add_one, &done);
		nezha_helper_wait(helper);
		assert_int_equal(done, i + 1);
	}
	assert_int_equal(bars, 1);
	nezha_helper_destroy(helper);
}

static void lets_mpi_progress(void **state)
{
	struct nezha_helper *helper = nezha_helper_create();
	int seen = 0;

	(void)state;
	progressed = 0;
	nezha_helper_start(helper, wait_for_progress, &seen);
	nezha_helper_wait(helper);
	assert_true(seen > 0);
	nezha_helper_destroy(helper);
}

static void no_thread_is_to_be_had(void **state)
{
	(void)state;
	no_threads = true;
	assert_null(nezha_helper_create());
	no_threads = false;
	nezha_helper_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_its_jobs), cmocka_unit_test(lets_mpi_progress), cmocka_unit_test(no_thread_is_to_be_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
