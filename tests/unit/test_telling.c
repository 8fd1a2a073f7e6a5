/* SPDX-License-Identifier: BSD-3-Clause
 * How often the neighbours are told, and called, when a rail is back (rails/regain.c).  The program's own sendto and
 * clock_gettime stand before the C library's: no datagram goes out, and time passes as a test wants it. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/contact.h"
#include "rails/engine.h"
#include "rails/link.h"
#include "rails/regain.h"

#define START (1000 * NEZHA_SEC)
#define BACK 1                  /* the rail that is back */
#define OTHER 0                 /* the one over which that is told */

/* ---- before the C library ---- */

static uint64_t now;            /* ns */
static int calls;               /* datagrams to an address that no host has */

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size)
{
	const struct sockaddr_in *address = (const struct sockaddr_in *)to;

	(void)fd, (void)data, (void)flags, (void)size;
	calls += to && ntohl(address->sin_addr.s_addr) >> 8 == 0xc00002;
	return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, out);
	*out = (struct timespec){ (time_t)(now / NEZHA_SEC), (long)(now % NEZHA_SEC) };
	return 0;
}

/* ---- an engine with a neighbour ---- */

struct scene {
	struct nezha_engine engine;
	struct nezha_link link;
	struct nezha_contact_list contacts;
	struct nezha_contact over[2];       /* control connections, by rail */
	int peers[2];                       /* their other ends */
};

/* The rail is back, but the path over it is not. */
static void open_scene(struct scene *scene)
{
	memset(scene, 0, sizeof *scene);
	now = START;
	calls = 0;
	nezha_fairlock_init(&scene->engine.lock);
	LIST_INIT(&scene->engine.links);
	LIST_INIT(&scene->engine.inlinks);
	LIST_INIT(&scene->contacts);
	scene->engine.card.rail_count = 2;
	scene->link.engine = &scene->engine;
	LIST_INSERT_HEAD(&scene->engine.links, &scene->link, entry);
	for (uint8_t r = 0; r < 2; r++) {
		int ends[2];

		scene->engine.rails[r].nic.address.s_addr = htonl(INADDR_LOOPBACK);
		scene->link.paths[r] = (struct nezha_path){ .joined = true, .peer_rail = r, .up = r != BACK };
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		scene->over[r] = (struct nezha_contact){ .engine = &scene->engine, .fd = ends[0], .link = &scene->link, .rail = r,
		                                         .state = NEZHA_CONTACT_ASKING };
		scene->peers[r] = ends[1];
		LIST_INSERT_HEAD(&scene->contacts, &scene->over[r], entry);
	}
	scene->engine.regain[BACK].tell_at = now;
}

static void close_scene(struct scene *scene)
{
	for (int r = 0; r < 2; r++) {
		close(scene->over[r].fd);
		close(scene->peers[r]);
	}
	nezha_fairlock_destroy(&scene->engine.lock);
}

/* How often the neighbour has been told over the rail since it was asked last. */
static int told(const struct scene *scene, int over)
{
	struct nezha_wire record;
	int count = 0;

	for (; recv(scene->peers[over], &record, sizeof record, MSG_DONTWAIT) == sizeof record; count++) {
		assert_int_equal(record.kind, NEZHA_WIRE_BACK);
		assert_int_equal(record.block, BACK);
	}
	return count;
}

/* A turn of the service thread; when it wants the next one, UINT64_MAX: never. */
static uint64_t turn(struct scene *scene)
{
	uint64_t next = UINT64_MAX;

	nezha_regain_turn(&scene->engine, &scene->contacts, -1, now, &next);
	return next;
}

/* ---- tests ---- */

/* As long as the path is not back: at once, and after pauses that double, each of which ends with one more time. */
static void test_again_and_again(void **state)
{
	static const uint64_t pauses[] = { 20, 40, 80, 160, 320 };      /* ms, as doc/design.md has them */
	struct scene scene;
	uint64_t next;

	(void)state;
	open_scene(&scene);
	next = turn(&scene);
	assert_int_equal(told(&scene, OTHER), 1);
	for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
		assert_true(next == now + pauses[i] * NEZHA_MSEC);
		now = next - 1;
		assert_true(turn(&scene) == next);
		assert_int_equal(told(&scene, OTHER), 0);
		now = next;
		next = turn(&scene);
		assert_int_equal(told(&scene, OTHER), 1);
		assert_int_equal(calls, i + 2);
	}
	assert_true(next == UINT64_MAX);
	now += 1000 * NEZHA_SEC;
	assert_true(turn(&scene) == UINT64_MAX);
	assert_int_equal(told(&scene, OTHER), 0);
	/* Over the rail itself nothing is told. */
	assert_int_equal(told(&scene, BACK), 0);
	close_scene(&scene);
}

/* No more once all of the rail is in use; but once in any case. */
static void test_until_in_use(void **state)
{
	struct scene scene;

	(void)state;
	for (int before = 0; before < 4; before++) {
		open_scene(&scene);
		for (int i = 0; i < before; i++) {
			now = i ? scene.engine.regain[BACK].tell_at : now;
			turn(&scene);
		}
		assert_int_equal(told(&scene, OTHER), before);
		scene.link.paths[BACK].up = true;
		now = scene.engine.regain[BACK].tell_at;
		if (!before)
			turn(&scene);
		now += NEZHA_SEC;
		assert_true(turn(&scene) == UINT64_MAX);
		assert_int_equal(told(&scene, OTHER), !before);
		close_scene(&scene);
	}
}

/* A control connection over which nothing can be told is made anew. */
static void test_cannot_be_told(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene);
	assert_int_equal(shutdown(scene.peers[OTHER], SHUT_RDWR), 0);
	turn(&scene);
	assert_true(scene.over[OTHER].deadline && scene.over[OTHER].deadline <= now);
	assert_false(scene.over[BACK].deadline);
	close_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again_and_again),
		cmocka_unit_test(test_until_in_use),
		cmocka_unit_test(test_cannot_be_told),
	};

	return cmocka_run_group_tests_name("telling", tests, NULL, NULL);
}
