/* SPDX-License-Identifier: BSD-3-Clause
 * What the model does while a rail is lost, over which the library may hang. */
#include "tests/unit/unit.h"

#include "tests/unit/model_bed.h"

/* So many calls, all over the rails; they take twice as long as with all of the rails. */
static void without_library(struct bed *bed, uint64_t bytes, uint64_t native, uint64_t rails, int calls)
{
	for (int i = 0; i < calls; i++)
		assert_int_equal(call(bed, bytes, native, 2 * rails), NEZHA_ALG_RING);
}

/* The library is half as fast as the rails: the next try would come, and what is left of the rails is no faster than it. */
static void test_no_try(void **state)
{
	struct bed bed = { .busy = true };

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&bed, 16 * M, 18000000, 10000000);
	assert_int_equal(bed.calls[NEZHA_ALG_NATIVE], 1);
	bed.lost = true;
	without_library(&bed, 16 * M, 18000000, 10000000, 500);
	bed.lost = false;
	assert_int_equal(call(&bed, 16 * M, 18000000, 10000000), NEZHA_ALG_RING);
	for (int i = 0; i < 3; i++)
		call(&bed, 16 * M, 18000000, 10000000);
	assert_int_equal(bed.calls[NEZHA_ALG_NATIVE], 2);
	for (int i = 0; i < 60; i++)
		assert_int_equal(call(&bed, 16 * M, 18000000, 10000000), NEZHA_ALG_RING);
}

/* Nothing is known of the class yet; it is found out when the rail is back. */
static void test_new_class(void **state)
{
	struct bed bed = { .busy = true };

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&bed, 16 * M, 18000000, 10000000);
	bed.lost = true;
	without_library(&bed, 16 * M, 18000000, 10000000, 1);
	without_library(&bed, S, 100000, 1000000, 50);
	bed.lost = false;
	for (int i = 0; i < 20; i++)
		call(&bed, S, 100000, 1000000);
	assert_int_equal(call(&bed, S, 100000, 1000000), NEZHA_ALG_NATIVE);
}

/* A try that was under way when the rail was lost is none, and is made again. */
static void test_lost_in_try(void **state)
{
	struct bed bed = { .busy = true };

	(void)state;
	assert_int_equal(call(&bed, 16 * M, 5000000, 10000000), NEZHA_ALG_RING);
	assert_int_equal(call(&bed, 16 * M, 5000000, 10000000), NEZHA_ALG_NATIVE);
	bed.lost = true;
	without_library(&bed, 16 * M, 5000000, 10000000, 50);
	bed.lost = false;
	for (int i = 0; i < 20; i++)
		call(&bed, 16 * M, 5000000, 10000000);
	assert_int_equal(call(&bed, 16 * M, 5000000, 10000000), NEZHA_ALG_NATIVE);
}

/* Not every call of a small class has something to tell; that the rail is back is heard at once. */
static void test_heard_at_once(void **state)
{
	(void)state;
	for (int calls = 40; calls < 44; calls++) {
		struct bed bed = { .busy = true };

		for (int i = 0; i < 100; i++)
			call(&bed, 32 * K, 900000, 300000);
		bed.lost = true;
		for (int i = 0; i < calls; i++)
			call(&bed, 32 * K, 900000, 300000);
		assert_true(bed.model.lost);
		bed.lost = false;
		call(&bed, 32 * K, 900000, 300000);
		assert_false(bed.model.lost);
	}
}

/* The library was seen to use another network: it is tried as ever. */
static void test_apart_tries(void **state)
{
	struct bed bed = { 0 };
	int before;

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&bed, S, 1500000, 1000000);
	bed.lost = true;
	before = bed.calls[NEZHA_ALG_NATIVE];
	for (int i = 0; i < 400; i++)
		call(&bed, S, 1500000, 1000000);
	assert_true(bed.calls[NEZHA_ALG_NATIVE] > before);
}

/* ... and takes over where the rails have become the slower ones. */
static void test_apart_takes_over(void **state)
{
	struct bed bed = { 0 };
	int library = 0;

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&bed, S, 1500000, 1000000);
	bed.lost = true;
	for (int i = 0; i < 200; i++)
		library += call(&bed, S, 1500000, 4000000) == NEZHA_ALG_NATIVE;
	assert_true(library > 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_try),
		cmocka_unit_test(test_new_class),
		cmocka_unit_test(test_lost_in_try),
		cmocka_unit_test(test_heard_at_once),
		cmocka_unit_test(test_apart_tries),
		cmocka_unit_test(test_apart_takes_over),
	};

	return cmocka_run_group_tests_name("model_lost", tests, NULL, NULL);
}
