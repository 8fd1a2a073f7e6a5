/* SPDX-License-Identifier: BSD-3-Clause
 * The handshake and the records: what is right passes, and nothing else. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "rails/hello.h"
#include "rails/team.h"
#include "rails/wire.h"
#include "tuning/grid.h"
#include "tuning/status.h"

static const unsigned char key[NEZHA_KEY_BYTES] = "a job's key";
static const unsigned char other_key[NEZHA_KEY_BYTES] = "another job's key";

static void shake(struct nezha_challenge *challenge, struct nezha_hello *hello)
{
	nezha_challenge_make(challenge);
	*hello = (struct nezha_hello){ .from = 3, .to = 5, .kind = NEZHA_HELLO_DATA, .rail = 1 };
	assert_int_equal(nezha_hello_make(key, challenge, hello), NEZHA_OK);
}

static void test_handshake(void **state)
{
	struct nezha_challenge challenge;
	struct nezha_hello hello;
	struct nezha_welcome welcome;

	(void)state;
	shake(&challenge, &hello);
	assert_int_equal(nezha_hello_check(key, &challenge, &hello, 5, 1), NEZHA_OK);
	nezha_welcome_make(key, &challenge, &hello, &welcome);
	assert_int_equal(nezha_welcome_check(key, &challenge, &hello, &welcome), NEZHA_OK);
	welcome.mac[7] ^= 1;
	assert_int_equal(nezha_welcome_check(key, &challenge, &hello, &welcome), NEZHA_ERR_PROTOCOL);
}

static void test_wrong_hellos(void **state)
{
	struct nezha_challenge challenge, newer;
	struct nezha_hello hello, bent;

	(void)state;
	shake(&challenge, &hello);
	assert_int_equal(nezha_hello_check(other_key, &challenge, &hello, 5, 1), NEZHA_ERR_PROTOCOL);
	assert_int_equal(nezha_hello_check(key, &challenge, &hello, 4, 1), NEZHA_ERR_PROTOCOL);
	assert_int_equal(nezha_hello_check(key, &challenge, &hello, 5, 0), NEZHA_ERR_PROTOCOL);
	/* Recorded and played again. */
	nezha_challenge_make(&newer);
	assert_int_equal(nezha_hello_check(key, &newer, &hello, 5, 1), NEZHA_ERR_PROTOCOL);
	/* Any byte changed on the way. */
	for (size_t i = 0; i < sizeof hello; i++) {
		bent = hello;
		((unsigned char *)&bent)[i] ^= 0x10;
		assert_int_equal(nezha_hello_check(key, &challenge, &bent, 5, 1), NEZHA_ERR_PROTOCOL);
	}
}

static void test_wrong_challenges(void **state)
{
	struct nezha_challenge challenge;
	struct nezha_hello hello = { 0 };

	(void)state;
	nezha_challenge_make(&challenge);
	challenge.protocol++;
	assert_int_equal(nezha_hello_make(key, &challenge, &hello), NEZHA_ERR_PROTOCOL);
	memset(&challenge, 'x', sizeof challenge);
	assert_int_equal(nezha_hello_make(key, &challenge, &hello), NEZHA_ERR_PROTOCOL);
}

static void test_records(void **state)
{
	static const struct { enum nezha_wire_kind kind; uint32_t length; int channel; } good[] = {
		{ NEZHA_WIRE_PARTIAL, 1, NEZHA_CHANNEL_FORWARD }, { NEZHA_WIRE_FINAL, NEZHA_BLOCK_MAX, NEZHA_CHANNEL_FORWARD },
		{ NEZHA_WIRE_PROBE, 0, NEZHA_CHANNEL_FORWARD }, { NEZHA_WIRE_SYNC, 0, NEZHA_CHANNEL_FORWARD },
		{ NEZHA_WIRE_GRANT, 0, NEZHA_CHANNEL_BACKWARD }, { NEZHA_WIRE_DONE, 0, NEZHA_CHANNEL_BACKWARD },
		{ NEZHA_WIRE_WANT, 0, NEZHA_CHANNEL_BACKWARD }, { NEZHA_WIRE_ACK, 0, NEZHA_CHANNEL_BACKWARD },
		{ NEZHA_WIRE_LOST, 0, NEZHA_CHANNEL_BACKWARD },
		{ NEZHA_WIRE_QUERY, 0, NEZHA_CHANNEL_QUERY }, { NEZHA_WIRE_STATE, 0, NEZHA_CHANNEL_STATE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct nezha_wire record = nezha_wire_make(good[i].kind, 1, 2), bent;

		record.length = good[i].length;
		for (int channel = NEZHA_CHANNEL_FORWARD; channel <= NEZHA_CHANNEL_STATE; channel++)
			assert_int_equal(nezha_wire_check(&record, channel, false),
			                 channel == good[i].channel ? NEZHA_OK : NEZHA_ERR_PROTOCOL);
		bent = record;
		bent.length = NEZHA_BLOCK_MAX + 1;
		assert_int_equal(nezha_wire_check(&bent, good[i].channel, false), NEZHA_ERR_PROTOCOL);
		bent = record;
		bent.magic++;
		assert_int_equal(nezha_wire_check(&bent, good[i].channel, false), NEZHA_ERR_PROTOCOL);
		bent = record;
		bent.piece = good[i].kind <= NEZHA_WIRE_FINAL ? NEZHA_PIECE_MOST + 1 : 1;
		assert_int_equal(nezha_wire_check(&bent, good[i].channel, false), NEZHA_ERR_PROTOCOL);
		bent.piece = good[i].kind <= NEZHA_WIRE_FINAL ? NEZHA_PIECE_MOST : 0;
		assert_int_equal(nezha_wire_check(&bent, good[i].channel, false), NEZHA_OK);
		bent = record;
		bent.kind = 0;
		assert_int_equal(nezha_wire_check(&bent, good[i].channel, false), NEZHA_ERR_PROTOCOL);
	}
}

static void test_a_rail_is_back_is_said_both_ways(void **state)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_BACK, 0, 0);

	(void)state;
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_QUERY, false), NEZHA_OK);
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_STATE, false), NEZHA_OK);
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_FORWARD, false), NEZHA_ERR_PROTOCOL);
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_BACKWARD, false), NEZHA_ERR_PROTOCOL);
	record.length = 1;
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_QUERY, false), NEZHA_ERR_PROTOCOL);
}

/* With CRCs no single bit may be changed; without them there are none. */
static void test_sealed_records(void **state)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_FINAL, 1, 2), again;

	(void)state;
	record.length = 4096;
	record.payload_crc = 0x12345678;
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_FORWARD, false), NEZHA_ERR_PROTOCOL);
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_FORWARD, true), NEZHA_ERR_PROTOCOL);
	nezha_wire_seal(&record, true);
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_FORWARD, true), NEZHA_OK);
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_FORWARD, false), NEZHA_ERR_PROTOCOL);
	for (size_t bit = 0; bit < 8 * sizeof record; bit++) {
		struct nezha_wire bent = record;

		((unsigned char *)&bent)[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_equal(nezha_wire_check(&bent, NEZHA_CHANNEL_FORWARD, true), NEZHA_ERR_PROTOCOL);
	}
	again = nezha_wire_make(NEZHA_WIRE_AGAIN, 1, 2);
	for (uint32_t kind = 0; kind < 5; kind++) {
		bool good = kind == NEZHA_WIRE_PARTIAL || kind == NEZHA_WIRE_FINAL;

		again.origin = kind;
		again.crc = 0;
		assert_int_equal(nezha_wire_check(&again, NEZHA_CHANNEL_BACKWARD, false), NEZHA_ERR_PROTOCOL);
		nezha_wire_seal(&again, true);
		assert_int_equal(nezha_wire_check(&again, NEZHA_CHANNEL_BACKWARD, true), good ? NEZHA_OK : NEZHA_ERR_PROTOCOL);
	}
}

static void test_empty_block(void **state)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_PARTIAL, 1, 2);

	(void)state;
	assert_int_equal(nezha_wire_check(&record, NEZHA_CHANNEL_FORWARD, false), NEZHA_ERR_PROTOCOL);
}

static void test_sequence_wraps(void **state)
{
	(void)state;
	assert_true(nezha_seq_diff(1, UINT32_MAX) == 2);
	assert_true(nezha_seq_diff(UINT32_MAX, 1) == -2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handshake),
		cmocka_unit_test(test_wrong_hellos),
		cmocka_unit_test(test_wrong_challenges),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_a_rail_is_back_is_said_both_ways),
		cmocka_unit_test(test_sealed_records),
		cmocka_unit_test(test_empty_block),
		cmocka_unit_test(test_sequence_wraps),
	};

	return cmocka_run_group_tests_name("hello", tests, NULL, NULL);
}
