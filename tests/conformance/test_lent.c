/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks so large that they go into connections by reference (rails/lend.h): the program changes its vectors as soon as a call is over,
 * while a lost connection may still hold what was in them.  This program's vmsplice counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/collective.h"
#include "rails/lend.h"
#include "rails/link.h"
#include "rails/wire.h"
#include "tests/conformance/mock_rail.h"
#include "tests/conformance/world.h"
#include "tests/unit/skip.h"
#include "tuning/status.h"

#define BLOCK (256u << 10)      /* bytes */
#define COUNT 1000003u          /* doubles: some 31 blocks */
#define CALLS 12

static atomic_uint lent, refused;
static atomic_size_t most_at_once = SIZE_MAX;   /* bytes that a socket takes of what is lent */

ssize_t vmsplice(int fd, const struct iovec *iov, size_t count, unsigned flags)
{
	ssize_t n = syscall(SYS_vmsplice, fd, iov, count, flags);

	atomic_fetch_add(n > 0 ? &lent : &refused, 1);
	return n;
}

ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes, unsigned flags)
{
	size_t most = atomic_load(&most_at_once);

	return syscall(SYS_splice, in, in_at, out, out_at, bytes < most ? bytes : most, flags);
}

static void skip_where_refused(void)
{
	if (!atomic_load(&lent) && atomic_load(&refused))
		SKIP_POINT("vmsplice is refused here: blocks are copied");
}

/* ---- calls ---- */

struct vectors {
	double *send, *recv;
};

static void one_call(struct member *member, const struct vectors *mine, unsigned seed)
{
	bool in_place = seed % 2;
	struct reference *reference;
	int rc;

	world_fill(mine->send, NEZHA_FLOAT64, COUNT, member->rank, seed);
	if (in_place)
		memcpy(mine->recv, mine->send, COUNT * sizeof(double));
	rc = nezha_allreduce(member->team, in_place ? mine->recv : mine->send, mine->recv, COUNT, NEZHA_FLOAT64, NEZHA_SUM,
	                     &(struct nezha_way){ .block = BLOCK });
	reference = reference_take(&(struct reference_of){ NEZHA_FLOAT64, NEZHA_SUM, COUNT, BLOCK, member->world->ranks, seed });
	EXPECT_RIGHT(member, rc == NEZHA_OK && !memcmp(mine->recv, reference_data(reference), COUNT * sizeof(double)));
	memset(mine->send, 0xa5, COUNT * sizeof(double));
	memset(mine->recv, 0x5a, COUNT * sizeof(double));
	reference_release(reference);
}

/* Rank 1 loses a connection before and during each call if *argument. */
static void calls(struct member *member, void *argument)
{
	const bool *cuts = argument;
	struct vectors mine = { malloc(COUNT * sizeof(double)), malloc(COUNT * sizeof(double)) };

	if (!mine.send || !mine.recv)
		abort();
	for (unsigned i = 0; i < CALLS; i++) {
		if (*cuts && member->rank == 1)
			world_cut(member, (int)i);
		one_call(member, &mine, i);
	}
	free(mine.send);
	free(mine.recv);
}

static void test_calls(void **state)
{
	bool cuts = false;

	(void)state;
	for (int policy = NEZHA_POLICY_ECF; policy <= NEZHA_POLICY_SHARE; policy++)
		assert_int_equal(world_run(3, 2, policy, calls, &cuts), 0);
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, calls, &cuts), 0);
	skip_where_refused();
	assert_true(atomic_load(&lent) > 0);
}

static void test_calls_under_cuts(void **state)
{
	uint64_t before = atomic_load(&world_lost);
	bool cuts = true;

	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, calls, &cuts), 0);
	assert_int_equal(world_run(4, 3, NEZHA_POLICY_SLICE, calls, &cuts), 0);
	world_crc = true;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, calls, &cuts), 0);
	world_crc = false;
	assert_true(atomic_load(&world_lost) > before);
}

/* ---- blocks that a collective rail gives back ---- */

static void returned_blocks(struct member *member, void *argument)
{
	struct nezha_collective collective = { .ops = &mock_rail_ops };
	struct mock_rail rail;

	mock_rail_init(&rail, argument, member->rank);
	collective.rail = &rail;
	EXPECT(member, nezha_team_attach(member->team, &collective) == NEZHA_OK);
	for (int i = 0; i < 4; i++)
		world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, COUNT, BLOCK, i % 2, 0, UINT32_MAX);
	world_barrier(member);
	nezha_team_detach(member->team);
	mock_rail_end(&rail);
}

/* Their final may come while their partial is still under way, from the same memory. */
static void test_returned_blocks(void **state)
{
	struct mock_hub *hub = mock_hub_create(3, MOCK_RETURNS_ALL);
	unsigned before;

	(void)state;
	skip_where_refused();
	before = atomic_load(&lent);
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, returned_blocks, hub), 0);
	assert_int_equal(atomic_load(&lent), before);
	mock_hub_destroy(hub);
}

/* ---- a call that is given up ---- */

#define PATIENCE (20 * NEZHA_SEC)

/* Gives the call up as soon as some of a block is lent, or only when all of it is on its way. */
struct giving_up {
	const struct member *member;
	bool whole;
	uint64_t since;         /* ns */
};

static int give_up_when_lent(void *context, uint64_t final, uint64_t *ready)
{
	const struct giving_up *when = context;
	const struct nezha_path *path = &when->member->team->right->paths[0];
	bool now;

	(void)final;
	(void)ready;
	nezha_fairlock_take(&when->member->engine->lock);
	now = path->lent > 0 && !(when->whole && path->current);
	nezha_fairlock_give(&when->member->engine->lock);
	if (!now && nezha_now() - when->since > PATIENCE)
		return NEZHA_ERR_PROTOCOL;
	return now ? NEZHA_ERR_NOMEM : NEZHA_OK;
}

/* One block, which rank 0 has sent before rank 1 has entered the call. */
static void leave_a_block(struct member *member, void *argument)
{
	struct giving_up when = { member, *(bool *)argument, nezha_now() };
	struct nezha_way way = { .block = BLOCK, .work = give_up_when_lent, .context = &when };
	const struct nezha_path *path = &member->team->right->paths[0];
	uint64_t count = 2 * BLOCK / sizeof(double);
	double *vector = calloc(count, sizeof *vector);

	if (member->rank == 0) {
		EXPECT(member, nezha_allreduce(member->team, vector, vector, count, NEZHA_FLOAT64, NEZHA_SUM, &way) == NEZHA_ERR_NOMEM);
		nezha_fairlock_take(&member->engine->lock);
		EXPECT(member, path->lost > 0);
		nezha_fairlock_give(&member->engine->lock);
	}
	world_barrier(member);
	free(vector);
}

static void test_given_up(void **state)
{
	bool whole = false;

	(void)state;
	skip_where_refused();
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, leave_a_block, &whole), 0);
}

/* Of a block that the socket took in parts the end was copied. */
static void test_given_up_with_a_copied_end(void **state)
{
	bool whole = true;

	(void)state;
	skip_where_refused();
	atomic_store(&most_at_once, BLOCK / 2);
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, leave_a_block, &whole), 0);
	atomic_store(&most_at_once, SIZE_MAX);
}

/* ---- a connection that is closed ---- */

struct closing {
	struct nezha_engine *engine;
	struct nezha_link link;
	struct nezha_path path;
	int peer;               /* nonblocking */
};

static struct closing *connection(void)
{
	struct closing *c = calloc(1, sizeof *c);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(c);
	c->engine = calloc(1, sizeof *c->engine);
	assert_non_null(c->engine);
	c->link.engine = c->engine;
	c->path.link = &c->link;
	c->path.ops = &nezha_tcp_rail;
	c->path.end.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(c->path.end.fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(fcntl(c->path.end.fd, F_SETFL, O_NONBLOCK), 0);
	c->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(c->peer >= 0);
	close(listener);
	return c;
}

static void give(struct closing *c, const void *payload, uint32_t bytes)
{
	c->path.out = (struct nezha_outgoing){
		.record = nezha_wire_make(NEZHA_WIRE_PARTIAL, 1, 1),
		.record_left = sizeof c->path.out.record,
		.payload = payload,
		.payload_left = bytes,
	};
}

/* Reads until there is nothing more for now; *end: recv's last result, with *why its errno. */
static size_t take(int fd, ssize_t *end, int *why)
{
	char buffer[65536];
	size_t bytes = 0;

	for (int i = 0; i < 200; i++) {
		while ((*end = recv(fd, buffer, sizeof buffer, 0)) > 0)
			bytes += (size_t)*end;
		*why = errno;
		if (*end == 0 || *why != EAGAIN)
			break;
		usleep(1000);
	}
	return bytes;
}

static void finish(struct closing *c)
{
	nezha_lender_close(&c->engine->lender);
	close(c->peer);
	free(c->engine);
	free(c);
}

/* What the peer's host has not got never goes out: the vector is the program's again. */
static void test_closed_with_something_left(void **state)
{
	struct closing *c = connection();
	size_t bytes = 16u << 20;
	char *payload = calloc(1, bytes);
	ssize_t end;
	int why, rc;

	(void)state;
	skip_where_refused();
	give(c, payload, (uint32_t)bytes);
	rc = nezha_tcp_rail.send(&c->path);
	assert_int_equal(rc, NEZHA_INPROGRESS);         /* no host's buffers hold that */
	assert_true(c->path.lent > 0 && c->path.lent == c->path.written);
	nezha_tcp_rail.close_path(&c->path);
	assert_true(take(c->peer, &end, &why) < c->path.written);
	assert_true(end < 0 && why == ECONNRESET);
	free(payload);
	finish(c);
}

/* One that has delivered all ends as ever. */
static void test_closed_with_nothing_left(void **state)
{
	struct closing *c = connection();
	char *payload = calloc(1, BLOCK);
	size_t bytes = 0;
	ssize_t end;
	int why;

	(void)state;
	skip_where_refused();
	give(c, payload, BLOCK);
	for (int i = 0; i < 1000 && nezha_tcp_rail.send(&c->path) == NEZHA_INPROGRESS; i++)
		bytes += take(c->peer, &end, &why);
	bytes += take(c->peer, &end, &why);
	assert_int_equal(bytes, sizeof(struct nezha_wire) + BLOCK);
	assert_true(c->path.lent > 0);
	nezha_tcp_rail.close_path(&c->path);
	assert_int_equal(take(c->peer, &end, &why), 0);
	assert_int_equal(end, 0);
	free(payload);
	finish(c);
}

/* ---- a child ---- */

/* A child that is forked has none of the engine's descriptors, this pipe's neither. */
static void fork_with_a_pipe(struct member *member, void *argument)
{
	static const char payload[4096];
	struct nezha_lender *lender = &member->engine->lender;
	int fds[2], status = -1;
	pid_t child;

	(void)argument;
	EXPECT(member, !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, nezha_lend(lender, fds[0], payload, sizeof payload) == sizeof payload && lender->open);
	nezha_fairlock_give(&member->engine->lock);
	EXPECT(member, nezha_engine_hold(member->engine));
	child = fork();
	if (!child) {
		int ends[] = { lender->from, lender->to };

		nezha_engine_abandon(member->engine);
		_exit(fcntl(ends[0], F_GETFD) < 0 && fcntl(ends[1], F_GETFD) < 0 ? 0 : 1);
	}
	nezha_engine_release(member->engine);
	EXPECT(member, child > 0 && waitpid(child, &status, 0) == child && status == 0);
	close(fds[0]);
	close(fds[1]);
}

static void test_child(void **state)
{
	(void)state;
	skip_where_refused();
	assert_int_equal(world_run(1, 1, NEZHA_POLICY_ECF, fork_with_a_pipe, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_calls_under_cuts),
		cmocka_unit_test(test_returned_blocks),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_given_up_with_a_copied_end),
		cmocka_unit_test(test_closed_with_something_left),
		cmocka_unit_test(test_closed_with_nothing_left),
		cmocka_unit_test(test_child),
	};

	world_filter();
	return skip_status(cmocka_run_group_tests_name("lent", tests, NULL, NULL));
}
