/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "rails/crc32c.h"

/* RFC 3720, B.4, and the check value of the catalogues. */
static void known_values(void **state)
{
	unsigned char zeros[32] = { 0 }, ones[32], up[32], down[32];

	(void)state;
	memset(ones, 0xff, sizeof ones);
	for (int i = 0; i < 32; i++) {
		up[i] = (unsigned char)i;
		down[i] = (unsigned char)(31 - i);
	}
	for (int i = 0; i < 2; i++) {
		uint32_t (*crc)(const void *, size_t) = i ? nezha_crc32c : nezha_crc32c_tables;

		assert_int_equal(crc(zeros, 32), 0x8a9136aa);
		assert_int_equal(crc(ones, 32), 0x62a8ab43);
		assert_int_equal(crc(up, 32), 0x46dd794e);
		assert_int_equal(crc(down, 32), 0x113fdb5c);
		assert_int_equal(crc("123456789", 9), 0xe3069283);
		assert_int_equal(crc("", 0), 0);
	}
}

/* Whatever computes it, whatever the length and the place. */
static void both_ways_agree(void **state)
{
	enum { MOST = 5000 };
	unsigned char *data = malloc(MOST + 16);
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < MOST + 16; i++)
		data[i] = (unsigned char)(rand_r(&seed) >> 7);
	for (size_t length = 0; length < MOST; length += length < 300 ? 1 : 61)
		for (size_t at = 0; at < 16; at += 1 + length % 3)
			assert_int_equal(nezha_crc32c(data + at, length), nezha_crc32c_tables(data + at, length));
	free(data);
}

static void every_bit_counts(void **state)
{
	unsigned char data[100];
	uint32_t right;

	(void)state;
	memset(data, 0x5a, sizeof data);
	right = nezha_crc32c(data, sizeof data);
	for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_not_equal(nezha_crc32c(data, sizeof data), right);
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(both_ways_agree),
		cmocka_unit_test(every_bit_counts),
	};

	return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
