/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include "rails/ina_run.h"

#define FULL 1440

static char payload[64 * FULL];

/* Adds packets of these lengths until one is refused; how many were taken.  A packet's number is its `seq`. */
static int add(struct nezha_ina_run *run, const uint16_t *lengths, int count)
{
	for (int i = 0; i < count; i++) {
		struct nezha_ina_header header = { .seq = (uint32_t)i, .length = lengths[i] };

		if (!nezha_ina_run_add(run, &header, payload + (size_t)i * FULL))
			return i;
	}
	return count;
}

/* What the kernel asks for: one length, but for the last, which may be shorter; each header before its own payload, none twice. */
static void check(const struct nezha_ina_run *run, uint16_t segment, int count)
{
	uint64_t seen = 0;

	assert_int_equal(run->count, count);
	assert_int_equal(segment, count > 1 ? (int)sizeof run->headers[0] + run->headers[0].length : 0);
	for (int i = 0; i < count; i++) {
		const struct nezha_ina_header *header = &run->headers[i];

		assert_ptr_equal(run->parts[2 * i].iov_base, header);
		assert_int_equal(run->parts[2 * i].iov_len, sizeof *header);
		assert_ptr_equal(run->parts[2 * i + 1].iov_base, payload + (size_t)header->seq * FULL);
		assert_int_equal(run->parts[2 * i + 1].iov_len, header->length);
		assert_true(header->length == run->headers[0].length || (i == count - 1 && header->length < run->headers[0].length));
		seen |= (uint64_t)1 << header->seq;
	}
	assert_int_equal(seen, ((uint64_t)1 << count) - 1);
}

/* Takes `taken` of the lengths, and the one that is shorter goes last. */
static void expect(const uint16_t *lengths, int count, int taken)
{
	struct nezha_ina_run run = { 0 };

	assert_int_equal(add(&run, lengths, count), taken);
	check(&run, nezha_ina_run_order(&run), taken);
	check(&run, nezha_ina_run_order(&run), taken);       /* as for the next receiver */
}

#define EXPECT(taken, ...) \
	expect((const uint16_t[]){ __VA_ARGS__ }, (int)(sizeof (const uint16_t[]){ __VA_ARGS__ } / sizeof(uint16_t)), taken)

static void test_the_shorter_one_goes_last(void **state)
{
	(void)state;
	EXPECT(1, 8);
	EXPECT(3, FULL, FULL, FULL);
	EXPECT(3, FULL, FULL, 8);
	EXPECT(4, FULL, 8, FULL, FULL);
	EXPECT(3, 8, FULL, FULL);
	EXPECT(2, 8, FULL);
	EXPECT(2, FULL, 8);
}

static void test_one_may_be_shorter(void **state)
{
	(void)state;
	EXPECT(3, FULL, 8, FULL, 8);
	EXPECT(2, FULL, 8, 8);
	EXPECT(2, 8, FULL, 8);
	EXPECT(2, 8, FULL, 16);
	EXPECT(2, FULL, 16, 8, FULL);
	EXPECT(2, FULL, FULL, FULL + 8);        /* nor longer, once there are two */
	EXPECT(3, 8, 8, 8);
	EXPECT(2, 8, 8, 16);
	EXPECT(1, 0);
}

/* 11 packets of 1472 bytes fit into 16 KiB, and so many of the least that there is room for. */
static void test_a_run_has_its_most(void **state)
{
	uint16_t lengths[64];
	struct nezha_ina_run run = { 0 };

	(void)state;
	for (int i = 0; i < 64; i++)
		lengths[i] = FULL;
	expect(lengths, 64, 11);
	lengths[5] = 736;
	expect(lengths, 64, 11);
	lengths[11] = 8;
	expect(lengths, 64, 11);
	assert_int_equal(add(&run, lengths, 64), 11);
	assert_true(run.bytes <= NEZHA_INA_RUN_BYTES);
	for (int i = 0; i < 64; i++)
		lengths[i] = 64;
	expect(lengths, 64, NEZHA_INA_RUN_MOST);
	lengths[0] = NEZHA_INA_CHUNK_MAX;
	lengths[1] = NEZHA_INA_CHUNK_MAX;
	expect(lengths, 64, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_shorter_one_goes_last),
		cmocka_unit_test(test_one_may_be_shorter),
		cmocka_unit_test(test_a_run_has_its_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
