/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/helper.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "pmpi/progress.h"
#include "rails/pace.h"

struct nezha_helper {
	pthread_t thread;
	pthread_mutex_t lock;         /* of what follows */
	pthread_cond_t changed;
	nezha_helper_fn *run;         /* NULL: nothing to do, or done */
	void *argument;
	bool over;                    /* the thread shall end */
};

static void *work(void *state)
{
	struct nezha_helper *helper = state;

	nezha_progress_never();
	pthread_mutex_lock(&helper->lock);
	while (!helper->over) {
		if (!helper->run) {
			pthread_cond_wait(&helper->changed, &helper->lock);
			continue;
		}
		pthread_mutex_unlock(&helper->lock);
		helper->run(helper->argument);
		pthread_mutex_lock(&helper->lock);
		helper->run = NULL;
		pthread_cond_broadcast(&helper->changed);
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
}

/* The program's signals are for its own threads. */
static int start_thread(struct nezha_helper *helper)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&helper->thread, NULL, work, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* One that no step of the wall clock disturbs. */
static void make_condition(pthread_cond_t *condition)
{
	pthread_condattr_t how;

	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &how);
	pthread_condattr_destroy(&how);
}

struct nezha_helper *nezha_helper_create(void)
{
	struct nezha_helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return NULL;
	pthread_mutex_init(&helper->lock, NULL);
	make_condition(&helper->changed);
	if (!start_thread(helper))
		return helper;
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
	return NULL;
}

void nezha_helper_start(struct nezha_helper *helper, nezha_helper_fn *run, void *argument)
{
	pthread_mutex_lock(&helper->lock);
	helper->argument = argument;
	helper->run = run;
	pthread_cond_broadcast(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
}

void nezha_helper_wait(struct nezha_helper *helper)
{
	struct timespec until;

	pthread_mutex_lock(&helper->lock);
	while (helper->run) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += NEZHA_PACE_OFTEN;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (!pthread_cond_timedwait(&helper->changed, &helper->lock, &until))
			continue;
		pthread_mutex_unlock(&helper->lock);
		nezha_progress(NULL);
		pthread_mutex_lock(&helper->lock);
	}
	pthread_mutex_unlock(&helper->lock);
}

void nezha_helper_destroy(struct nezha_helper *helper)
{
	if (!helper)
		return;
	pthread_mutex_lock(&helper->lock);
	helper->over = true;
	pthread_cond_broadcast(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
	pthread_join(helper->thread, NULL);
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}
