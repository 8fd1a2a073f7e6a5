/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "rails/clock.h"
#include "rails/fairlock.h"

#define WANTS 20        /* of the one who comes now and then */
#define TURNS 1000      /* of the holder, for all of these: a millisecond each, of which some pass until the other one runs */
#define HELD 1000000    /* ns */

struct bench {
	struct nezha_fairlock lock;
	atomic_bool done;
};

static void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = HELD }, NULL);
}

static void *visit(void *argument)
{
	struct bench *bench = argument;

	pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){ 0 });
	for (int i = 0; i < WANTS; i++) {
		nezha_fairlock_take(&bench->lock);
		nezha_fairlock_give(&bench->lock);
		rest();
	}
	atomic_store(&bench->done, true);
	return NULL;
}

/* Who is woken runs only when the other one sleeps: else it may be the faster one. */
static void share_the_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
}

/* Who leaves the lock for no time at all lets the other one in none the less. */
static void test_visitor_gets_in(void **state)
{
	struct bench bench = { .done = false };
	pthread_t visitor;
	int turns = 0;

	(void)state;
	share_the_processor();
	nezha_fairlock_init(&bench.lock);
	nezha_fairlock_take(&bench.lock);
	assert_int_equal(pthread_create(&visitor, NULL, visit, &bench), 0);
	for (; turns < TURNS && !atomic_load(&bench.done); turns++) {
		rest();
		nezha_fairlock_give(&bench.lock);
		nezha_fairlock_retake(&bench.lock);
	}
	print_message("%d turns\n", turns);
	nezha_fairlock_give(&bench.lock);
	pthread_join(visitor, NULL);
	nezha_fairlock_destroy(&bench.lock);
	assert_true(turns < TURNS);
}

static void *try_for_a_while(void *argument)
{
	struct bench *bench = argument;
	struct timespec until = nezha_wall_after(5 * NEZHA_MSEC);

	atomic_store(&bench->done, nezha_fairlock_take_until(&bench->lock, &until));
	return NULL;
}

static void test_limit(void **state)
{
	struct bench bench = { .done = false };
	struct timespec until;
	pthread_t other;

	(void)state;
	nezha_fairlock_init(&bench.lock);
	nezha_fairlock_take(&bench.lock);
	assert_int_equal(pthread_create(&other, NULL, try_for_a_while, &bench), 0);
	pthread_join(other, NULL);
	assert_false(atomic_load(&bench.done));
	nezha_fairlock_give(&bench.lock);
	nezha_fairlock_retake(&bench.lock);             /* who has given up stands in nobody's way */
	nezha_fairlock_give(&bench.lock);
	until = nezha_wall_after(5 * NEZHA_MSEC);
	assert_true(nezha_fairlock_take_until(&bench.lock, &until));
	nezha_fairlock_give(&bench.lock);
	nezha_fairlock_destroy(&bench.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_visitor_gets_in),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests_name("fairlock", tests, NULL, NULL);
}
