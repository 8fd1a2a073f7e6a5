/* SPDX-License-Identifier: BSD-3-Clause
 * Packets and records between a rank and an aggregator: what is right passes, and nothing else. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <string.h>

#include "rails/ina_wire.h"
#include "rails/team.h"
#include "tuning/status.h"

#define BYTES 64

static const unsigned char key[NEZHA_KEY_BYTES] = "a job's key";
static const unsigned char other_key[NEZHA_KEY_BYTES] = "another job's key";

struct packet {
	struct nezha_ina_header header;
	char payload[BYTES];
};

static struct packet make(enum nezha_ina_kind kind, uint16_t length)
{
	struct packet packet = { .header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = (uint8_t)kind,
	                                     .type = NEZHA_FLOAT32, .op = NEZHA_SUM, .length = length } };

	return packet;
}

static int up(const struct packet *packet, size_t size)
{
	struct nezha_ina_header header;

	return nezha_ina_check_upward(packet, size, &header);
}

static int down(const struct packet *packet, size_t size)
{
	struct nezha_ina_header header;

	return nezha_ina_check_downward(packet, size, &header);
}

static void test_right_packets(void **state)
{
	struct packet data = make(NEZHA_INA_DATA, BYTES), result = make(NEZHA_INA_RESULT, BYTES),
	              alive = make(NEZHA_INA_ALIVE, sizeof(struct nezha_ina_missing)), beacon = make(NEZHA_INA_BEACON, 0);

	(void)state;
	data.header.flags = NEZHA_INA_AGAIN;
	data.header.rank = NEZHA_INA_RANKS_MAX - 1;
	assert_int_equal(up(&data, sizeof data), NEZHA_OK);
	assert_int_equal(down(&result, sizeof result), NEZHA_OK);
	assert_int_equal(down(&alive, 32 + sizeof(struct nezha_ina_missing)), NEZHA_OK);
	assert_int_equal(down(&beacon, 32), NEZHA_OK);
	/* none goes the other way */
	assert_int_equal(up(&result, sizeof result), NEZHA_ERR_PROTOCOL);
	assert_int_equal(up(&alive, 64), NEZHA_ERR_PROTOCOL);
	assert_int_equal(up(&beacon, 32), NEZHA_ERR_PROTOCOL);
	data.header.flags = data.header.rank = 0;
	assert_int_equal(down(&data, sizeof data), NEZHA_ERR_PROTOCOL);
}

#define REFUSED(change, size) do { \
	struct packet packet = make(NEZHA_INA_DATA, BYTES); \
	packet.header.change; \
	assert_int_equal(up(&packet, size), NEZHA_ERR_PROTOCOL); \
} while (0)

static void test_wrong_packets(void **state)
{
	struct packet data = make(NEZHA_INA_DATA, BYTES);

	(void)state;
	for (size_t size = 0; size < sizeof data; size++)
		assert_int_equal(up(&data, size), NEZHA_ERR_PROTOCOL);
	REFUSED(magic ^= 1, sizeof data);
	REFUSED(version++, sizeof data);
	REFUSED(kind = 0, sizeof data);
	REFUSED(kind = NEZHA_INA_BEACON + 1, sizeof data);
	REFUSED(flags = 2, sizeof data);
	REFUSED(zero = 1, sizeof data);
	REFUSED(type = NEZHA_TYPE_COUNT, sizeof data);
	REFUSED(op = NEZHA_OP_COUNT, sizeof data);
	REFUSED(op = NEZHA_BAND, sizeof data);            /* of floats */
	REFUSED(rank = NEZHA_INA_RANKS_MAX, sizeof data);
	REFUSED(length = BYTES - 4, sizeof data);
	REFUSED(length = 0, 32);
	REFUSED(length = 62, 32 + 62);                    /* half an element */
	REFUSED(length = 65535, sizeof data);
}

static struct nezha_ina_record make_join(void)
{
	struct nezha_ina_record record;

	nezha_ina_record_make(NEZHA_INA_JOIN, &record);
	record.join = (struct nezha_ina_join){ .ranks = 4, .rank = 3, .port = 5000, .chunk = 1440, .window = 256 };
	return record;
}

#define JOIN_REFUSED(change) do { \
	struct nezha_ina_record record = make_join(); \
	record.change; \
	assert_int_equal(nezha_ina_record_check_upward(&record), NEZHA_ERR_PROTOCOL); \
} while (0)

static void test_joins(void **state)
{
	struct nezha_ina_record record = make_join();

	(void)state;
	assert_int_equal(nezha_ina_record_check_upward(&record), NEZHA_OK);
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_ERR_PROTOCOL);
	JOIN_REFUSED(magic ^= 1);
	JOIN_REFUSED(version = 0);
	JOIN_REFUSED(zero = 1);
	JOIN_REFUSED(kind = NEZHA_INA_WELCOME);
	JOIN_REFUSED(join.ranks = 1);
	JOIN_REFUSED(join.ranks = NEZHA_INA_RANKS_MAX + 1);
	JOIN_REFUSED(join.rank = 4);
	JOIN_REFUSED(join.port = 0);
	JOIN_REFUSED(join.chunk = 1441);
	JOIN_REFUSED(join.chunk = 8);
	JOIN_REFUSED(join.chunk = NEZHA_INA_CHUNK_MAX + 8);
	JOIN_REFUSED(join.window = 8);
	JOIN_REFUSED(join.window = 100);
	JOIN_REFUSED(join.window = 2048);
	JOIN_REFUSED(join.reserved = 1);
}

static void test_answers(void **state)
{
	struct nezha_ina_record record;

	(void)state;
	nezha_ina_record_make(NEZHA_INA_WELCOME, &record);
	record.welcome = (struct nezha_ina_welcome){ .chunk = 1440, .window = 64 };
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_OK);
	record.welcome.group = inet_addr("10.1.2.3");
	record.welcome.port = 4791;
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_ERR_PROTOCOL);
	record.welcome.group = inet_addr("239.1.2.3");
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_OK);
	record.welcome.listen = NEZHA_INA_LISTEN_MAX;
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_OK);
	record.welcome.listen++;
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_ERR_PROTOCOL);
	record.welcome.listen = 150;
	record.welcome.window = 63;
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_ERR_PROTOCOL);
	nezha_ina_record_text(NEZHA_INA_REFUSED, "no\nmemory", &record);
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_OK);
	assert_string_equal(record.text, "no memory");
	record.text[3] = '\033';
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_ERR_PROTOCOL);
	memset(record.text, 'x', sizeof record.text);
	assert_int_equal(nezha_ina_record_check_downward(&record), NEZHA_ERR_PROTOCOL);
}

static void test_proof(void **state)
{
	unsigned char nonce[NEZHA_INA_NONCE_BYTES] = "used once";
	struct nezha_ina_record record = make_join();
	struct nezha_ina_join join = record.join, other = record.join;

	(void)state;
	nezha_ina_prove(key, 7, nonce, &join);
	assert_int_equal(nezha_ina_verify(nonce, &join), NEZHA_OK);
	join.rank = 2;
	assert_int_equal(nezha_ina_verify(nonce, &join), NEZHA_ERR_PROTOCOL);
	join.rank = 3;
	nonce[0] ^= 1;
	assert_int_equal(nezha_ina_verify(nonce, &join), NEZHA_ERR_PROTOCOL);
	/* all ranks of a job name a team alike, another job does not, and cannot speak for it */
	nezha_ina_prove(key, 7, nonce, &other);
	assert_memory_equal(other.team, join.team, sizeof join.team);
	nezha_ina_prove(other_key, 7, nonce, &other);
	assert_memory_not_equal(other.team, join.team, sizeof join.team);
	memcpy(other.team, join.team, sizeof join.team);
	assert_int_equal(nezha_ina_verify(nonce, &other), NEZHA_ERR_PROTOCOL);
	nezha_ina_prove(key, 8, nonce, &other);
	assert_memory_not_equal(other.team, join.team, sizeof join.team);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right_packets),
		cmocka_unit_test(test_wrong_packets),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_proof),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("ina_wire", tests, NULL, NULL);
}
