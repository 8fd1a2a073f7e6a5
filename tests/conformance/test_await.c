/* SPDX-License-Identifier: BSD-3-Clause
 * Pieces of long blocks that never come whole (rails/await.h), as where the sender may not have so much unacknowledged: the event
 * loop reads them all the same.  This program's ioctl makes it so: of a connection with unread data it says that there is one byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/sockios.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define CALLS 12
#define COUNT (1u << 20)         /* elements */
#define BLOCK (256u << 10)       /* bytes */
#define PATIENCE 120             /* s */

static atomic_uint lies;

/* In place of the C library's, for the whole program. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;
	int rc;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	rc = (int)syscall(SYS_ioctl, fd, request, argument);
	if (request == SIOCINQ && !rc && *(int *)argument > 1) {
		*(int *)argument = 1;
		atomic_fetch_add(&lies, 1);
	}
	return rc;
}

static void calls(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < CALLS; i++)
		world_call(member, member->team, NEZHA_INT32, NEZHA_SUM, COUNT + (unsigned)i, BLOCK, i % 2, 0, 0);
}

static void test_read_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, calls, NULL), 0);
	assert_true(atomic_load(&lies) > CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_all_the_same),
	};

	alarm(PATIENCE);        /* else a piece that nobody reads would hang it */
	return cmocka_run_group_tests_name("await", tests, NULL, NULL);
}
