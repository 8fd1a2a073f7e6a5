/* SPDX-License-Identifier: BSD-3-Clause
 * When a path counts as lost because nothing is acknowledged, and when its peer is only late: by what the kernel says of its
 * connection, which this program's getsockopt makes up, and at moments that the test makes up. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/link.h"
#include "tests/conformance/world.h"

#define RAILS 2
#define LOOK 10                 /* ms between two looks: so much of the time between them counts at most */
#define LONG 10000              /* ms */
#define GIVEN (1u << 20)        /* bytes that a path has been given */

/* ---- what the kernel says ---- */

/* Rank 0's connections to the right, by rail; only rank 0 touches `info`. */
static struct {
	atomic_int fd;          /* 0: none */
	struct tcp_info info;
} kernel[RAILS];

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict length)
{
	for (int r = 0; r < RAILS && level == IPPROTO_TCP && name == TCP_INFO; r++)
		if (fd == atomic_load(&kernel[r].fd)) {
			memcpy(value, &kernel[r].info, *length < sizeof kernel[r].info ? *length : sizeof kernel[r].info);
			return 0;
		}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
}

/* ---- rank 0's paths ---- */

static int peers[RAILS];        /* the other ends of its connections; -1: none */

static struct nezha_path *path_of(struct member *member, int r)
{
	return &member->team->right->paths[r];
}

/* A new connection, which has been given something. */
static void attach(struct member *member, int r)
{
	static uint32_t last = 0;
	struct nezha_connection connection = { .ops = &nezha_tcp_rail, .id = ++last, .events = -1 };
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		abort();
	connection.fd = fds[0];
	peers[r] = fds[1];
	memset(&kernel[r].info, 0, sizeof kernel[r].info);
	atomic_store(&kernel[r].fd, fds[0]);
	nezha_link_attach(member->team->right, r, &connection);
	path_of(member, r)->written += GIVEN;
	EXPECT(member, path_of(member, r)->up);
}

static void give_up(struct member *member, int r)
{
	nezha_link_path_fail(path_of(member, r), "the test says so");
	atomic_store(&kernel[r].fd, 0);
	if (peers[r] >= 0)
		close(peers[r]);
	peers[r] = -1;
}

/* Rail 0's path, beside rail 1's or alone, and what the kernel says of it from now on. */
static void begin(struct member *member, bool alone, uint32_t unacked, uint8_t probes)
{
	for (int r = 0; r < RAILS; r++)
		give_up(member, r);
	for (int r = 0; r < RAILS - alone; r++)
		attach(member, r);
	kernel[0].info.tcpi_unacked = unacked;
	kernel[0].info.tcpi_probes = probes;
}

/* Whether rail 0's path stays for so long, while its peer's host answers something or not. */
static bool stays(struct member *member, int ms, bool answers)
{
	struct nezha_path *path = path_of(member, 0);
	uint64_t now = path->last.time;

	for (int at = 0; path->up && at < ms; at += LOOK) {
		kernel[0].info.tcpi_last_ack_recv = answers ? 0 : kernel[0].info.tcpi_last_ack_recv + LOOK;
		now += LOOK * NEZHA_MSEC;
		nezha_link_tick(member->team->right, now);
	}
	return path->up;
}

/* ---- bodies: rank 0, under its lock ---- */

/* A peer that takes nothing in, and whose window is shut: nothing is in flight, and its kernel answers the probes for more room. */
static void late(struct member *member)
{
	for (int alone = 0; alone < 2; alone++)
		/* It does not answer each of them. */
		for (uint8_t probes = 0; probes <= 2; probes++) {
			begin(member, alone, 0, probes);
			kernel[0].info.tcpi_notsent_bytes = GIVEN;
			kernel[0].info.tcpi_rwnd_limited = 1000;
			EXPECT(member, stays(member, LONG, true));
			/* Between two probes nothing comes. */
			EXPECT(member, stays(member, LONG, false));
		}
}

/* Its window is shut, and nobody answers the probes any more. */
static void gone_while_shut(struct member *member)
{
	for (int alone = 0; alone < 2; alone++) {
		begin(member, alone, 0, 0);
		kernel[0].info.tcpi_notsent_bytes = GIVEN;
		EXPECT(member, stays(member, LONG, true));
		kernel[0].info.tcpi_probes = 5;
		EXPECT(member, !stays(member, LONG, false));
	}
}

/* Something is in flight, and nothing of it is acknowledged. */
static void gone(struct member *member)
{
	begin(member, false, 1, 0);
	EXPECT(member, !stays(member, LONG / 10, false));
	/* The only path gets more time. */
	begin(member, true, 1, 0);
	EXPECT(member, stays(member, LONG / 10, false));
	EXPECT(member, !stays(member, LONG, false));
}

/* It is slow, but acknowledges a little each time; or, the only one, makes up for a loss and hears something. */
static void slow(struct member *member)
{
	begin(member, false, 1, 0);
	for (int at = 0; at < LONG; at += 4 * LOOK) {
		kernel[0].info.tcpi_bytes_acked++;
		EXPECT(member, stays(member, 4 * LOOK, true));
	}
	begin(member, true, 1, 0);
	EXPECT(member, stays(member, LONG, true));
	EXPECT(member, !stays(member, LONG, false));
}

/* Nobody but the test connects a rail, or drives the engine. */
static void with_paths(struct member *member, void *argument)
{
	void (*const *body)(struct member *) = argument;

	if (member->rank == 0) {
		nezha_fairlock_take(&member->engine->lock);
		for (int r = 0; r < RAILS; r++) {
			path_of(member, r)->joined = false;
			peers[r] = -1;
		}
		(*body)(member);
		for (int r = 0; r < RAILS; r++)
			give_up(member, r);
		nezha_fairlock_give(&member->engine->lock);
	}
	world_barrier(member);
}

static void run(void (*body)(struct member *member))
{
	assert_int_equal(world_run(2, RAILS, NEZHA_POLICY_ECF, with_paths, &body), 0);
}

static void test_late(void **state)
{
	(void)state;
	run(late);
}

static void test_gone_while_shut(void **state)
{
	(void)state;
	run(gone_while_shut);
}

static void test_gone(void **state)
{
	(void)state;
	run(gone);
}

static void test_slow(void **state)
{
	(void)state;
	run(slow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_gone_while_shut),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_slow),
	};

	world_filter();
	return cmocka_run_group_tests_name("stalls", tests, NULL, NULL);
}
