/* SPDX-License-Identifier: BSD-3-Clause
 * When a rank is roused by its aggregator's sockets.  One that does not take a packet: what was refused waits until there is room and is sent
 * then, and not only when its answer is missed.  Chunks that are long on their way: packets rouse nobody until the last ones are sent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/ina.h"
#include "tests/conformance/daemons.h"
#include "tests/conformance/ina_world.h"

#define CALLS 5
#define REFUSED_EACH 3           /* of so many datagrams, or runs of them, one is refused */
#define SLOW_USEC 2000           /* for each */
#define LONG (3u << 20)          /* elements: several windows of chunks */

static atomic_bool refusing, poor;
static atomic_uint asked, refused, hushed, heard, wrong;
static _Thread_local bool slow;

/* These three in place of the C library's, for the whole program. */

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	struct sockaddr_in peer;
	socklen_t length = sizeof peer;

	if (operation == EPOLL_CTL_MOD) {
		atomic_fetch_add(event->events & EPOLLIN ? &heard : &hushed, 1);
		if (!(event->events & EPOLLIN) && !getpeername(fd, (struct sockaddr *)&peer, &length))
			atomic_fetch_add(&wrong, 1);
	}
	return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

/* Poor is who may not have the receive buffer that it wants. */
int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	const int little = 100000;

	if (level == SOL_SOCKET && atomic_load(&poor) && option == SO_RCVBUFFORCE) {
		errno = EPERM;
		return -1;
	}
	if (level == SOL_SOCKET && atomic_load(&poor) && option == SO_RCVBUF)
		value = &little;
	return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int type = 0;
	socklen_t length = sizeof type;

	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
	if (type == SOCK_DGRAM && slow)
		usleep(SLOW_USEC);
	if (type == SOCK_DGRAM && atomic_load(&refusing) && atomic_fetch_add(&asked, 1) % REFUSED_EACH == 0) {
		atomic_fetch_add(&refused, 1);
		errno = EAGAIN;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

static void calls(struct member *member, void *argument)
{
	struct nezha_rail_stats stats;
	uint64_t sent = ina_sent(member, 0);

	(void)argument;
	for (int i = 0; i < CALLS; i++)
		ina_call(member, NEZHA_FLOAT32, NEZHA_SUM, 300007, 65536, i % 2);
	nezha_ina_stats(member->engine, 0, &stats);
	EXPECT(member, ina_sent(member, 0) > sent);
	/* What waits for its answer to be missed is sent again, chunk by chunk. */
	EXPECT(member, stats.bytes_resent < (stats.bytes_sent - stats.bytes_resent) / 4);
}

static void test_refused(void **state)
{
	(void)state;
	daemons_start("64M");
	atomic_store(&refusing, true);
	assert_int_equal(ina_run(3, 1, 1, calls, NULL), 0);
	atomic_store(&refusing, false);
	assert_true(atomic_load(&refused) > CALLS * 10);
	daemons_end(SIGTERM);
}

static void long_calls(struct member *member, void *argument)
{
	uint64_t sent = ina_sent(member, 0);

	(void)argument;
	slow = member->rank == 0;
	for (int i = 0; i < 2; i++)
		ina_call(member, NEZHA_INT32, NEZHA_SUM, LONG, 65536, i);
	slow = false;
	for (int i = 0; i < CALLS; i++)
		ina_call(member, NEZHA_INT32, NEZHA_SUM, 1000, 4096, false);
	EXPECT(member, ina_sent(member, 0) > sent);
}

/* The others' chunks wait for those of a slow rank. */
static void test_long_way(void **state)
{
	(void)state;
	daemons_start("64M");
	atomic_store(&hushed, 0);
	atomic_store(&heard, 0);
	assert_int_equal(ina_run(3, 1, 1, long_calls, NULL), 0);
	assert_true(atomic_load(&hushed) > 0);
	assert_true(atomic_load(&heard) > 0);
	assert_int_equal(atomic_load(&wrong), 0);        /* results come by the group, so the connected socket still rouses */
	daemons_end(SIGTERM);
}

static void count_slots(struct member *member, void *wanted)
{
	EXPECT(member, ina_use(member, 0));
	EXPECT(member, LIST_FIRST(&member->engine->inas)->welcome.window == *(const uint16_t *)wanted);
}

/* No more results are on the way than the socket holds. */
static void test_slots(void **state)
{
	uint16_t many = 512, few = 256;

	(void)state;
	daemons_start("64M");
	assert_int_equal(ina_run(2, 1, 1, count_slots, &many), 0);
	atomic_store(&poor, true);
	assert_int_equal(ina_run(2, 1, 1, count_slots, &few), 0);
	atomic_store(&poor, false);
	daemons_end(SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long_way),
		cmocka_unit_test(test_slots),
	};
	int status = ina_prepare();

	return status ? status : cmocka_run_group_tests_name("ina_roused", tests, NULL, NULL);
}
