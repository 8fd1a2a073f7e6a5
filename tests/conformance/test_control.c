/* SPDX-License-Identifier: BSD-3-Clause
 * A control connection that something on its way has forgotten while it was idle: what is said over it is never acknowledged, and no end
 * of it ever comes.  It is made anew while a call waits.  A filter on rank 1's socket takes all that comes away. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/hello.h"
#include "rails/inlink.h"
#include "tests/conformance/world.h"

#define MOST 64                 /* connections */
#define PATIENCE 10000          /* ms */

static atomic_uint count;       /* of rank 1's connections, that it was called for */
static atomic_int fds[MOST];

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
	int fd = (int)syscall(SYS_accept4, listener, address, length, flags);
	struct sockaddr_in own = { 0 };
	socklen_t own_length = sizeof own;

	if (fd >= 0 && !getsockname(fd, (struct sockaddr *)&own, &own_length) && own.sin_addr.s_addr == inet_addr("127.77.0.2") &&
	    atomic_load(&count) < MOST) {
		atomic_store(&fds[atomic_load(&count)], fd);
		atomic_fetch_add(&count, 1);
	}
	return fd;
}

/* Until rank 1 has more connections than `before`, as far as that happens. */
static bool wait_for_more(unsigned before)
{
	for (int ms = 0; ms < PATIENCE && atomic_load(&count) <= before; ms++)
		usleep(1000);
	return atomic_load(&count) > before;
}

/* Until the connection's end here has said its welcome: the library takes off, before, what filter a stranger has. */
static bool wait_until_let_in(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof info;

	for (int ms = 0; ms < PATIENCE; ms++) {
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
		if (info.tcpi_bytes_acked >= sizeof(struct nezha_challenge) + sizeof(struct nezha_welcome))
			return true;
		usleep(1000);
	}
	return false;
}

static void forget(int fd)
{
	struct sock_filter nothing = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog program = { .len = 1, .filter = &nothing };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

/* Rank 1, which is the last to come. */
static void forget_control(struct member *member)
{
	unsigned before;
	int data;

	EXPECT(member, wait_for_more(1));       /* one for data, and control */
	before = atomic_load(&count);
	nezha_fairlock_take(&member->engine->lock);
	data = member->team->left->paths[0].end.fd;
	nezha_fairlock_give(&member->engine->lock);
	for (unsigned i = 0; i < before; i++)
		if (atomic_load(&fds[i]) != data) {
			EXPECT(member, wait_until_let_in(atomic_load(&fds[i])));
			forget(atomic_load(&fds[i]));
		}
	world_barrier(member);
	EXPECT(member, wait_for_more(before));
}

static void forgotten(struct member *member, void *argument)
{
	(void)argument;
	if (member->rank == 1)
		forget_control(member);
	else
		world_barrier(member);
	/* Rank 0 asks rank 1 whether it is there. */
	world_call(member, member->team, NEZHA_FLOAT64, NEZHA_SUM, 100000, 65536, false, 0, UINT32_MAX);
}

static void test_forgotten(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, forgotten, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forgotten),
	};

	world_filter();
	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
