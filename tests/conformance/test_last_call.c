/* SPDX-License-Identifier: BSD-3-Clause
 * How a rank learns that its right neighbour has entered the call, and has ended it, too: it is told, and where that word is lost, it asks;
 * also for a team's last call, after which the neighbour has freed the team.  This program's send takes the words away. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "rails/wire.h"
#include "tests/conformance/world.h"

#define RANKS 3
#define TEAM 1                  /* the id of the world's team */
#define RECORDS 64              /* that go at once, at most */
#define LIMIT 60                /* s: a rank that waits for ever would hang all */
#define DRIP 1000000            /* ns: far less than the silence after which a rank asks */
#define PIECES 960              /* blocks of a call, of which rank 0 sends 32 at most before the grant; two thirds of them come to it
                                 * none the less, a few dozen each time it looks */

/* ---- what is said ---- */

static atomic_uint said[RANKS]; /* bit n: the rank has said that it is done with the team's op n */
static atomic_bool unsaid;      /* rank 1's words that it is done come as what it had said before: that it has entered the call */
static atomic_bool unasked;     /* rank 0's questions are lost */
static atomic_uint taken;       /* words that were taken away */
static atomic_bool shut;        /* rank 1's words that it has entered the call come as those of the call before */
static atomic_bool drips;       /* what comes to rank 0 comes slowly, ... */
static atomic_uint drops;       /* ... so often, ... */
static atomic_uint asked_at;    /* ... of which so many and one before rank 0 asked for the first time; 0: it did not */

/* The rank that the socket belongs to; -1: it is none of a rail. */
static int rank_of(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof name;

	if (getsockname(fd, (struct sockaddr *)&name, &length) || name.sin_family != AF_INET)
		return -1;
	return (int)(ntohl(name.sin_addr.s_addr) & 0xff) - 1;
}

/* Notes what the record says, and changes it; false: it is lost. */
static bool pass(int rank, struct nezha_wire *record)
{
	if (record->magic != NEZHA_WIRE_MAGIC || record->zero || record->team != TEAM || rank < 0 || rank >= RANKS)
		return true;
	if (record->kind == NEZHA_WIRE_DONE) {
		atomic_fetch_or(&said[rank], 1u << record->op % 32);
		if (rank == 1 && atomic_load(&unsaid)) {
			record->kind = NEZHA_WIRE_GRANT;
			atomic_fetch_add(&taken, 1);
		}
	}
	if (record->kind == NEZHA_WIRE_GRANT && rank == 1 && atomic_load(&shut)) {
		record->op--;
		atomic_fetch_add(&taken, 1);
	}
	if (record->kind == NEZHA_WIRE_QUERY && rank == 0 && atomic_exchange(&drips, false))
		atomic_store(&asked_at, 1 + atomic_load(&drops));
	return record->kind != NEZHA_WIRE_QUERY || rank != 0 || !atomic_load(&unasked);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
	struct nezha_wire records[RECORDS];
	size_t count = length / sizeof records[0];
	int rank;

	if (!count || count > RECORDS || length % sizeof records[0] || (rank = rank_of(fd)) < 0)
		return syscall(SYS_sendto, fd, data, length, flags, NULL, 0);
	memcpy(records, data, length);
	for (size_t i = 0; i < count; i++)
		if (!pass(rank, &records[i]))
			return (ssize_t)length;         /* a question goes by itself */
	return syscall(SYS_sendto, fd, records, length, flags, NULL, 0);
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
	ssize_t n = syscall(SYS_readv, fd, iov, count);

	if (n > 0 && atomic_load(&drips) && rank_of(fd) == 0) {
		atomic_fetch_add(&drops, 1);
		nanosleep(&(struct timespec){ .tv_nsec = DRIP }, NULL);
	}
	return n;
}

/* ---- bodies ---- */

static void call(struct member *member)
{
	world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 30011, 8192, false, 0, 0);
}

/* Who ends a call has told its left neighbour so. */
static void told(struct member *member, void *argument)
{
	(void)argument;
	for (int i = 0; i < 5; i++) {
		call(member);
		EXPECT(member, atomic_load(&said[member->rank]) >> member->team->entered % 32 & 1);
	}
}

static void begin(void)
{
	for (int r = 0; r < RANKS; r++)
		atomic_store(&said[r], 0);
	atomic_store(&unsaid, false);
	atomic_store(&unasked, false);
	atomic_store(&taken, 0);
	atomic_store(&shut, false);
	atomic_store(&drips, false);
	atomic_store(&drops, 0);
	atomic_store(&asked_at, 0);
	alarm(LIMIT);
}

static void test_told(void **state)
{
	(void)state;
	begin();
	assert_int_equal(world_run(RANKS, 1, NEZHA_POLICY_ECF, told, NULL), 0);
	alarm(0);
}

/* The word of rank 1 is lost, and rank 0 gets to ask only when rank 1 has left the call, and has freed the team if *argument. */
static void not_told(struct member *member, void *argument)
{
	const bool *frees = argument;

	call(member);
	world_barrier(member);
	if (member->rank == 1) {
		atomic_store(&unsaid, true);
		atomic_store(&unasked, true);
	}
	world_barrier(member);
	call(member);
	if (member->rank == 1) {
		if (*frees) {
			nezha_team_destroy(member->team);
			member->team = NULL;
		}
		atomic_store(&unasked, false);
	}
	world_barrier(member);
	EXPECT(member, atomic_load(&taken) > 0);
	atomic_store(&unsaid, false);
	world_barrier(member);
	if (!*frees)
		call(member);
}

static void test_asks_who_has_left_the_call(void **state)
{
	bool frees = false;

	(void)state;
	begin();
	assert_int_equal(world_run(RANKS, 1, NEZHA_POLICY_ECF, not_told, &frees), 0);
	alarm(0);
}

static void test_asks_who_has_freed_the_team(void **state)
{
	bool frees = true;

	(void)state;
	begin();
	assert_int_equal(world_run(RANKS, 1, NEZHA_POLICY_ECF, not_told, &frees), 0);
	alarm(0);
}

/* Rank 1's word that it has entered the call is lost, while rank 0 gets blocks from rank 2 all the time. */
static void not_granted(struct member *member, void *argument)
{
	(void)argument;
	call(member);
	world_barrier(member);
	if (member->rank == 1) {
		atomic_store(&shut, true);
		atomic_store(&drips, true);
	}
	world_barrier(member);
	world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, PIECES * 2048, 16384, false, 0, 0);
	world_barrier(member);
	if (member->rank != 0)
		return;
	EXPECT(member, atomic_load(&taken) > 0);
	EXPECT(member, atomic_load(&asked_at) > 0 && atomic_load(&asked_at) < PIECES / 3);
}

static void test_asks_while_others_send(void **state)
{
	(void)state;
	begin();
	assert_int_equal(world_run(RANKS, 1, NEZHA_POLICY_ECF, not_granted, NULL), 0);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_asks_who_has_left_the_call),
		cmocka_unit_test(test_asks_who_has_freed_the_team),
		cmocka_unit_test(test_asks_while_others_send),
	};

	world_filter();
	return cmocka_run_group_tests_name("last_call", tests, NULL, NULL);
}
