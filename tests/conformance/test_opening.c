/* SPDX-License-Identifier: BSD-3-Clause
 * The opening probe between ranks whose connections come up at different times: each stays until what its left neighbour measures has
 * come, also where that one's connection is late, or waits for another that never comes.  This program's accept4 makes it so. */
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/link.h"
#include "rails/probing.h"
#include "tests/conformance/world.h"

#define LATE (100 * NEZHA_MSEC)         /* the other direction's probe of 8 MiB is over long before */
#define NEVER UINT64_MAX

static atomic_uint late_address;        /* network byte order: whose listener is late; 0: none */
static _Atomic uint64_t lateness;       /* ns, or NEVER */
static _Atomic uint64_t late_since;     /* ns: since when a connection waits there, 0: none does */

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
	struct sockaddr_in own = { 0 };
	socklen_t own_length = sizeof own;
	uint64_t none = 0, now = nezha_now();

	if (!getsockname(listener, (struct sockaddr *)&own, &own_length) && own.sin_addr.s_addr == atomic_load(&late_address)) {
		atomic_compare_exchange_strong(&late_since, &none, now);
		if (now - atomic_load(&late_since) < atomic_load(&lateness)) {
			usleep(1000);
			errno = EAGAIN;
			return -1;
		}
	}
	return (int)syscall(SYS_accept4, listener, address, length, flags);
}

/* Those that are up. */
static void paths_are_measured(struct member *member, void *argument)
{
	const int *up = argument;
	int measured = 0;

	nezha_fairlock_take(&member->engine->lock);
	for (int r = 0; r < member->world->rails; r++) {
		const struct nezha_path *path = &member->team->right->paths[r];

		EXPECT(member, !nezha_probing_is_on(path));
		measured += path->up;
	}
	nezha_fairlock_give(&member->engine->lock);
	EXPECT(member, member->rank || measured == *up);
}

static void test_late_connection(void **state)
{
	int up = 1;

	(void)state;
	atomic_store(&lateness, LATE);
	atomic_store(&late_address, inet_addr("127.77.0.2"));
	assert_int_equal(world_run(2, 1, NEZHA_POLICY_ECF, paths_are_measured, &up), 0);
	assert_true(atomic_load(&late_since));
}

/* Rank 0 begins to measure its other path when it has waited for this one long enough. */
static void test_no_connection(void **state)
{
	int up = 1;

	(void)state;
	atomic_store(&lateness, NEVER);
	atomic_store(&late_address, inet_addr("127.77.1.2"));
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, paths_are_measured, &up), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_connection),
		cmocka_unit_test(test_no_connection),
	};

	world_filter();
	return cmocka_run_group_tests_name("opening", tests, NULL, NULL);
}
