/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/sharp_aside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/sharp.h"
#include "tuning/status.h"

struct nezha_sharp_aside *nezha_sharp_aside_create(struct nezha_sharp *sharp)
{
	struct nezha_sharp_aside *aside = calloc(1, sizeof *aside);

	if (!aside)
		return NULL;
	pthread_mutex_init(&aside->lock, NULL);
	pthread_cond_init(&aside->changed, NULL);
	aside->sharp = sharp;
	return aside;
}

void nezha_sharp_aside_free(struct nezha_sharp_aside *aside)
{
	pthread_cond_destroy(&aside->changed);
	pthread_mutex_destroy(&aside->lock);
	free(aside);
}

/* ---- the library's side ---- */

static int ask(struct nezha_sharp_aside *aside, enum nezha_sharp_kind kind, int root, void *from, void *to, int bytes)
{
	int answer = -1;

	pthread_mutex_lock(&aside->lock);
	if (!aside->closed && bytes >= 0) {
		aside->kind = kind;
		aside->root = root;
		aside->from = from;
		aside->to = to;
		aside->bytes = (size_t)bytes;
		aside->asks = true;
		pthread_cond_broadcast(&aside->changed);
		while (aside->asks && !aside->closed)
			pthread_cond_wait(&aside->changed, &aside->lock);
		answer = aside->closed ? -1 : aside->answer;
	}
	pthread_mutex_unlock(&aside->lock);
	return answer;
}

static int ask_bcast(void *context, void *buffer, int bytes, int root)
{
	return ask(context, NEZHA_SHARP_BCAST, root, buffer, NULL, bytes);
}

static int ask_barrier(void *context)
{
	return ask(context, NEZHA_SHARP_BARRIER, 0, NULL, NULL, 0);
}

static int ask_gather(void *context, int root, void *from, void *to, int bytes)
{
	return ask(context, NEZHA_SHARP_GATHER, root, from, to, bytes);
}

const struct nezha_sharp_outside nezha_sharp_outside = { ask_bcast, ask_barrier, ask_gather };

static void *run(void *argument)
{
	struct nezha_sharp_aside *aside = argument;

	aside->work(aside);
	pthread_mutex_lock(&aside->lock);
	aside->done = true;
	pthread_cond_broadcast(&aside->changed);
	pthread_mutex_unlock(&aside->lock);
	return NULL;
}

/* ---- the team's side ---- */

static void wait_a_little(struct nezha_sharp_aside *aside)
{
	struct nezha_engine *engine = aside->sharp->engine;
	struct timespec until;

	until = nezha_wall_after(NEZHA_MSEC);
	if (pthread_cond_timedwait(&aside->changed, &aside->lock, &until) == ETIMEDOUT && engine->config.progress) {
		pthread_mutex_unlock(&aside->lock);
		engine->config.progress(engine->config.progress_context);
		pthread_mutex_lock(&aside->lock);
	}
}

static void serve(struct nezha_sharp_aside *aside)
{
	int rc;

	pthread_mutex_unlock(&aside->lock);
	rc = nezha_sharp_exchange(aside->sharp->team, aside->kind, aside->root, aside->from, aside->to, aside->bytes);
	pthread_mutex_lock(&aside->lock);
	aside->answer = rc == NEZHA_OK ? 0 : -1;
	aside->alone = aside->alone || rc == NEZHA_ERR_PROTOCOL;
	aside->asks = false;
	pthread_cond_broadcast(&aside->changed);
}

static int start(struct nezha_sharp_aside *aside, pthread_t *thread)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, aside);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int nezha_sharp_aside_do(struct nezha_sharp_aside *aside, void (*work)(struct nezha_sharp_aside *aside), uint64_t limit)
{
	uint64_t since = nezha_now();
	pthread_t thread;
	bool done;

	aside->work = work;
	aside->done = false;
	if (start(aside, &thread))
		return NEZHA_ERR_SYSTEM;
	pthread_mutex_lock(&aside->lock);
	while (!aside->done && nezha_now() - since < limit) {
		if (aside->asks) {
			serve(aside);
			since = nezha_now();
		} else {
			wait_a_little(aside);
		}
	}
	done = aside->done;
	aside->closed = aside->closed || !done;
	pthread_cond_broadcast(&aside->changed);
	pthread_mutex_unlock(&aside->lock);
	if (done)
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	return done ? NEZHA_OK : NEZHA_INPROGRESS;
}

void nezha_sharp_aside_close(struct nezha_sharp_aside *aside)
{
	pthread_mutex_lock(&aside->lock);
	aside->closed = true;
	pthread_mutex_unlock(&aside->lock);
}
