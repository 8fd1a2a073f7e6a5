/* SPDX-License-Identifier: BSD-3-Clause
 * Which rank is on which node, as Hydra writes it. */
#include "tests/unit/unit.h"

#include "pmpi/pmi.h"
#include "tuning/status.h"

#define RANKS 8

static void assert_nodes(const char *mapping, const int expected[RANKS])
{
	int node[RANKS];

	assert_int_equal(nezha_pmi_parse(mapping, node, RANKS), NEZHA_OK);
	assert_memory_equal(node, expected, sizeof(node));
}

static void test_blocks(void **state)
{
	(void)state;
	assert_nodes("(vector,(0,1,8))", (const int[RANKS]){ 0 });
	assert_nodes("(vector,(0,8,1))", (const int[RANKS]){ 0, 1, 2, 3, 4, 5, 6, 7 });
	assert_nodes("(vector,(0,2,4))", (const int[RANKS]){ 0, 0, 0, 0, 1, 1, 1, 1 });
	assert_nodes("(vector,(0,2,3),(2,1,2))", (const int[RANKS]){ 0, 0, 0, 1, 1, 1, 2, 2 });
}

static void test_over_and_over(void **state)
{
	(void)state;
	assert_nodes("(vector,(0,3,1))", (const int[RANKS]){ 0, 1, 2, 0, 1, 2, 0, 1 });
	assert_nodes("(vector,(0,1,1),(5,1,2))", (const int[RANKS]){ 0, 5, 5, 0, 5, 5, 0, 5 });
}

static void test_nonsense(void **state)
{
	static const char *const wrong[] = {
		"", "(", "(vector", "(vector,", "(vector,)", "(vector,()", "(vector,(0,1))",
		"(vector,(0,0,1))", "(vector,(0,1,0))", "(vector,(-1,1,1))", "(vector,(0,1,1),(x",
		"vector,(0,1,1)", "(matrix,(0,1,1))",
	};
	int node[RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(nezha_pmi_parse(wrong[i], node, RANKS), NEZHA_ERR_INVALID);
}

static void test_no_launcher(void **state)
{
	int node[RANKS];

	(void)state;
	assert_int_equal(nezha_pmi_nodes(node, RANKS), NEZHA_ERR_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_over_and_over),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_no_launcher),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
