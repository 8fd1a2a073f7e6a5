/* SPDX-License-Identifier: BSD-3-Clause
 * A mutex that one thread holds nearly all the time and leaves for moments, while others want it now and then.
 *
 * A plain mutex is not handed over: who wakes up to take it finds it taken again, for as long as the other has something to do.  Here
 * who has waited in vain for a millisecond is let in at the next chance.  Not at once: whoever hands it over waits until the other one
 * has been woken and run.  All functions return with what they are named for; the mutex may be used with pthread_cond_timedwait. */
#ifndef NEZHA_RAILS_FAIRLOCK_H
#define NEZHA_RAILS_FAIRLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct nezha_fairlock {
	pthread_mutex_t mutex;
	pthread_mutex_t next;   /* held by the one who is to be let in, or is about to take the mutex again; taken before the mutex */
};

void nezha_fairlock_init(struct nezha_fairlock *lock);
void nezha_fairlock_destroy(struct nezha_fairlock *lock);

/* By those who come now and then. */
void nezha_fairlock_take(struct nezha_fairlock *lock);

/* By the one who has just given it and wants it again. */
void nezha_fairlock_retake(struct nezha_fairlock *lock);

/* False: not by `until` (CLOCK_REALTIME). */
bool nezha_fairlock_take_until(struct nezha_fairlock *lock, const struct timespec *until);

void nezha_fairlock_give(struct nezha_fairlock *lock);

#endif
