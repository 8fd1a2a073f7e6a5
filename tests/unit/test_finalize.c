/* SPDX-License-Identifier: BSD-3-Clause
 * What becomes of the rails in MPI_Finalize, and when: with an MPI library and parts of Nezha that only note that they were
 * called. */
#include "tests/unit/unit.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/finalize.h"
#include "pmpi/learned.h"
#include "pmpi/patience.h"
#include "pmpi/rails.h"
#include "pmpi/summary.h"
#include "pmpi/timeline.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define HOUR 3600.0             /* s */

struct nezha_context nezha_context;
_Thread_local int nezha_calls_here;

/* What was done, a word each, in turn; and for how long all ranks would be awaited. */
static char done[256];
static double awaited;
static bool awaiting;           /* a barrier has begun and is not over */
static MPI_Comm_delete_attr_function *at_the_end;

static void note(const char *what)
{
	size_t at = strlen(done);

	snprintf(done + at, sizeof done - at, "%s%s", at ? " " : "", what);
}

/* ---- the MPI library ---- */

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	assert_int_equal(comm, MPI_COMM_WORLD);
	*request = 77;
	awaiting = true;
	return MPI_SUCCESS;
}

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete, int *keyval, void *extra)
{
	(void)copy, (void)extra;
	at_the_end = delete;
	*keyval = 5;
	return MPI_SUCCESS;
}

int PMPI_Comm_delete_attr(MPI_Comm comm, int keyval)
{
	assert_int_equal(keyval, 5);
	return at_the_end(comm, keyval, NULL, NULL);
}

int PMPI_Comm_free(MPI_Comm *comm)
{
	*comm = MPI_COMM_NULL;
	return MPI_SUCCESS;
}

int PMPI_Comm_free_keyval(int *keyval)
{
	*keyval = 0;
	return MPI_SUCCESS;
}

int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
	(void)value;
	assert_int_equal(comm, MPI_COMM_SELF);
	assert_int_equal(keyval, 5);
	return MPI_SUCCESS;
}

static bool calls_back;         /* the library, in MPI_Finalize */
static bool hands_off_then;     /* when its MPI_Finalize began */

static int finalize_library(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f, nezha_word caller)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)caller;
	note("library");
	hands_off_then = nezha_context.hands_off;
	return calls_back ? at_the_end(MPI_COMM_SELF, 5, NULL, NULL) : MPI_SUCCESS;
}

/* ---- parts of Nezha ---- */

int nezha_patience_wait(MPI_Request *requests, int count, double seconds)
{
	assert_true(awaiting);
	assert_int_equal(count, 1);
	assert_int_equal(requests[0], 77);
	awaiting = false;
	awaited = seconds;
	note("all-are-here");
	return NEZHA_OK;
}

/* Each look at the clock takes a quarter of a second. */
uint64_t nezha_patience_now(void)
{
	static uint64_t now = 0;

	return now += 250000000;
}

void nezha_context_aim(void)
{
}

void nezha_comm_give_up_all(void)
{
	note("give-up");
}

void nezha_summary_write(void)
{
	note("report");
}

void nezha_learned_end(void)
{
	note("table");
}

void nezha_comm_end(void)
{
	note("teams");
}

void nezha_rails_end(void)
{
	note("rails");
}

void nezha_timeline_write(void)
{
	note("timeline-written");
}

void nezha_timeline_end(void)
{
	note("timeline");
}

void nezha_job_free(struct nezha_job *job)
{
	(void)job;
	note("job");
}

/* ---- tests ---- */

/* A job that uses rails, up to MPI_Finalize. */
static int begin(void **state)
{
	(void)state;
	memset(&nezha_context, 0, sizeof nezha_context);
	nezha_context.on = true;
	nezha_context.job.settings.enable = true;
	nezha_calls_here = 0;
	done[0] = '\0';
	awaited = 0;
	awaiting = false;
	at_the_end = NULL;
	return nezha_finalize_begin() != MPI_SUCCESS || !at_the_end;
}

static void finalize(void)
{
	assert_int_equal(at_the_end(MPI_COMM_SELF, 5, NULL, NULL), MPI_SUCCESS);
	assert_false(nezha_context.on);
}

/* Nobody closes what another rank may still need for the end of its last call. */
static void test_all_are_awaited(void **state)
{
	(void)state;
	finalize();
	assert_string_equal(done, "all-are-here report table teams rails timeline");
	assert_true(awaited > HOUR);
	/* once */
	finalize();
	assert_string_equal(done, "all-are-here report table teams rails timeline");
}

/* A rank may be dead. */
static void test_not_for_ever_after_a_failure(void **state)
{
	(void)state;
	nezha_context.failed = true;
	finalize();
	assert_string_equal(done, "all-are-here report table teams rails timeline");
	assert_true(awaited > 0 && awaited < 60);
}

static void test_jobs_without_rails_are_spared(void **state)
{
	(void)state;
	nezha_context.job.settings.enable = false;
	finalize();
	assert_string_equal(done, "report table teams rails timeline");
	begin(state);
	nezha_context.table_floor = NEZHA_FLOOR_ALL;
	finalize();
	assert_string_equal(done, "report table teams rails timeline");
}

/* What another thread's call uses stays, though it is given up; so does what the one uses from whose error handler this is. */
static void test_calls_that_do_not_end(void **state)
{
	(void)state;
	nezha_context.calls = 1;
	finalize();
	assert_string_equal(done, "give-up all-are-here report table timeline-written");
	assert_true(nezha_context.hands_off);
	begin(state);
	nezha_context.calls = nezha_calls_here = 1;
	finalize();
	assert_string_equal(done, "all-are-here report table timeline-written");
	assert_true(nezha_context.hands_off);
}

/* While the library still locks, and only once. */
static void test_calls_end_before_the_library(void **state)
{
	struct nezha_host host = { .native = { [NEZHA_CALL_Finalize] = finalize_library } };

	(void)state;
	nezha_context.host = &host;
	nezha_context.calls = 1;
	calls_back = true;
	assert_int_equal(nezha_mpi_finalize(0, 0, 0, 0, 0, 0, 0), MPI_SUCCESS);
	assert_string_equal(done, "give-up library all-are-here report table timeline-written");
	assert_true(hands_off_then);
	/* From an error handler: this thread's own call is no reason to leave the callbacks' calls without what they use. */
	begin(state);
	nezha_context.host = &host;
	nezha_context.calls = nezha_calls_here = 1;
	assert_int_equal(nezha_mpi_finalize(0, 0, 0, 0, 0, 0, 0), MPI_SUCCESS);
	calls_back = false;
	assert_string_equal(done, "library all-are-here report table timeline-written");
	assert_false(hands_off_then);
	assert_true(nezha_context.hands_off);
}

/* The library may call back long after its MPI_Finalize, when a session ends: by then nothing of the job is left.  But what the program
 * does in callbacks of its own comes first. */
static void test_without_a_callback(void **state)
{
	struct nezha_host host = { .native = { [NEZHA_CALL_Finalize] = finalize_library } };

	(void)state;
	nezha_context.host = &host;
	assert_int_equal(nezha_mpi_finalize(0, 0, 0, 0, 0, 0, 0), MPI_SUCCESS);
	assert_string_equal(done, "library all-are-here report table teams rails timeline job");
	finalize();
	assert_string_equal(done, "library all-are-here report table teams rails timeline job");
	begin(state);
	nezha_context.host = &host;
	calls_back = true;
	assert_int_equal(nezha_mpi_finalize(0, 0, 0, 0, 0, 0, 0), MPI_SUCCESS);
	assert_string_equal(done, "library all-are-here report table teams rails timeline job");
	calls_back = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_all_are_awaited, begin),
		cmocka_unit_test_setup(test_not_for_ever_after_a_failure, begin),
		cmocka_unit_test_setup(test_jobs_without_rails_are_spared, begin),
		cmocka_unit_test_setup(test_calls_that_do_not_end, begin),
		cmocka_unit_test_setup(test_calls_end_before_the_library, begin),
		cmocka_unit_test_setup(test_without_a_callback, begin),
	};

	nezha_log_open(NEZHA_LOG_ERROR, "/dev/null", -1);
	return cmocka_run_group_tests_name("finalize", tests, NULL, NULL);
}
