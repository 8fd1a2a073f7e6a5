/* SPDX-License-Identifier: BSD-3-Clause
 * What is said over control connections of a rail that is back: to whom, in whose numbers, and what of it is believed. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/contact.h"
#include "rails/contact_control.h"
#include "rails/engine.h"
#include "tuning/status.h"

#define RAILS 3
#define ALONE 2        /* ours that the peer does not share; the peer's number of it is another rail's */
#define PAUSE 77

struct scene {
	struct nezha_engine engine;
	struct nezha_link link;
	struct nezha_contact contact;
	int ends[2];        /* ours, the peer's */
};

/* The peer calls our rail 0 its rail 1, and the other way round. */
static void open_scene(struct scene *scene, bool from_link)
{
	memset(scene, 0, sizeof *scene);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, scene->ends), 0);
	nezha_fairlock_init(&scene->engine.lock);
	scene->engine.card.rail_count = RAILS;
	scene->link.engine = &scene->engine;
	for (uint8_t r = 0; r < RAILS; r++)
		scene->link.paths[r] = (struct nezha_path){ .joined = r != ALONE, .peer_rail = r ? 0 : 1, .pause = PAUSE };
	scene->contact = (struct nezha_contact){
		.engine = &scene->engine, .fd = scene->ends[0], .link = from_link ? &scene->link : NULL,
		.state = from_link ? NEZHA_CONTACT_ASKING : NEZHA_CONTACT_ANSWERING,
	};
}

static void close_scene(struct scene *scene)
{
	close(scene->ends[0]);
	close(scene->ends[1]);
	nezha_fairlock_destroy(&scene->engine.lock);
}

static int hear_back(struct scene *scene, uint32_t rail)
{
	scene->contact.in.record = nezha_wire_make(NEZHA_WIRE_BACK, 0, 0);
	scene->contact.in.record.block = rail;
	nezha_wire_seal(&scene->contact.in.record, false);
	return nezha_contact_heard(&scene->contact);
}

/* The rail that was told; -1: nothing was said. */
static int told(struct scene *scene, uint32_t rail)
{
	struct nezha_wire record;
	ssize_t n;

	assert_int_equal(nezha_contact_tell_back(&scene->contact, rail), NEZHA_OK);
	n = recv(scene->ends[1], &record, sizeof record, MSG_DONTWAIT);
	if (n < 0)
		return -1;
	assert_int_equal(n, sizeof record);
	assert_int_equal(record.kind, NEZHA_WIRE_BACK);
	return (int)record.block;
}

static void test_right_one_is_back(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, true);
	assert_int_equal(hear_back(&scene, 0), NEZHA_OK);
	assert_int_equal(scene.link.paths[1].pause, 0);
	assert_int_equal(scene.link.paths[0].pause, PAUSE);
	close_scene(&scene);
}

/* The right one does not know which of its rails we share: no reason to end the connection, or to try anything. */
static void test_rail_that_is_not_shared(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, true);
	assert_int_equal(hear_back(&scene, ALONE), NEZHA_OK);
	assert_int_equal(hear_back(&scene, RAILS), NEZHA_OK);
	for (int r = 0; r < RAILS; r++)
		assert_int_equal(scene.link.paths[r].pause, PAUSE);
	assert_int_equal(hear_back(&scene, NEZHA_RAILS_MAX), NEZHA_ERR_PROTOCOL);
	close_scene(&scene);
	/* neither is one of a left one that has more rails than we */
	open_scene(&scene, false);
	assert_int_equal(hear_back(&scene, RAILS), NEZHA_OK);
	assert_int_equal(hear_back(&scene, NEZHA_RAILS_MAX), NEZHA_ERR_PROTOCOL);
	close_scene(&scene);
}

static void test_told_in_whose_numbers(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, true);
	assert_int_equal(told(&scene, 0), 1);
	assert_int_equal(told(&scene, 1), 0);
	assert_int_equal(told(&scene, ALONE), -1);
	close_scene(&scene);
	/* the left one is told in our numbers, for it knows which of them it shares */
	open_scene(&scene, false);
	assert_int_equal(told(&scene, ALONE), ALONE);
	close_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right_one_is_back),
		cmocka_unit_test(test_rail_that_is_not_shared),
		cmocka_unit_test(test_told_in_whose_numbers),
	};

	return cmocka_run_group_tests_name("contact", tests, NULL, NULL);
}
