/* SPDX-License-Identifier: BSD-3-Clause
 * Whom a listening socket lets in, and whom a crowded process's sockets do: the kernel is asked, over the host's own addresses. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/siege.h"
#include "rails/sieve.h"

#define SOON 100       /* ms: within a host a connection is made at once; what is not is not made */
#define LIMIT 10000    /* ms: for what must come, on a busy host */

static struct sockaddr_in place(const char *address)
{
	struct sockaddr_in place = { .sin_family = AF_INET };

	assert_int_equal(inet_pton(AF_INET, address, &place.sin_addr), 1);
	return place;
}

static int listener(struct sockaddr_in *at)
{
	socklen_t length = sizeof *at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*at = place("127.0.0.1");
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &length), 0);
	return fd;
}

/* The connection's end at the listener, -1: it lets none in.  *peer: the other end. */
static int knock(int fd, const struct sockaddr_in *at, const char *address, int limit, int *peer)
{
	struct sockaddr_in from = place(address);
	struct pollfd wait = { fd, POLLIN, 0 };

	*peer = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(*peer, (struct sockaddr *)&from, sizeof from), 0);
	assert_true(!connect(*peer, (const struct sockaddr *)at, sizeof *at) || errno == EINPROGRESS);
	return poll(&wait, 1, limit) ? accept(fd, NULL, NULL) : -1;
}

static bool lets_in_within(int fd, const struct sockaddr_in *at, const char *address, int limit)
{
	int peer, end = knock(fd, at, address, limit, &peer);

	close(peer);
	if (end >= 0)
		close(end);
	return end >= 0;
}

static bool lets_in(int fd, const struct sockaddr_in *at, const char *address)
{
	return lets_in_within(fd, at, address, LIMIT);
}

static bool keeps_out(int fd, const struct sockaddr_in *at, const char *address)
{
	return !lets_in_within(fd, at, address, SOON);
}

static void test_known_only(void **state)
{
	const uint32_t known[] = { place("127.0.0.2").sin_addr.s_addr, place("127.0.0.3").sin_addr.s_addr };
	struct sockaddr_in at;
	int fd = listener(&at);

	(void)state;
	assert_true(lets_in(fd, &at, "127.0.0.4"));
	assert_true(nezha_sieve_set(fd, known, 2));
	assert_true(keeps_out(fd, &at, "127.0.0.4"));
	assert_true(lets_in(fd, &at, "127.0.0.2"));
	assert_true(lets_in(fd, &at, "127.0.0.3"));
	assert_true(nezha_sieve_set(fd, known, 1));
	assert_true(keeps_out(fd, &at, "127.0.0.3"));
	nezha_sieve_lift(fd);
	assert_true(lets_in(fd, &at, "127.0.0.4"));
	close(fd);
}

/* What was let in stays, whoever is known later; and bytes come through whole. */
static void test_connections_stay(void **state)
{
	const uint32_t known[] = { place("127.0.0.2").sin_addr.s_addr }, others[] = { place("127.0.0.9").sin_addr.s_addr };
	char text[8] = "";
	struct sockaddr_in at;
	int fd = listener(&at), peer, end;

	(void)state;
	assert_true(nezha_sieve_set(fd, known, 1));
	end = knock(fd, &at, "127.0.0.2", LIMIT, &peer);
	assert_true(end >= 0);
	assert_true(nezha_sieve_set(fd, others, 1));
	for (int i = 0; i < 2; i++) {
		struct pollfd wait = { end, POLLIN, 0 };

		assert_int_equal(send(peer, "whole", 6, 0), 6);
		assert_int_equal(poll(&wait, 1, LIMIT), 1);
		assert_int_equal(recv(end, text, sizeof text, 0), 6);
		assert_string_equal(text, "whole");
		nezha_sieve_lift(end);
	}
	close(end);
	close(peer);
	close(fd);
}

static void test_many(void **state)
{
	uint32_t known[NEZHA_SIEVE_MOST + 1];
	struct sockaddr_in at;
	int fd = listener(&at);

	(void)state;
	for (uint32_t i = 0; i <= NEZHA_SIEVE_MOST; i++)
		known[i] = htonl(0x0a000000 + i);
	known[NEZHA_SIEVE_MOST - 1] = place("127.0.0.2").sin_addr.s_addr;
	assert_false(nezha_sieve_set(fd, known, NEZHA_SIEVE_MOST + 1));
	assert_false(nezha_sieve_set(fd, known, 0));
	assert_true(lets_in(fd, &at, "127.0.0.4"));
	assert_true(nezha_sieve_set(fd, known, NEZHA_SIEVE_MOST));
	assert_true(lets_in(fd, &at, "127.0.0.2"));
	assert_true(keeps_out(fd, &at, "127.0.0.4"));
	/* and what it held goes when there are too many */
	assert_false(nezha_sieve_set(fd, known, NEZHA_SIEVE_MOST + 1));
	assert_true(lets_in(fd, &at, "127.0.0.4"));
	close(fd);
}

/* Neighbours get in, also one that becomes known meanwhile; when it is over, all do. */
static void test_siege(void **state)
{
	static struct nezha_engine engine;
	static struct nezha_inlink inlink = { .engine = &engine };
	struct nezha_siege siege = { 0 };
	struct sockaddr_in at;
	uint64_t now = 100 * NEZHA_SEC, next = UINT64_MAX;
	int fd = listener(&at);

	(void)state;
	nezha_fairlock_init(&engine.lock);
	engine.card.rail_count = 1;
	LIST_INSERT_HEAD(&engine.inlinks, &inlink, entry);
	inlink.addresses[0] = place("127.0.0.2").sin_addr.s_addr;
	nezha_siege_begin(&siege, &engine, &fd, now);
	nezha_siege_turn(&siege, &engine, &fd, now, &next);
	assert_true(next == now + NEZHA_SEC);
	assert_true(lets_in(fd, &at, "127.0.0.2"));
	assert_true(keeps_out(fd, &at, "127.0.0.4"));
	nezha_inlink_came_from(&inlink, 0, place("127.0.0.4").sin_addr.s_addr);
	nezha_siege_turn(&siege, &engine, &fd, now, &next);
	assert_true(lets_in(fd, &at, "127.0.0.4"));
	assert_true(keeps_out(fd, &at, "127.0.0.5"));
	now = next;
	nezha_siege_turn(&siege, &engine, &fd, now, &next);
	assert_true(lets_in(fd, &at, "127.0.0.5"));
	/* the crowd is still there: longer, and never longer than a neighbour may be without a path */
	for (uint64_t pause = 2; pause <= 8; pause *= 2) {
		next = UINT64_MAX;
		nezha_siege_begin(&siege, &engine, &fd, now);
		nezha_siege_turn(&siege, &engine, &fd, now, &next);
		assert_true(next == now + (pause < 4 ? pause : 4) * NEZHA_SEC);
		now = next;
		nezha_siege_turn(&siege, &engine, &fd, now, &next);
	}
	nezha_fairlock_destroy(&engine.lock);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_only),
		cmocka_unit_test(test_connections_stay),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_siege),
	};

	return cmocka_run_group_tests_name("sieve", tests, NULL, NULL);
}
