/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation daemon's control connections, when their other ends go: without a word, or in the midst of what it says. */
#include "tests/unit/aggd_bed.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tuning/log.h"

#define WAIT 10000                       /* ms, for what must come */
#define DESCRIPTORS 4096                 /* more than this program has open */
#define SOON 60                          /* s: a host that has vanished is noticed in a shorter time */

static bool is_stream(int fd)
{
	socklen_t length = sizeof(int);
	int type = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_STREAM;
}

/* The daemon's end of a rank's control connection, which is in this process, too. */
static int daemons_end(const struct bed_rank *rank)
{
	struct sockaddr_in ours, peer;
	socklen_t length = sizeof ours;

	assert_int_equal(getsockname(rank->control, (struct sockaddr *)&ours, &length), 0);
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		length = sizeof peer;
		if (!getpeername(fd, (struct sockaddr *)&peer, &length) && peer.sin_family == AF_INET &&
		    peer.sin_port == ours.sin_port && peer.sin_addr.s_addr == ours.sin_addr.s_addr && is_stream(fd))
			return fd;
	}
	fail_msg("rank %d's connection has no other end", rank->number);
	return -1;
}

static int option(int fd, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, level, name, &value, &length), 0);
	return value;
}

/* ---- without a word ---- */

/* Whoever has connected, a stranger or a rank of a session, is asked now and then whether it is still there. */
static void test_asked_whether_it_lives(void **state)
{
	struct bed_rank ends[BED_RANKS + 1], *stranger = &ends[BED_RANKS];
	struct nezha_ina_record challenge;

	(void)state;
	bed_open_session(0, ends);
	*stranger = (struct bed_rank){ 0, 0, bed_connected(SOCK_STREAM), -1, 0 };
	bed_hear(stranger, NEZHA_INA_CHALLENGE, &challenge);     /* so it has been let in */
	bed_hold();                                              /* ... and is not turned out meanwhile */
	for (int i = 0; i <= BED_RANKS; i++) {
		int fd = daemons_end(&ends[i]);

		assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
		assert_in_range(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
		                option(fd, IPPROTO_TCP, TCP_KEEPCNT) * option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 1, SOON);
	}
	bed_go_on();
	bed_leave(ends);
	close(stranger->control);
	bed_stop();
}

/* ---- while it is told something ---- */

static volatile sig_atomic_t pipes;      /* signals that would have ended the daemon */

static void count_pipe(int number)
{
	(void)number;
	pipes++;
}

/* Ends the connection so that nothing can be sent from the daemon's end, not even once: after the orderly end, which that
 * could still answer, comes a reset. */
static void break_off(const struct bed_rank *rank)
{
	const struct linger at_once = { .l_onoff = 1 };
	int fd = daemons_end(rank);
	struct pollfd gone = { .fd = fd };

	assert_int_equal(shutdown(rank->control, SHUT_WR), 0);
	gone.events = POLLRDHUP;
	assert_int_equal(poll(&gone, 1, WAIT), 1);
	assert_int_equal(setsockopt(rank->control, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
	close(rank->control);
	close(rank->udp);
	gone.events = 0;                 /* POLLHUP and POLLERR come in any case */
	assert_int_equal(poll(&gone, 1, WAIT), 1);
	assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT), -1);
	assert_int_equal(errno, EPIPE);
}

/* Both ranks of a session go at once: of whichever the daemon hears first, it cannot tell the other one.  It goes on. */
static void test_told_when_gone(void **state)
{
	struct sigaction count = { .sa_handler = count_pipe }, before;
	struct bed_rank ranks[BED_RANKS], other[BED_RANKS];

	(void)state;
	assert_int_equal(sigaction(SIGPIPE, &count, &before), 0);
	pipes = 0;
	bed_open_session(0, ranks);
	bed_open_session(1, other);
	bed_hold();
	for (int r = 0; r < BED_RANKS; r++)
		break_off(&ranks[r]);
	bed_go_on();
	bed_exchange(other, 0, 4);
	bed_open_session(0, ranks);
	bed_exchange(ranks, 0, 4);
	bed_leave(ranks);
	bed_leave(other);
	bed_stop();
	assert_int_equal(pipes, 0);
	assert_int_equal(bed_stats.sessions, 3);
	sigaction(SIGPIPE, &before, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_asked_whether_it_lives, bed_start),
		cmocka_unit_test_setup(test_told_when_gone, bed_start),
	};

	if (sodium_init() < 0)
		return 1;
	nezha_log_open(NEZHA_LOG_ERROR, NULL, -1);
	return cmocka_run_group_tests_name("aggd_control", tests, NULL, NULL);
}
