/* SPDX-License-Identifier: BSD-3-Clause
 * What counts as a message of a verbs path. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "rails/verbs_message.h"

#define RECORD (uint32_t)sizeof(struct nezha_wire)

/* Records with payloads of these lengths, of which the last `missing` bytes are cut off.  In memory of just that size, so that a
 * sanitizer sees what is read beyond. */
static bool is_whole(const uint32_t *payloads, size_t count, uint32_t missing, uint32_t left)
{
	uint32_t length = 0, at = 0;
	char *data;
	bool whole;

	for (size_t i = 0; i < count; i++)
		length += RECORD + payloads[i];
	data = calloc(1, length + 1);
	assert_non_null(data);
	for (size_t i = 0; i < count; i++) {
		struct nezha_wire record = { .magic = NEZHA_WIRE_MAGIC, .length = payloads[i] };

		memcpy(data + at, &record, sizeof record);
		at += RECORD + payloads[i];
	}
	length -= missing;
	data = realloc(data, length ? length : 1);
	assert_non_null(data);
	whole = nezha_verbs_message_is_whole(data, length, left);
	free(data);
	return whole;
}

#define WHOLE(missing, ...) \
	is_whole((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), missing, 0)

static void records_with_their_payloads(void **state)
{
	(void)state;
	assert_true(WHOLE(0, 0));
	assert_true(WHOLE(0, 4096));
	assert_true(WHOLE(0, NEZHA_VERBS_PIECE));
	assert_true(WHOLE(0, 4096, 0, 100, 16384));
	assert_true(WHOLE(0, 16384, 16384, 16384, 16384));
	assert_false(WHOLE(1, 0));
	assert_false(WHOLE(RECORD, 0));
	assert_false(WHOLE(1, 4096));
	assert_false(WHOLE(1, NEZHA_VERBS_PIECE));
	assert_false(WHOLE(1, 4096, 4096));
	assert_false(WHOLE(4096, 4096, 4096));
	assert_false(WHOLE(4097, 4096, 4096));
	assert_false(WHOLE(4096 + RECORD - 1, 4096, 4096));
	assert_true(WHOLE(4096 + RECORD, 4096, 4096));
}

static void first_piece_of_a_longer_payload(void **state)
{
	const uint32_t longer = NEZHA_VERBS_PIECE + 1;

	(void)state;
	assert_true(WHOLE(1, longer));
	assert_false(WHOLE(0, longer));
	assert_false(WHOLE(2, longer));
	assert_false(WHOLE(1, 0, longer));
	assert_false(WHOLE(1, 4096, longer));
	assert_true(WHOLE(3 * NEZHA_VERBS_PIECE, 4 * NEZHA_VERBS_PIECE));
}

static void length_beyond_all(void **state)
{
	struct nezha_wire records[2] = { { .length = UINT32_MAX }, { .length = UINT32_MAX - RECORD } };

	(void)state;
	assert_false(nezha_verbs_message_is_whole((const char *)records, 2 * RECORD, 0));
	records[0].length = 0;
	assert_false(nezha_verbs_message_is_whole((const char *)records, 2 * RECORD, 0));
}

static void further_pieces(void **state)
{
	static const char piece[NEZHA_VERBS_PIECE];

	(void)state;
	assert_true(nezha_verbs_message_is_whole(piece, 10, 10));
	assert_true(nezha_verbs_message_is_whole(piece, NEZHA_VERBS_PIECE, NEZHA_VERBS_PIECE));
	assert_true(nezha_verbs_message_is_whole(piece, NEZHA_VERBS_PIECE, UINT32_MAX));
	assert_false(nezha_verbs_message_is_whole(piece, 9, 10));
	assert_false(nezha_verbs_message_is_whole(piece, 11, 10));
	assert_false(nezha_verbs_message_is_whole(piece, 4096, UINT32_MAX));
	assert_false(nezha_verbs_message_is_whole(piece, 0, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_with_their_payloads),
		cmocka_unit_test(first_piece_of_a_longer_payload),
		cmocka_unit_test(length_beyond_all),
		cmocka_unit_test(further_pieces),
	};

	return cmocka_run_group_tests_name("verbs messages", tests, NULL, NULL);
}
