/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/fairlock.h"

#include "rails/clock.h"

#define PATIENCE NEZHA_MSEC     /* ns: how long others may be faster */

void nezha_fairlock_init(struct nezha_fairlock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	pthread_mutex_init(&lock->next, NULL);
}

void nezha_fairlock_destroy(struct nezha_fairlock *lock)
{
	pthread_mutex_destroy(&lock->next);
	pthread_mutex_destroy(&lock->mutex);
}

void nezha_fairlock_take(struct nezha_fairlock *lock)
{
	struct timespec until;

	if (!pthread_mutex_trylock(&lock->mutex))
		return;
	until = nezha_wall_after(PATIENCE);
	if (pthread_mutex_timedlock(&lock->mutex, &until))
		nezha_fairlock_retake(lock);
}

void nezha_fairlock_retake(struct nezha_fairlock *lock)
{
	pthread_mutex_lock(&lock->next);
	pthread_mutex_lock(&lock->mutex);
	pthread_mutex_unlock(&lock->next);
}

bool nezha_fairlock_take_until(struct nezha_fairlock *lock, const struct timespec *until)
{
	bool taken;

	if (pthread_mutex_timedlock(&lock->next, until))
		return false;
	taken = !pthread_mutex_timedlock(&lock->mutex, until);
	pthread_mutex_unlock(&lock->next);
	return taken;
}

void nezha_fairlock_give(struct nezha_fairlock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}
