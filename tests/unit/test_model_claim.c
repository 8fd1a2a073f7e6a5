/* SPDX-License-Identifier: BSD-3-Clause
 * What the library has to bear out before it takes the place of the rails or of a mix. */
#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/model_bed.h"
#include "tuning/model_price.h"

/* The library's one time was a lucky one, and then the rails become slower than that, not than the library: it is asked once, and does not
 * take their place. */
static void test_stale(void **state)
{
	static const uint64_t sizes[] = { S, M };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct bed bed = { .busy = true };

		for (int k = 0; k < 10; k++)
			call(&bed, sizes[i], 18000000, 13500000);
		memset(bed.calls, 0, sizeof bed.calls);
		for (int k = 0; k < 200; k++)
			call(&bed, sizes[i], 22000000, 20000000);
		assert_int_equal(bed.model.classes[nezha_price_class(sizes[i])].best, NEZHA_ALG_RING);
		assert_true(bed.calls[NEZHA_ALG_NATIVE] <= 5);
		/* Each time the rails change it is asked again at most, and where it has become the faster one it is taken soon. */
		memset(bed.calls, 0, sizeof bed.calls);
		for (int k = 0; k < 400; k++)
			call(&bed, sizes[i], 60000000, k / 14 % 2 ? 20000000 : 13500000);
		assert_true(bed.calls[NEZHA_ALG_NATIVE] <= 4);
		for (int k = 0; k < 100; k++)
			call(&bed, sizes[i], 60000000, 90000000);
		assert_int_equal(bed.model.classes[nezha_price_class(sizes[i])].best, NEZHA_ALG_NATIVE);
	}
}

/* Single lucky calls of the library, however many, do not take the rails' place. */
static void test_lucky_now_and_then(void **state)
{
	struct bed bed = { .busy = true };

	(void)state;
	for (int k = 0; k < 20000; k++) {
		call(&bed, M, bed.calls[NEZHA_ALG_NATIVE] % 2 ? 12000000 : 30000000, 20000000);
		assert_true(k < 2 || bed.model.classes[20].best == NEZHA_ALG_RING);
	}
	assert_true(bed.spent <= UINT64_C(20000) * 20000000 * 102 / 100);
}

/* Of three calls of the library that has become the faster one the last was held up: it is tried again soon. */
static void test_claim_held_up(void **state)
{
	struct bed bed = { .busy = true };
	int native;

	(void)state;
	for (int k = 0; k < 40; k++)
		call(&bed, M, 30000000, 20000000);
	native = bed.calls[NEZHA_ALG_NATIVE];
	for (int k = 0; k < 600; k++)
		call(&bed, M, bed.calls[NEZHA_ALG_NATIVE] == native + 2 ? 1000000000 : 10000000, 20000000);
	assert_int_equal(bed.model.classes[20].best, NEZHA_ALG_NATIVE);
}

/* The rails become faster while the library's calls bear out that it is: what they told is not used later. */
static void test_claim_outdated(void **state)
{
	static const uint64_t library[] = { 20000000, 20000000, 15000000 };
	struct bed bed = { .busy = true };
	int native, tried;

	(void)state;
	for (int k = 0; k < 40; k++)
		call(&bed, M, 40000000, 30000000);
	native = bed.calls[NEZHA_ALG_NATIVE];
	for (int k = 0; k < 200 && bed.calls[NEZHA_ALG_NATIVE] < native + 3; k++) {
		tried = bed.calls[NEZHA_ALG_NATIVE] - native;
		call(&bed, M, library[tried], tried < 1 ? 30000000 : 20500000);
	}
	for (int k = 0; k < 4; k++)
		call(&bed, M, 40000000, 20500000);
	assert_int_equal(bed.model.classes[20].claim, 0);
	for (int k = 0; k < 400; k++) {
		call(&bed, M, 40000000, 22000000);
		assert_int_equal(bed.model.classes[20].best, NEZHA_ALG_RING);
	}
}

/* A mix is not given up for what the library once took. */
static void test_stale_mix(void **state)
{
	struct bed bed = { 0 };

	(void)state;
	for (int k = 0; k < 100; k++)
		call(&bed, 16 * M, 24000000, 60000000);
	assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_MIX);
	/* Both become slower, so that the mix takes more than the library alone did. */
	memset(bed.calls, 0, sizeof bed.calls);
	for (int k = 0; k < 100; k++) {
		call(&bed, 16 * M, 45000000, 90000000);
		assert_int_equal(bed.model.classes[24].best, NEZHA_ALG_MIX);
	}
	assert_true(bed.calls[NEZHA_ALG_NATIVE] <= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_lucky_now_and_then),
		cmocka_unit_test(test_stale_mix),
		cmocka_unit_test(test_claim_held_up),
		cmocka_unit_test(test_claim_outdated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
