/* SPDX-License-Identifier: BSD-3-Clause
 * The verbs rail over a provider within this process: the results of the conformance suite, and what happens when devices and
 * peers fail in ways that real ones cannot be brought to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/verbs.h"
#include "tests/conformance/fake_verbs.h"
#include "tests/conformance/world.h"
#include "tuning/grid.h"
#include "tuning/status.h"

static int run_by(enum nezha_policy_kind policy, const char *rails, int ranks, int count,
                  void (*body)(struct member *, void *), void *argument)
{
	int failures;

	nezha_verbs_api_use(&fake_verbs);
	setenv("NEZHA_TEST_VERBS", rails, 1);
	failures = world_run(ranks, count, policy, body, argument);
	unsetenv("NEZHA_TEST_VERBS");
	/* Whatever happened: nothing is left of it. */
	assert_int_equal(fake_verbs_objects(), 0);
	return failures;
}

static int run(const char *rails, int ranks, int count, void (*body)(struct member *, void *), void *argument)
{
	return run_by(NEZHA_POLICY_ECF, rails, ranks, count, body, argument);
}

static void call(struct member *member, uint64_t count, uint32_t block, bool in_place)
{
	world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, count, block, in_place, 0, 0);
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
	static const uint64_t counts[] = { 1, 2, 7, 1023, 1024, 4097, 65537, 300007, 1 << 20 };

	(void)argument;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		call(member, counts[i], 4096, false);
		call(member, counts[i], 65536, true);
		call(member, counts[i], 1 << 18, i % 2);
	}
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
		call(member, 500000, 32768, false);
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
	assert_int_equal(run_by(NEZHA_POLICY_SLICE, "fake,tcp", 3, 2, both_carry, NULL), 0);
}

/* ---- failures ---- */

struct trouble {
	enum fake_fault fault;
	int after, times;
};

static void count_events(const struct member *member, uint64_t *losses, uint64_t *returns)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX);

	*losses = *returns = 0;
	for (size_t r = 0; r < count; r++) {
		*losses += stats[r].failures;
		*returns += stats[r].returns;
	}
}

/* Calls until the fault has happened as often as it shall, and some more until every lost path is back. */
static void calls_in_trouble(struct member *member, void *argument)
{
	const struct trouble *trouble = argument;
	uint64_t losses, returns;
	bool more = true;

	if (member->rank == 0)
		fake_verbs_fault(trouble->fault, trouble->after, trouble->times);
	world_barrier(member);
	for (int i = 0; more && i < 400; i++) {
		uint64_t sum;

		call(member, 100003 + (uint64_t)i % 7 * 8191, 16384, i % 2);
		count_events(member, &losses, &returns);
		/* All decide alike: by a call. */
		sum = fake_verbs_happened(trouble->fault) < trouble->times || losses != returns;
		EXPECT(member, nezha_allreduce(member->team, &sum, &sum, 1, NEZHA_UINT64, NEZHA_SUM,
		                               &(struct nezha_way){ .block = NEZHA_BLOCK_MIN }) == NEZHA_OK);
		more = sum;
	}
	world_barrier(member);
	EXPECT(member, !more);
	EXPECT(member, losses == returns);
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

/* The event comes in the midst of calls; afterwards the paths come back. */
static void calls_and_an_event(struct member *member, void *argument)
{
	uint64_t losses = 0, returns = 0, before = 0, sum = 1;

	for (int i = 0; sum && i < 400; i++) {
		if (i == 5 && member->rank == 0)
			fake_verbs_event(*(enum ibv_event_type *)argument);
		call(member, 300007, 16384, i % 2);
		count_events(member, &losses, &returns);
		sum = !losses || losses != returns;
		EXPECT(member, nezha_allreduce(member->team, &sum, &sum, 1, NEZHA_UINT64, NEZHA_SUM,
		                               &(struct nezha_way){ .block = NEZHA_BLOCK_MIN }) == NEZHA_OK);
		before = i;
	}
	EXPECT(member, before >= 4 && losses && losses == returns);
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
	call(member, 100003, 16384, false);
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
	nezha_verbs_options_parse("memory=4", &options);
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
		.mtu = 1024, .buffers = 32, .piece = NEZHA_VERBS_PIECE,
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
	BAD(piece = 4096);
	BAD(reserved = 1);
#undef BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_beside_tcp),
		cmocka_unit_test(test_completion_errors),
		cmocka_unit_test(test_posting_fails),
		cmocka_unit_test(test_peer_makes_no_sense),
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
