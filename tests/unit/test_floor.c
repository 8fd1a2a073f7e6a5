/* SPDX-License-Identifier: BSD-3-Clause
 * Which calls of MPI_Allreduce go to the MPI library before anything is looked up, and what is left of one that has failed: with a
 * library and parts of Nezha that only note which way a call went. */
#include "tests/unit/unit.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmpi/agree.h"
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/passes.h"
#include "pmpi/run.h"
#include "pmpi/team.h"

/* Datatypes by the bytes of an element, and one that is none of Nezha's. */
#define UNKNOWN 3

#define NO_MEMORY 23            /* an error code */

struct nezha_context nezha_context;
_Thread_local int nezha_calls_here;
_Thread_local bool nezha_run_inside;

static bool looked_at;
static int told;                /* the error handler */
static int looked_up;           /* callers, as to whether they are the library's */
static enum nezha_reason match = NEZHA_REASON_TYPE;

static int allreduce_of_library(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                                nezha_word caller)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)caller;
	looked_at = false;
	return MPI_SUCCESS;
}

/* What lies above 0x5000 is the library's. */
static bool from_library(const void *caller)
{
	looked_up++;
	return (uintptr_t)caller > 0x5000;
}

static const struct nezha_host host = {
	.from_library = from_library,
	.native = { [NEZHA_CALL_Allreduce] = allreduce_of_library, [NEZHA_CALL_Allreduce_c] = allreduce_of_library },
};

/* ---- parts of Nezha ---- */

size_t nezha_handles_size(const struct nezha_handles *handles, MPI_Datatype datatype)
{
	(void)handles;
	return datatype == UNKNOWN ? 0 : (size_t)datatype;
}

/* What is looked at is left to the library after that, or, in the test of callers, fails when its communicator is looked up. */
enum nezha_reason nezha_handles_match(const struct nezha_handles *handles, MPI_Datatype datatype, MPI_Op operation,
                                      enum nezha_type *type, enum nezha_op *op)
{
	(void)handles, (void)datatype, (void)operation;
	*type = NEZHA_FLOAT32;
	*op = NEZHA_SUM;
	return match;
}

int nezha_run(struct nezha_mpi_call *call)
{
	assert_int_equal(call->plan.reason, match == NEZHA_REASON_RULE ? NEZHA_REASON_LIBRARY : match);
	looked_at = true;
	return MPI_SUCCESS;
}

/* There is no memory for it. */
int nezha_comm_find(MPI_Comm handle, struct nezha_comm **out)
{
	(void)out;
	assert_int_equal(handle, MPI_COMM_WORLD);
	assert_int_equal(match, NEZHA_REASON_RULE);
	assert_int_equal(nezha_context.calls, 1);
	assert_int_equal(nezha_calls_here, 1);
	return NO_MEMORY;
}

/* The error handler may do anything: nothing of the call may be left then. */
void nezha_failure_tell(MPI_Comm comm)
{
	assert_int_equal(comm, MPI_COMM_WORLD);
	assert_int_equal(nezha_context.calls, 0);
	assert_int_equal(nezha_calls_here, 0);
	told++;
}

/* Like the one before, which the library did. */
static bool like_before;

bool nezha_passes(const struct nezha_passes_call *call)
{
	assert_int_equal(call->comm, MPI_COMM_WORLD);
	assert_int_equal(call->operation, 1);
	assert_true(call->sendbuf == (const void *)0x1000);
	return like_before && call->count > 0;
}

void nezha_passes_remember(const struct nezha_mpi_call *call)
{
	(void)call;
	fail();
}

void nezha_comm_hold(struct nezha_comm *comm)
{
	(void)comm;
	fail();
}

void nezha_comm_release(struct nezha_comm *comm)
{
	(void)comm;
	fail();
}

int nezha_team_open(MPI_Comm handle, struct nezha_comm *comm)
{
	(void)handle, (void)comm;
	fail();
	return MPI_SUCCESS;
}

int nezha_agree(MPI_Comm handle, struct nezha_comm *comm, const struct nezha_plan *plan, uint64_t bytes)
{
	(void)handle, (void)comm, (void)plan, (void)bytes;
	fail();
	return MPI_SUCCESS;
}

/* ---- tests ---- */

static void begin(uint64_t floor)
{
	nezha_context.host = &host;
	nezha_context.on = true;
	nezha_context.job.settings.enable = true;
	nezha_context.floor = floor;
}

/* As MPI_Allreduce and as MPI_Allreduce_c. */
static void check(int64_t count, MPI_Datatype type, bool wanted)
{
	static const nezha_word buffers[2] = { 0x1000, 0x2000 };

	looked_at = !wanted;
	nezha_mpi_allreduce_c(buffers[0], buffers[1], (nezha_word)count, (nezha_word)type, 1, MPI_COMM_WORLD, 0);
	assert_int_equal(looked_at, wanted);
	if (count != (int)count)
		return;
	looked_at = !wanted;
	/* of an int the upper half of the word is anything */
	nezha_mpi_allreduce(buffers[0], buffers[1], (nezha_word)count ^ 0xabcdull << 32, (nezha_word)type, 1, MPI_COMM_WORLD, 0);
	assert_int_equal(looked_at, wanted);
}

/* The floor is one of bytes, whatever an element has of them. */
static void test_bytes_decide(void **state)
{
	(void)state;
	begin(16384);
	for (int size = 1; size <= 8; size *= 2) {
		check(1, size, false);
		check(16384 / size - 1, size, false);
		check(16384 / size, size, true);
		check(16384 / size + 1, size, true);
	}
	/* no whole number of elements */
	begin(100);
	check(12, 8, false);
	check(13, 8, true);
	check(24, 4, false);
	check(25, 4, true);
}

/* Too few for any type are not looked at; more of a type that is not known are. */
static void test_unknown_types(void **state)
{
	(void)state;
	begin(16384);
	check(2047, UNKNOWN, false);
	check(2048, UNKNOWN, true);
}

/* The library shall say what it says of them. */
static void test_wrong_counts(void **state)
{
	(void)state;
	begin(16384);
	check(-1, 4, true);
	check(INT32_MIN, 4, true);
	check(INT64_MIN, 4, true);
	check(INT64_MAX, 8, true);
	check(0, 4, false);
}

static void test_all_and_none(void **state)
{
	(void)state;
	begin(0);
	check(0, 4, true);
	check(1, 1, true);
	check(1 << 20, 4, true);
	begin(1);
	check(0, 4, false);
	check(1, 1, true);
	begin(NEZHA_FLOOR_ALL);
	check(1, 1, false);
	check(1 << 20, 8, false);
	check(INT32_MAX, 8, false);
	check((int64_t)1 << 40, 8, false);
	check(1 << 20, UNKNOWN, false);
}

static void test_like_the_one_before(void **state)
{
	(void)state;
	begin(16384);
	like_before = true;
	check(16384, 4, false);
	check(-1, 4, true);
	like_before = false;
	check(16384, 4, true);
}

static int call_from(uintptr_t caller)
{
	return nezha_mpi_allreduce(0x1000, 0x200000, 1 << 16, 4, 1, MPI_COMM_WORLD, caller);
}

/* That goes through all objects of the process. */
static void test_callers_are_looked_up_once(void **state)
{
	(void)state;
	begin(16384);
	match = NEZHA_REASON_RULE;
	looked_up = told = 0;
	for (int i = 0; i < 50; i++)
		for (uintptr_t caller = 0x4000; caller < 0x4006; caller++)
			assert_int_equal(call_from(caller), NO_MEMORY);
	assert_int_equal(looked_up, 6);
	assert_int_equal(told, 300);
	looked_at = false;
	assert_int_equal(call_from(0x6000), MPI_SUCCESS);
	assert_true(looked_at);
	assert_int_equal(looked_up, 7);
	assert_int_equal(told, 300);
	match = NEZHA_REASON_TYPE;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_decide),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_wrong_counts),
		cmocka_unit_test(test_all_and_none),
		cmocka_unit_test(test_like_the_one_before),
		cmocka_unit_test(test_callers_are_looked_up_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
