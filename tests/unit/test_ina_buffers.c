/* SPDX-License-Identifier: BSD-3-Clause
 * Which buffers packets come into: never one of which something still waits for its turn. */
#include "tests/unit/unit.h"

#include <string.h>

#include "rails/ina_buffers.h"
#include "tuning/status.h"

#define BYTES 64
#define SPARE 3

static struct nezha_ina_buffers *make(uint32_t posted)
{
	struct nezha_ina_buffers *buffers = NULL;

	assert_int_equal(nezha_ina_buffers_create(posted, SPARE, BYTES, &buffers), NEZHA_OK);
	return buffers;
}

static void test_not_held(void **state)
{
	struct nezha_ina_buffers *buffers = make(1);
	struct nezha_ina_buffer *first = nezha_ina_buffers_post(buffers, NULL);

	(void)state;
	assert_ptr_equal(nezha_ina_buffers_post(buffers, first), first);
	/* held and let go while it is posted, as is what its next neighbour completes */
	assert_true(nezha_ina_buffer_hold(first));
	nezha_ina_buffer_release(first);
	assert_ptr_equal(nezha_ina_buffers_post(buffers, first), first);
	assert_true(nezha_ina_buffer_hold(first));
	assert_ptr_not_equal(nezha_ina_buffers_post(buffers, first), first);
	nezha_ina_buffers_destroy(buffers);
	nezha_ina_buffers_destroy(NULL);
}

/* What is held stays as it is, however much comes. */
static void test_held(void **state)
{
	struct nezha_ina_buffers *buffers = make(1);
	struct nezha_ina_buffer *held[SPARE], *posted = NULL;

	(void)state;
	for (int i = 0; i < SPARE; i++) {
		posted = held[i] = nezha_ina_buffers_post(buffers, posted);
		memset(posted->data, 'a' + i, BYTES);
		assert_true(nezha_ina_buffer_hold(posted));
		assert_true(nezha_ina_buffer_hold(posted));              /* two packets of it */
	}
	posted = nezha_ina_buffers_post(buffers, posted);
	memset(posted->data, 'z', BYTES);
	assert_false(nezha_ina_buffer_hold(posted));                     /* else there were none for what comes next */
	assert_true(nezha_ina_buffer_hold(held[0]));                     /* it is held anyway */
	for (int i = 0; i < SPARE; i++)
		for (int k = 0; k < BYTES; k++)
			assert_int_equal(held[i]->data[k], 'a' + i);
	nezha_ina_buffer_release(held[0]);
	nezha_ina_buffer_release(held[1]);
	nezha_ina_buffer_release(held[1]);
	assert_true(nezha_ina_buffer_hold(posted));
	assert_ptr_equal(nezha_ina_buffers_post(buffers, posted), held[1]);      /* not held[0], of which one waits */
	assert_false(nezha_ina_buffer_hold(held[1]));
	nezha_ina_buffers_destroy(buffers);
}

/* Several are posted, any of them is held, and let go after its place was given to another one. */
static void test_several(void **state)
{
	enum { POSTED = 4 };
	struct nezha_ina_buffers *buffers = make(POSTED);
	struct nezha_ina_buffer *posted[POSTED] = { NULL }, *held[SPARE];

	(void)state;
	for (int turn = 0; turn < 100; turn++) {
		for (int i = 0; i < POSTED; i++)
			posted[i] = nezha_ina_buffers_post(buffers, posted[i]);
		for (int i = 0; i < POSTED; i++) {
			for (int k = i + 1; k < POSTED; k++)
				assert_ptr_not_equal(posted[i], posted[k]);
			for (int k = 0; turn && k < SPARE; k++)
				assert_ptr_not_equal(posted[i], held[k]);
		}
		for (int k = 0; turn && k < SPARE; k++)
			nezha_ina_buffer_release(held[k]);
		for (int k = 0; k < SPARE; k++) {
			held[k] = posted[(turn + k) % POSTED];
			assert_true(nezha_ina_buffer_hold(held[k]));
		}
		assert_false(nezha_ina_buffer_hold(posted[(turn + SPARE) % POSTED]));
	}
	nezha_ina_buffers_destroy(buffers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_held),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests_name("ina_buffers", tests, NULL, NULL);
}
