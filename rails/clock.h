/* SPDX-License-Identifier: BSD-3-Clause
 * The one clock of the rails: monotonic nanoseconds; and the time of day, where the C library waits by it. */
#ifndef NEZHA_RAILS_CLOCK_H
#define NEZHA_RAILS_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NEZHA_USEC 1000ull            /* in ns */
#define NEZHA_MSEC 1000000ull
#define NEZHA_SEC  1000000000ull

static inline uint64_t nezha_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NEZHA_SEC + (uint64_t)t.tv_nsec;
}

/* The time of day in `ns` (less than a second), as pthread_mutex_timedlock and pthread_cond_timedwait want it. */
static inline struct timespec nezha_wall_after(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += (long)ns;
	if (t.tv_nsec >= (long)NEZHA_SEC) {
		t.tv_nsec -= (long)NEZHA_SEC;
		t.tv_sec++;
	}
	return t;
}

/* How much of the time since `last`, when something was looked at before, counts against it: not that in which we did not look,
 * because we were not scheduled. */
#define NEZHA_LOOK_MOST (10 * NEZHA_MSEC)

static inline uint64_t nezha_looked(uint64_t last, uint64_t now)
{
	return now - last < NEZHA_LOOK_MOST ? now - last : NEZHA_LOOK_MOST;
}

#endif
