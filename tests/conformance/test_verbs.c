/* SPDX-License-Identifier: BSD-3-Clause
 * The verbs rail over a provider within this process: the results of the conformance suite, and what happens when devices and
 * peers fail in ways that real ones cannot be brought to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/verbs.h"
#include "rails/verbs_message.h"
#include "tests/conformance/fake_verbs.h"
#include "tests/conformance/verbs_world.h"
#include "tuning/grid.h"
#include "tuning/status.h"

#define SMALL_BLOCKS 1024

static int run(const char *rails, int ranks, int count, void (*body)(struct member *, void *), void *argument)
{
	return verbs_world_run(rails, ranks, count, NEZHA_POLICY_ECF, body, argument);
}

/* ---- results ---- */

static void all_types(struct member *member, void *argument)
{
	(void)argument;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++)
			if (nezha_op_fits(op, type))
				world_call(member, member->team, type, op, 20011, NEZHA_BLOCK_MIN, (type + op) % 2, 0, 0);
}

static void test_types(void **state)
{
	long before = fake_verbs_messages();

	(void)state;
	assert_int_equal(run("fake", 3, 1, all_types, NULL), 0);
	assert_true(fake_verbs_messages() > before + 1000);
}

static void all_counts(struct member *member, void *argument)
{
	static const uint64_t counts[] = { 1, 2, 7, 1 << 20, 1023, 1024, 65537, 4097, 300007 };
	static const uint32_t blocks[] = { 4096, 65536, 1 << 18 };
	enum { COUNTS = sizeof counts / sizeof counts[0], BLOCKS = sizeof blocks / sizeof blocks[0] };

	(void)argument;
	for (int i = 0; i < COUNTS; i++)
		for (int b = 0; b < BLOCKS; b++)
			if (world_due(i + COUNTS * b))
				verbs_world_call(member, counts[i], blocks[b], b == 1 || (b == 2 && i % 2));
}

static void test_counts(void **state)
{
	(void)state;
	for (int ranks = 2; ranks <= 4; ranks++)
		assert_int_equal(run("fake", ranks, ranks - 1, all_counts, NULL), 0);
}

static void both_carry(struct member *member, void *argument)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];

	(void)argument;
	for (int i = 0; i < 10; i++)
		verbs_world_call(member, 500000, 32768, false);
	EXPECT(member, nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX) == 2);
	EXPECT(member, !strcmp(stats[0].device, FAKE_DEVICE) && stats[0].bytes_sent > 0);
	EXPECT(member, !strcmp(stats[1].device, "rail1") && stats[1].bytes_sent > 0);
	EXPECT(member, member->engine->verbs_memory.most <= 3u << 21);
	EXPECT(member, member->engine->verbs_memory.now > 0);
}

static void test_beside_tcp(void **state)
{
	(void)state;
	/* In turn: by what is measured all may go to the faster one. */
	assert_int_equal(verbs_world_run("fake,tcp", 3, 2, NEZHA_POLICY_SLICE, both_carry, NULL), 0);
}

static void small_blocks(struct member *member, void *argument)
{
	long *messages = argument, before;

	world_barrier(member);
	before = fake_verbs_messages();
	world_barrier(member);
	verbs_world_call(member, SMALL_BLOCKS * NEZHA_BLOCK_MIN / sizeof(double), NEZHA_BLOCK_MIN, false);
	world_barrier(member);
	if (member->rank == 0)
		*messages = fake_verbs_messages() - before;
}

/* Blocks that wait behind others share messages: each block is sent twice, as partial and as final. */
static void test_shared_messages(void **state)
{
	long messages = 0;

	(void)state;
	fake_verbs_late(true);
	assert_int_equal(run("fake", 2, 1, small_blocks, &messages), 0);
	assert_int_equal(run("fake,tcp", 3, 2, all_counts, NULL), 0);
	fake_verbs_late(false);
	assert_true(messages > 0 && messages < 2 * SMALL_BLOCKS * 3 / 4);
}

/* ---- failures ---- */

struct trouble {
	enum fake_fault fault;
	int after, times;
};

static bool is_in_trouble(struct member *member, void *argument)
{
	const struct trouble *trouble = argument;

	return fake_verbs_happened(trouble->fault) < trouble->times || verbs_world_is_down(member, NULL);
}

/* Calls until the fault has happened as often as it shall, and some more until every lost path is back. */
static void calls_in_trouble(struct member *member, void *argument)
{
	const struct trouble *trouble = argument;

	if (member->rank == 0)
		fake_verbs_fault(trouble->fault, trouble->after, trouble->times);
	world_barrier(member);
	EXPECT(member, verbs_world_calls_until(member, is_in_trouble, argument));
	world_barrier(member);
	if (member->rank == 0)
		fake_verbs_fault(trouble->fault, 0, 0);
}

static void survive(enum fake_fault fault, int after, int times)
{
	struct trouble trouble = { fault, after, times };

	assert_int_equal(run("fake,tcp", 3, 2, calls_in_trouble, &trouble), 0);
	/* With no other path the link waits for the new connection. */
	assert_int_equal(run("fake", 2, 1, calls_in_trouble, &trouble), 0);
}

static void test_completion_errors(void **state)
{
	(void)state;
	survive(FAKE_COMPLETION, 40, 5);
}

static void test_posting_fails(void **state)
{
	(void)state;
	survive(FAKE_POST, 40, 5);
}

static void test_peer_makes_no_sense(void **state)
{
	(void)state;
	survive(FAKE_CREDITS, 3, 2);
	survive(FAKE_NO_VALUE, 3, 2);
	survive(FAKE_VALUE, 40, 2);
	survive(FAKE_EMPTY, 40, 2);
	survive(FAKE_MISSING, 40, 2);
}

static void test_shared_messages_fail(void **state)
{
	(void)state;
	fake_verbs_late(true);
	survive(FAKE_COMPLETION, 40, 3);
	survive(FAKE_POST, 40, 3);
	survive(FAKE_EMPTY, 40, 2);
	survive(FAKE_MISSING, 40, 2);
	fake_verbs_late(false);
}

/* With CRCs, a block that comes wrong is sent again. */
static void wrong_blocks(struct member *member, void *argument)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];
	atomic_int *wrong = argument;

	if (member->rank == 0)
		fake_verbs_fault(FAKE_BIT, 20, 8);
	world_barrier(member);
	for (int i = 0; i < 12; i++)
		verbs_world_call(member, 100003 + (uint64_t)i * 8191, 16384, i % 2);
	world_barrier(member);
	for (size_t r = 0; r < nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX); r++)
		*wrong += (int)stats[r].wrong;
}

static void test_wrong_blocks(void **state)
{
	atomic_int wrong = 0;

	(void)state;
	world_crc = true;
	assert_int_equal(run("fake,tcp", 3, 2, wrong_blocks, &wrong), 0);
	assert_int_equal(run("fake", 2, 1, wrong_blocks, &wrong), 0);
	world_crc = false;
	assert_true(wrong >= 6 && wrong <= 16);
}

/* A record that is wrong ends the connection; the block behind it, in the same message, has not been taken in. */
static void test_wrong_records(void **state)
{
	(void)state;
	world_crc = true;
	survive(FAKE_RECORD, 40, 5);
	world_crc = false;
}

/* The event comes in the midst of calls; afterwards the paths come back. */
static void calls_and_an_event(struct member *member, void *argument)
{
	for (int i = 0; i < 5; i++)
		verbs_world_call(member, 300007, 16384, i % 2);
	if (member->rank == 0)
		fake_verbs_event(*(enum ibv_event_type *)argument);
	EXPECT(member, verbs_world_calls_until(member, verbs_world_is_down_or_unhurt, NULL));
}

static void test_events_of_the_device(void **state)
{
	enum ibv_event_type port_error = IBV_EVENT_PORT_ERR, fatal = IBV_EVENT_DEVICE_FATAL;
	int opened;

	(void)state;
	assert_int_equal(run("fake,tcp", 3, 2, calls_and_an_event, &port_error), 0);
	opened = fake_verbs_opened();
	assert_int_equal(run("fake,tcp", 3, 2, calls_and_an_event, &fatal), 0);
	/* By each rank at its start, and again. */
	assert_true(fake_verbs_opened() == opened + 6);
}

/* ---- what cannot be had ---- */

static void nothing_gets_through(struct member *member, void *argument)
{
	uint64_t one = 1;

	(void)argument;
	if (member->rank == 0)
		fake_verbs_fault(FAKE_COMPLETION, 1, 1 << 30);
	world_barrier(member);
	EXPECT(member, nezha_allreduce(member->team, &one, &one, 1, NEZHA_UINT64, NEZHA_SUM,
	                               &(struct nezha_way){ .block = NEZHA_BLOCK_MIN }) != NEZHA_OK);
	world_barrier(member);
	if (member->rank == 0)
		fake_verbs_fault(FAKE_COMPLETION, 0, 0);
}

/* Queue pairs that can be connected for ever, but carry nothing, do not keep a call waiting for ever. */
static void test_no_way_through(void **state)
{
	(void)state;
	assert_int_equal(run("fake", 2, 1, nothing_gets_through, NULL), 0);
}

static void over_tcp_alone(struct member *member, void *argument)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];

	(void)argument;
	verbs_world_call(member, 100003, 16384, false);
	nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX);
	EXPECT(member, stats[0].bytes_sent == 0 && stats[1].bytes_sent > 0);
	EXPECT(member, member->engine->verbs_memory.now == 0);
}

static void test_no_memory(void **state)
{
	(void)state;
	fake_verbs_fault(FAKE_REGISTER, 0, 1000000);
	assert_int_equal(run("fake,tcp", 3, 2, over_tcp_alone, NULL), 0);
	assert_true(fake_verbs_happened(FAKE_REGISTER) > 0);
	fake_verbs_fault(FAKE_REGISTER, 0, 0);
}

/* What fails some times at the opening is made up for. */
static void test_connecting_fails_at_first(void **state)
{
	(void)state;
	for (int fault = FAKE_REGISTER; fault <= FAKE_CONNECT; fault++) {
		fake_verbs_fault((enum fake_fault)fault, 1, 3);
		assert_int_equal(run("fake", 2, 1, all_counts, NULL), 0);
		assert_int_equal(fake_verbs_happened((enum fake_fault)fault), 3);
	}
}

static void test_limit(void **state)
{
	const struct nezha_verbs_port port = { .device = FAKE_DEVICE, .port = 1, .gid_type = "RoCE v2" };
	struct nezha_verbs_memory memory = { .limit = 4 << 20 };
	struct nezha_verbs_end *one, *two;
	struct nezha_verbs_device *device;
	struct nezha_verbs_options options;

	(void)state;
	nezha_verbs_api_use(&fake_verbs);
	nezha_verbs_options_parse("", &options);
	assert_int_equal(nezha_verbs_open(&port, &options, &memory, &device), NEZHA_OK);
	assert_int_equal(nezha_verbs_end_create(device, true, &one), NEZHA_OK);
	assert_int_equal(nezha_verbs_end_create(device, false, &two), NEZHA_ERR_NOMEM);
	assert_true(memory.now > 2 << 20 && memory.now <= memory.limit && memory.most == memory.now);
	nezha_verbs_end_destroy(one);
	assert_true(memory.now == 0);
	assert_int_equal(nezha_verbs_end_create(device, false, &two), NEZHA_OK);
	nezha_verbs_end_destroy(two);
	nezha_verbs_close(device);
	assert_int_equal(fake_verbs_objects(), 0);
}

static void test_no_device(void **state)
{
	const struct nezha_verbs_port nothing = { .device = "nothing", .port = 1 }, no_port = { .device = FAKE_DEVICE, .port = 2 };
	struct nezha_verbs_memory memory = { .limit = 4 << 20 };
	struct nezha_verbs_device *device = NULL;
	struct nezha_verbs_options options;

	(void)state;
	nezha_verbs_api_use(&fake_verbs);
	nezha_verbs_options_parse("", &options);
	assert_int_equal(nezha_verbs_open(&nothing, &options, &memory, &device), NEZHA_ERR_SYSTEM);
	assert_int_equal(nezha_verbs_open(&no_port, &options, &memory, &device), NEZHA_ERR_SYSTEM);
	assert_null(device);
	assert_int_equal(fake_verbs_objects(), 0);
}

static void test_no_library(void **state)
{
	struct nezha_verbs_api api = { .poll_cq = NULL };
	const char *why = NULL;

	(void)state;
	assert_int_equal(nezha_verbs_api_load("libno-such-verbs.so.1", &api, &why), NEZHA_ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "libno-such-verbs.so.1"));
	/* A library that is not this one. */
	assert_int_equal(nezha_verbs_api_load("libc.so.6", &api, &why), NEZHA_ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "ibv_"));
	assert_null(api.poll_cq);
}

static void test_offers(void **state)
{
	const struct nezha_verbs_offer good = {
		.magic = NEZHA_VERBS_MAGIC, .kind = NEZHA_VERBS_OFFER, .link = NEZHA_VERBS_ETHERNET, .qpn = 17, .psn = 0xffffff,
		.mtu = 1024, .buffers = 32, .message = NEZHA_VERBS_MESSAGE,
	};
	struct nezha_verbs_offer bad;

	(void)state;
	assert_int_equal(nezha_verbs_offer_check(&good, NEZHA_VERBS_OFFER), NEZHA_OK);
	assert_int_equal(nezha_verbs_offer_check(&good, NEZHA_VERBS_GO), NEZHA_ERR_PROTOCOL);
#define BAD(change) do { \
	bad = good; \
	bad.change; \
	assert_int_equal(nezha_verbs_offer_check(&bad, NEZHA_VERBS_OFFER), NEZHA_ERR_PROTOCOL); \
} while (0)
	BAD(magic++);
	BAD(kind = 3);
	BAD(link = NEZHA_VERBS_OTHER);
	BAD(qpn = 1);
	BAD(qpn = 1 << 24);
	BAD(psn = 1 << 24);
	BAD(mtu = 0);
	BAD(mtu = 128);
	BAD(mtu = 1500);
	BAD(mtu = 8192);
	BAD(buffers = 0);
	BAD(buffers = NEZHA_VERBS_BUFFERS_MAX + 1);
	BAD(message = NEZHA_VERBS_PIECE);
	BAD(reserved = 1);
#undef BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_beside_tcp),
		cmocka_unit_test(test_shared_messages),
		cmocka_unit_test(test_completion_errors),
		cmocka_unit_test(test_posting_fails),
		cmocka_unit_test(test_peer_makes_no_sense),
		cmocka_unit_test(test_shared_messages_fail),
		cmocka_unit_test(test_wrong_blocks),
		cmocka_unit_test(test_wrong_records),
		cmocka_unit_test(test_events_of_the_device),
		cmocka_unit_test(test_no_way_through),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_connecting_fails_at_first),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_no_library),
		cmocka_unit_test(test_offers),
	};

	return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
