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

/* ... and be it only seen while the rail is lost. */
static void test_seen_apart_in_loss(void **state)
{
	struct bed bed = { 0 };
	int library = 0;

	(void)state;
	assert_int_equal(call(&bed, S, 100000, 1000000), NEZHA_ALG_RING);
	assert_int_equal(call(&bed, S, 100000, 1000000), NEZHA_ALG_NATIVE);
	bed.lost = true;
	for (int i = 0; i < 50; i++)
		library += call(&bed, S, 100000, 1000000) == NEZHA_ALG_NATIVE;
	assert_true(library > 40);
}

/* What one class has seen holds for small ones, too, which cannot see it. */
static void test_small_class_of_apart(void **state)
{
	struct bed bed = { 0 };
	int library = 0;

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&bed, S, 1500000, 1000000);
	bed.lost = true;
	for (int i = 0; i < 100; i++)
		library += call(&bed, 32 * K, 100000, 2000000) == NEZHA_ALG_NATIVE;
	assert_true(library > 70);
}

/* The library is the chosen one, and the loss is heard in one of the rails' rare calls: the next of these hears that it is over. */
static void test_lost_in_retry(void **state)
{
	static const uint64_t sizes[] = { 64 * K, 16 * M };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct bed bed = { .busy = true };
		int calls = 0, rails;

		for (int k = 0; k < 100; k++)
			call(&bed, sizes[i], 10000000, 15000000);
		assert_int_equal(call(&bed, sizes[i], 10000000, 15000000), NEZHA_ALG_NATIVE);
		bed.lost = true;
		while (!bed.model.lost && calls++ < 1000)
			call(&bed, sizes[i], 10000000, 15000000);
		assert_true(bed.model.lost);
		bed.lost = false;
		rails = bed.calls[NEZHA_ALG_RING];
		for (int k = 0; k < 10000; k++)
			call(&bed, sizes[i], 70000000, 10000000);
		assert_false(bed.model.lost);
		assert_true(bed.calls[NEZHA_ALG_RING] - rails > 5000);
	}
}

/* The rail was lost before the communicator was made. */
static void test_lost_from_the_first_call(void **state)
{
	struct bed bed = { .busy = true, .lost = true };

	(void)state;
	without_library(&bed, 16 * M, 5000000, 10000000, 50);
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
		cmocka_unit_test(test_seen_apart_in_loss),
		cmocka_unit_test(test_small_class_of_apart),
		cmocka_unit_test(test_lost_in_retry),
		cmocka_unit_test(test_lost_from_the_first_call),
	};

	return cmocka_run_group_tests_name("model_lost", tests, NULL, NULL);
}
