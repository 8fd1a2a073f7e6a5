/* SPDX-License-Identifier: BSD-3-Clause
 * Bytes that are changed on their way, behind TCP's back: this program's readv and recv change what the kernel hands over.
 * With NEZHA_CHECK=crc every result is right; without it the same faults show in the results. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/link.h"
#include "rails/wire.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

enum part { PAYLOADS, RECORDS, BACKWARD, ALL };

/* What is changed: one bit of each `every`-th piece of its kind that is read, on the rails of the mask. */
static struct {
	atomic_uint every;         /* 0: nothing */
	atomic_uint part, rails;   /* enum part */
	atomic_uint seen, changed;
} fault;

static void begin_fault(enum part part, unsigned rails, unsigned every)
{
	fault.part = part;
	fault.rails = rails;
	fault.seen = fault.changed = 0;
	fault.every = every;
}

static bool is_on_rail(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof name;

	return !getsockname(fd, (struct sockaddr *)&name, &length) && name.sin_family == AF_INET &&
	       fault.rails >> (ntohl(name.sin_addr.s_addr) >> 8 & 0xff) & 1;
}

static void change(int fd, enum part part, void *data, size_t length)
{
	unsigned every = fault.every, seen;

	if (!every || (fault.part != part && fault.part != ALL) || !is_on_rail(fd))
		return;
	seen = ++fault.seen;
	if (seen % every)
		return;
	((unsigned char *)data)[seen * 2654435761u % length] ^= (unsigned char)(1u << seen % 8);
	fault.changed++;
}

ssize_t readv(int fd, const struct iovec *iov, int parts)
{
	ssize_t n = syscall(SYS_readv, fd, iov, parts);
	bool payload = parts == 2 || iov[0].iov_len > sizeof(struct nezha_wire);

	if (n > 0)
		change(fd, payload ? PAYLOADS : RECORDS, iov[0].iov_base, (size_t)n < iov[0].iov_len ? (size_t)n : iov[0].iov_len);
	if (parts == 2 && n > (ssize_t)iov[0].iov_len)   /* the next record came along */
		change(fd, RECORDS, iov[1].iov_base, (size_t)n - iov[0].iov_len);
	return n;
}

ssize_t recv(int fd, void *data, size_t length, int flags)
{
	ssize_t n = syscall(SYS_recvfrom, fd, data, length, flags, NULL, NULL);

	if (n > 0 && length <= sizeof(struct nezha_wire))
		change(fd, BACKWARD, data, (size_t)n);
	return n;
}

/* Requests that are lost with their connections, of which the peer hears nothing: sending the first LOST_REQUESTS fails. */
#define LOST_REQUESTS 4
static atomic_int lose_requests;
static int kept[LOST_REQUESTS];      /* so that closing tells the peer nothing */

static bool asks_again(const void *data, size_t length)
{
	for (size_t at = 0; at + sizeof(struct nezha_wire) <= length; at += sizeof(struct nezha_wire)) {
		const struct nezha_wire *record = (const void *)((const char *)data + at);

		if (record->magic == NEZHA_WIRE_MAGIC && record->kind == NEZHA_WIRE_AGAIN)
			return true;
	}
	return false;
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
	int which;

	if (lose_requests > 0 && asks_again(data, length) && (which = --lose_requests) >= 0) {
		kept[which] = dup(fd);
		errno = ECONNRESET;
		return -1;
	}
	return syscall(SYS_sendto, fd, data, length, flags, NULL, 0);
}

/* ---- without CRCs ---- */

/* Whether a call gives what it must. */
static bool is_right(struct member *member, uint64_t count)
{
	size_t bytes = count * sizeof(int64_t);
	int64_t *send = malloc(bytes), *recv = malloc(bytes), *reference = malloc(bytes);
	bool right;

	world_fill(send, NEZHA_INT64, count, member->rank, 3);
	world_reference(reference, NEZHA_INT64, NEZHA_SUM, count, 65536, member->world->ranks, 3);
	EXPECT(member, nezha_allreduce(member->team, send, recv, count, NEZHA_INT64, NEZHA_SUM,
	                               &(struct nezha_way){ .block = 65536 }) == NEZHA_OK);
	right = !memcmp(recv, reference, bytes);
	free(send);
	free(recv);
	free(reference);
	return right;
}

static void wrong_unnoticed(struct member *member, void *argument)
{
	atomic_int *wrong = argument;

	EXPECT(member, is_right(member, 500009));
	world_barrier(member);
	if (member->rank == 0)
		begin_fault(PAYLOADS, 3, 5);
	world_barrier(member);
	*wrong += !is_right(member, 500009);
	world_barrier(member);
	fault.every = 0;
}

/* The fault is one: else what follows would show nothing. */
static void test_without(void **state)
{
	atomic_int wrong = 0;

	(void)state;
	world_crc = false;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, wrong_unnoticed, &wrong), 0);
	assert_true(wrong > 0);
}

/* ---- with CRCs ---- */

static void calls(struct member *member, int count)
{
	for (int i = 0; i < count; i++) {
		/* Rank 1 comes late at times: blocks land before its call has begun. */
		if (i % 3 == 1 && member->rank == 1)
			usleep(5000);
		world_call(member, member->team, i % 2 ? NEZHA_FLOAT32 : NEZHA_INT64, NEZHA_SUM, 100003 + (uint64_t)i * 50021,
		           i % 4 < 2 ? 16384 : 65536, i % 2, 0, 0);
	}
}

static uint64_t count_wrong(const struct member *member)
{
	struct nezha_rail_stats stats[NEZHA_RAILS_MAX];
	size_t count = nezha_engine_rail_stats(member->engine, stats, NEZHA_RAILS_MAX);
	uint64_t wrong = 0;

	for (size_t r = 0; r < count; r++)
		wrong += stats[r].wrong;
	return wrong;
}

struct plan {
	enum part part;
	unsigned rails, every;
	int calls;
	bool unmeasured;
	atomic_ulong wrong;
	bool over;
};

/* In how many pieces records come, and how much goes over a rail that was just lost, is a matter of times: so often the calls at
 * most until one was changed, and all requests were lost that should be; each time, more pieces are changed. */
#define ROUNDS 50
#define LEAST_EVERY 5u       /* more would end paths for good */

/* As if no path had ever been up for as long as a measurement takes. */
static void forget_rates(struct member *member)
{
	struct nezha_link *right = member->team->right;

	nezha_fairlock_take(&member->engine->lock);
	for (int r = 0; r < member->world->rails; r++)
		right->paths[r].estimator.weight = 0;
	nezha_fairlock_give(&member->engine->lock);
}

static void calls_under_fault(struct member *member, void *argument)
{
	struct plan *plan = argument;

	if (member->rank == 0)
		begin_fault(plan->part, plan->rails, plan->every);
	for (int i = 0; i < ROUNDS; i++) {
		if (plan->unmeasured)
			forget_rates(member);
		world_barrier(member);
		calls(member, plan->calls);
		world_barrier(member);
		if (member->rank == 0) {
			plan->over = fault.changed > 0 && lose_requests <= 0;
			if (fault.every > LEAST_EVERY)
				fault.every = fault.every / 2 > LEAST_EVERY ? fault.every / 2 : LEAST_EVERY;
		}
		world_barrier(member);
		if (plan->over)
			break;
	}
	fault.every = 0;
	plan->wrong += count_wrong(member);
}

static void run_plan(int ranks, int rails, struct plan *plan)
{
	world_crc = true;
	assert_int_equal(world_run(ranks, rails, NEZHA_POLICY_ECF, calls_under_fault, plan), 0);
	assert_true(fault.changed > 0);
	if (plan->part == PAYLOADS)
		assert_true(plan->wrong > 0 && plan->wrong <= fault.changed);
}

/* One of `every` pieces of the kind is changed on the rails of the mask. */
static void run(int ranks, int rails, enum part part, unsigned mask, unsigned every, int count)
{
	run_plan(ranks, rails, &(struct plan){ .part = part, .rails = mask, .every = every, .calls = count });
}

static void test_payloads(void **state)
{
	(void)state;
	run(2, 2, PAYLOADS, 3, 40, 24);
	run(3, 2, PAYLOADS, 3, 9, 24);
	run(4, 3, PAYLOADS, 5, 40, 12);
}

/* A path that has no other beside it stays in use. */
static void test_payloads_of_one_rail(void **state)
{
	(void)state;
	run(3, 1, PAYLOADS, 1, 7, 12);
}

static void test_records(void **state)
{
	(void)state;
	run(3, 2, RECORDS, 3, 30, 12);
	run(2, 1, RECORDS, 1, 60, 12);
}

/* Paths that are lost each time before a probe of theirs could end: as long as no other one is up, blocks do not wait for it.  Nor do
 * they begin anew for ever where that is sooner than ACK_EVERY bytes. */
static void test_too_short_for_a_probe(void **state)
{
	(void)state;
	run_plan(2, 1, &(struct plan){ .part = RECORDS, .rails = 1, .every = 5, .calls = 6, .unmeasured = true });
}

static void test_backward_records(void **state)
{
	(void)state;
	run(3, 2, BACKWARD, 3, 20, 12);
}

/* Connections are lost while blocks are asked for again. */
static void test_all_at_once(void **state)
{
	(void)state;
	run(3, 2, ALL, 3, 50, 16);
	run(2, 1, ALL, 1, 20, 12);
}

/* What the receiving end says over another path of how much it had taken in must leave the block out. */
static void test_lost_requests(void **state)
{
	(void)state;
	lose_requests = LOST_REQUESTS;
	run(2, 2, PAYLOADS, 1, 10, 12);
	assert_true(lose_requests <= 0);
	for (int i = 0; i < LOST_REQUESTS; i++)
		close(kept[i]);
}

/* A rail that spoils all it carries is left alone, and so no longer asked to send again. */
static void one_rail_lies(struct member *member, void *argument)
{
	const struct nezha_path *path = &member->team->right->paths[0];
	uint64_t wrong;

	(void)argument;
	if (member->rank == 0)
		begin_fault(PAYLOADS, 1, 1);
	world_barrier(member);
	calls(member, 10);
	world_barrier(member);
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, path->suspicion.pause >= NEZHA_SEC);
	EXPECT(member, path->lost > 0);
	nezha_fairlock_give(&member->engine->lock);
	wrong = count_wrong(member);
	EXPECT(member, wrong >= 3 && wrong < 200);
	fault.every = 0;
}

static void test_a_rail_that_lies(void **state)
{
	(void)state;
	world_crc = true;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, one_rail_lies, NULL), 0);
}

/* Where there is no other, the call ends with an error: by what the rank finds out itself, or by what the other one says. */
static void all_rails_lie(struct member *member, void *argument)
{
	float *vector = calloc(50000, sizeof *vector);
	int rc;

	(void)argument;
	if (member->rank == 0)
		begin_fault(PAYLOADS, 3, 1);
	world_barrier(member);
	rc = nezha_allreduce(member->team, vector, vector, 50000, NEZHA_FLOAT32, NEZHA_SUM, &(struct nezha_way){ .block = 4096 });
	EXPECT(member, rc == NEZHA_ERR_UNREACHABLE || rc == NEZHA_ERR_PROTOCOL);
	world_barrier(member);
	fault.every = 0;
	free(vector);
}

static void test_all_rails_lie(void **state)
{
	(void)state;
	world_crc = true;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, all_rails_lie, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_payloads),
		cmocka_unit_test(test_payloads_of_one_rail),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_too_short_for_a_probe),
		cmocka_unit_test(test_backward_records),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_lost_requests),
		cmocka_unit_test(test_a_rail_that_lies),
		cmocka_unit_test(test_all_rails_lie),
	};

	world_filter();
	return cmocka_run_group_tests_name("integrity", tests, NULL, NULL);
}
