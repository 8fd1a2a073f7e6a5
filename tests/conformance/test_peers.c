/* SPDX-License-Identifier: BSD-3-Clause
 * Peers that are none, and those that cannot go on: strangers at the door, no descriptors to let anybody in, processes that die. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/hello.h"
#include "rails/link.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

/* ---- strangers ---- */

/* Connects to rail 0 of the member and sends `length` bytes of noise; the connection is left open. */
static int bother(struct member *member, size_t length)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	unsigned char noise[200];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = member->world->cards[member->rank].rails[0].address;
	to.sin_port = htons(member->world->cards[member->rank].rails[0].port);
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (unsigned char)(i * 37 + length);
	EXPECT(member, !connect(fd, (struct sockaddr *)&to, sizeof to));
	if (length && send(fd, noise, length, MSG_NOSIGNAL) < 0)
		EXPECT(member, errno == EPIPE || errno == ECONNRESET);
	return fd;
}

/* More half-open and senseless connections than the handshake has room for, while calls go on. */
static void calls_among_strangers(struct member *member, void *argument)
{
	enum { STRANGERS = 150 };
	int fds[STRANGERS];

	(void)argument;
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = bother(member, (size_t)i);
		if (i % 10 == 0)
			world_call(member, member->team, NEZHA_INT64, NEZHA_BXOR, 30011, 8192, false, 0, 0);
	}
	world_cut(member, 0);      /* the job's own connections still get through the crowd */
	for (int i = 0; i < 5; i++)
		world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
}

static void test_strangers(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, calls_among_strangers, NULL), 0);
}

/* Whether rail 0 of the member lets a connection from a host outside the job in, which then says nonsense and goes. */
static bool is_let_in(struct member *member)
{
	enum { PATIENCE = 300 };       /* ms; without a siege it is let in at once */
	struct sockaddr_in to = { .sin_family = AF_INET }, from = { .sin_family = AF_INET };
	struct pollfd pollfd = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), .events = POLLOUT };
	const char noise[sizeof(struct nezha_hello)] = "nonsense";
	bool in;

	to.sin_addr.s_addr = member->world->cards[member->rank].rails[0].address;
	to.sin_port = htons(member->world->cards[member->rank].rails[0].port);
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x090909);
	EXPECT(member, !bind(pollfd.fd, (struct sockaddr *)&from, sizeof from));
	connect(pollfd.fd, (struct sockaddr *)&to, sizeof to);
	in = poll(&pollfd, 1, PATIENCE) == 1;
	if (in && send(pollfd.fd, noise, sizeof noise, MSG_NOSIGNAL) > 0) {
		pollfd.events = POLLRDHUP;
		poll(&pollfd, 1, PATIENCE);
	}
	close(pollfd.fd);
	return in;
}

/* Never two at a time, but many: after some they are kept out, and the job's own still come in. */
static void one_after_the_other(struct member *member, void *argument)
{
	enum { STRANGERS = 1000 };
	int i = 0;

	(void)argument;
	world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
	while (i < STRANGERS && is_let_in(member))
		i++;
	EXPECT(member, i > 10 && i < STRANGERS);
	world_cut(member, 0);
	for (i = 0; i < 5; i++)
		world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
}

static void test_one_after_the_other(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, one_after_the_other, NULL), 0);
}

/* The address alone, not the host, is listened on. */
static void expect_bound(struct member *member)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(member->world->cards[member->rank].rails[0].port),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	EXPECT(member, connect(fd, (struct sockaddr *)&to, sizeof to) && errno == ECONNREFUSED);
	close(fd);
}

/* Plays the hello, made anew or as it was, to the member's own port; whether the answer is a welcome. */
static bool is_welcome(struct member *member, struct nezha_hello *hello, bool make)
{
	struct nezha_challenge challenge;
	struct nezha_welcome welcome;
	int fd = bother(member, 0);
	bool welcomed;

	EXPECT(member, recv(fd, &challenge, sizeof challenge, MSG_WAITALL) == sizeof challenge);
	if (make)
		EXPECT(member, nezha_hello_make(member->engine->key, &challenge, hello) == NEZHA_OK);
	EXPECT(member, send(fd, hello, sizeof *hello, MSG_NOSIGNAL) == sizeof *hello);
	welcomed = recv(fd, &welcome, sizeof welcome, MSG_WAITALL) == sizeof welcome;
	close(fd);
	return welcomed;
}

/* What was a right hello once is none when it is said again. */
static void replay(struct member *member, void *argument)
{
	int left = (member->rank + member->world->ranks - 1) % member->world->ranks;
	struct nezha_hello hello = { .from = left, .to = member->rank, .kind = NEZHA_HELLO_CONTROL };

	(void)argument;
	expect_bound(member);
	EXPECT(member, is_welcome(member, &hello, true));
	for (int i = 0; i < 3; i++)
		EXPECT(member, !is_welcome(member, &hello, false));
	world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
}

static void test_replay(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, replay, NULL), 0);
}

static int paths_up(struct member *member)
{
	int up;

	nezha_fairlock_take(&member->engine->lock);
	up = nezha_link_paths_up(member->team->right);
	nezha_fairlock_give(&member->engine->lock);
	return up;
}

/* Without a free descriptor nobody can be accepted: what was lost comes back when there is one again. */
static void no_descriptors(struct member *member, void *argument)
{
	struct rlimit before, none;

	(void)argument;
	world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
	world_barrier(member);
	if (!member->rank) {
		int lowest = dup(0);

		close(lowest);
		getrlimit(RLIMIT_NOFILE, &before);
		none = before;
		none.rlim_cur = (rlim_t)lowest;
		setrlimit(RLIMIT_NOFILE, &none);
	}
	world_barrier(member);
	world_cut(member, 0);
	for (int i = 0; i < 20; i++)
		world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
	world_barrier(member);
	if (!member->rank)
		setrlimit(RLIMIT_NOFILE, &before);
	world_barrier(member);
	for (int i = 0; i < 2000 && paths_up(member) < 2; i++)
		usleep(5000);
	EXPECT(member, paths_up(member) == 2);
	world_barrier(member);
	world_call(member, member->team, NEZHA_INT64, NEZHA_SUM, 100003, 8192, true, 0, 0);
}

static void test_no_descriptors(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, no_descriptors, NULL), 0);
}

/* ---- a process that dies ---- */

static int try_call(struct member *member)
{
	const uint64_t count = 1 << 20;
	float *data = calloc(count, sizeof *data);
	int rc = nezha_allreduce(member->team, data, data, count, NEZHA_FLOAT32, NEZHA_SUM,
	                         &(struct nezha_way){ .block = 65536 });

	free(data);
	return rc;
}

/* Its neighbours notice, and tell the others; also those who enter the call only later. */
static void one_dies(struct member *member, void *argument)
{
	const int *when = argument;

	EXPECT(member, try_call(member) == NEZHA_OK);
	world_barrier(member);
	if (member->rank == 2) {
		usleep((useconds_t)*when * 1000);
		nezha_team_destroy(member->team);
		nezha_engine_destroy(member->engine);
		member->team = NULL;
		member->engine = NULL;
		return;
	}
	if (member->rank == 4)
		usleep(800000);
	EXPECT(member, try_call(member) != NEZHA_OK);
	EXPECT(member, try_call(member) == NEZHA_ERR_PROTOCOL);
}

static void test_death(void **state)
{
	(void)state;
	alarm(60);      /* a rank that waits for ever would hang all */
	for (int when = 0; when <= 20; when += 20)
		assert_int_equal(world_run(6, 2, NEZHA_POLICY_ECF, one_dies, &when), 0);
	alarm(0);
}

/* The word of a broken team is lost, and the team freed where it broke: who waits for it asks, and is told. */
static void freed_when_broken(struct member *member, void *argument)
{
	(void)argument;
	EXPECT(member, try_call(member) == NEZHA_OK);
	world_barrier(member);
	if (member->rank) {
		EXPECT(member, try_call(member) != NEZHA_OK);
		return;
	}
	nezha_fairlock_take(&member->engine->lock);
	member->team->broken = true;
	member->team->fall = (struct nezha_fall){ .known = true, .id = member->team->id, .lost = NEZHA_NOBODY };
	nezha_fairlock_give(&member->engine->lock);
	nezha_team_destroy(member->team);
	member->team = NULL;
}

static void test_freed_when_broken(void **state)
{
	(void)state;
	alarm(60);
	assert_int_equal(world_run(3, 2, NEZHA_POLICY_ECF, freed_when_broken, NULL), 0);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_freed_when_broken),
	};

	world_filter();
	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
