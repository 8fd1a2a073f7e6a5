/* SPDX-License-Identifier: BSD-3-Clause
 * Which calls go to the library unseen, being like the one before (pmpi/passes.h). */
#include "tests/unit/unit.h"

#include <mpi.h>

#include "pmpi/context.h"
#include "pmpi/passes.h"
#include "pmpi/run.h"

#define COUNT 4096
#define BYTES (4 * COUNT)
#define TYPE 4
#define OP 1
#define FROM ((const void *)0x4000)

struct nezha_context nezha_context;
_Thread_local bool nezha_run_inside;

static struct nezha_model model;
static struct nezha_model_class *const class = &model.classes[14];

static const struct nezha_mpi_call call = {
	.words = { 0, 0, COUNT, TYPE, OP, MPI_COMM_WORLD },
	.count = COUNT,
	.handle = MPI_COMM_WORLD,
	.caller = FROM,
	.bytes = BYTES,
	.model = &model,
};

static const struct nezha_passes_call like = {
	.sendbuf = (const void *)0x100000,
	.recvbuf = (const void *)0x200000,
	.count = COUNT,
	.datatype = TYPE,
	.operation = OP,
	.comm = MPI_COMM_WORLD,
	.caller = FROM,
};

static bool passes(void)
{
	return nezha_passes(&like);
}

/* A class of so many calls that the library does, and of which none is measured. */
static int begin(void **state)
{
	(void)state;
	model = (struct nezha_model){ .calls = 10 };
	*class = (struct nezha_model_class){ .best = NEZHA_ALG_NATIVE, .quiet = 3, .calls = 10 };
	nezha_passes_forget();
	return 0;
}

static void test_while_quiet(void **state)
{
	(void)state;
	assert_false(passes());
	nezha_passes_remember(&call);
	for (int i = 0; i < 3; i++)
		assert_true(passes());
	assert_false(passes());
	assert_int_equal(class->quiet, 0);
	assert_int_equal(class->calls, 13);
	assert_int_equal(model.calls, 13);
	class->quiet = 1;
	class->best = NEZHA_ALG_RING;
	assert_false(passes());
	assert_int_equal(class->quiet, 1);
}

/* Another call is looked at, and the one that is remembered passes after it.  So is one with wrong buffers: it is not counted, on no
 * rank. */
static void test_same_arguments(void **state)
{
	struct nezha_passes_call others[] = { like, like, like, like, like, like, like };

	others[0].comm = MPI_COMM_SELF;
	others[1].count++;
	others[2].datatype++;
	others[3].operation++;
	others[4].caller = (const char *)FROM + 1;
	others[5].sendbuf = others[5].recvbuf;
	others[6].recvbuf = NULL;
	(void)state;
	nezha_passes_remember(&call);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_false(nezha_passes(&others[i]));
	nezha_run_inside = true;
	assert_false(passes());
	nezha_run_inside = false;
	assert_int_equal(class->calls, 10);
	assert_true(passes());
}

/* Its model may be gone. */
static void test_forgets(void **state)
{
	(void)state;
	nezha_passes_remember(&call);
	nezha_passes_forget();
	assert_false(passes());
	nezha_passes_remember(&call);
	assert_true(passes());
}

/* Who wants to know of each call hears of each. */
static void test_all_are_wanted(void **state)
{
	char there;

	(void)state;
	nezha_context.report = (struct nezha_report *)&there;
	nezha_passes_remember(&call);
	assert_false(passes());
	nezha_context.report = NULL;
	nezha_context.trace = (struct nezha_trace *)&there;
	nezha_passes_remember(&call);
	assert_false(passes());
	nezha_context.trace = NULL;
	nezha_context.job.settings.check = NEZHA_CHECK_PLAN;
	nezha_passes_remember(&call);
	assert_false(passes());
	nezha_context.job.settings.check = 0;
	nezha_passes_remember(&call);
	assert_true(passes());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_while_quiet, begin),
		cmocka_unit_test_setup(test_same_arguments, begin),
		cmocka_unit_test_setup(test_forgets, begin),
		cmocka_unit_test_setup(test_all_are_wanted, begin),
	};

	return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
