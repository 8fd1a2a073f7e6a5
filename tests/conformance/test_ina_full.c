/* SPDX-License-Identifier: BSD-3-Clause
 * The rail of an aggregator whose socket does not take each packet: what was refused waits until there is room and is sent then, and not
 * only when its answer is missed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/ina.h"
#include "tests/conformance/daemons.h"
#include "tests/conformance/ina_world.h"

#define CALLS 5
#define REFUSED_EACH 3           /* of so many datagrams, or runs of them, one is refused */

static atomic_uint asked, refused;

/* In place of the C library's, for the whole program. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int type = 0;
	socklen_t length = sizeof type;

	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
	if (type == SOCK_DGRAM && atomic_fetch_add(&asked, 1) % REFUSED_EACH == 0) {
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
	assert_int_equal(ina_run(3, 1, 1, calls, NULL), 0);
	assert_true(atomic_load(&refused) > CALLS * 10);
	daemons_end(SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
	};
	int status = ina_prepare();

	return status ? status : cmocka_run_group_tests_name("ina_full", tests, NULL, NULL);
}
