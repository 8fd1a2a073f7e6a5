/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/host.h"
#include "rails/ina.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define EVENTS 32
#define TICK NEZHA_MSEC
#define TICK_QUEUED (500 * NEZHA_USEC)  /* while blocks wait for acknowledgements, which are no events */

/* ---- events ---- */

int nezha_engine_watch(struct nezha_engine *engine, struct nezha_endpoint *end)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = end };

	if (end->fd >= 0 && epoll_ctl(engine->epoll, EPOLL_CTL_ADD, end->fd, &event)) {
		nezha_warn("epoll_ctl: %m");
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

void nezha_engine_unwatch(struct nezha_engine *engine, struct nezha_endpoint *end)
{
	if (end->fd >= 0)
		epoll_ctl(engine->epoll, EPOLL_CTL_DEL, end->fd, NULL);
}

void nezha_engine_wake(struct nezha_engine *engine)
{
	uint64_t one = 1;

	if (write(engine->wake.fd, &one, sizeof one) < 0 && errno != EAGAIN)
		nezha_warn("eventfd: %m");
}

#define GONE (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

static void path_listen(struct nezha_path *path)
{
	bool waited = !path->ready;

	if (!path->up)
		return;
	if (path->ops->listen(path) < 0)
		nezha_link_path_fail(path, "the connection was closed");
	else if (path->up && waited && path->ready)
		nezha_link_pump(path->link);
}

static void path_event(struct nezha_path *path, uint32_t events)
{
	if (!path->up)
		return;
	if (path->ops->apart) {
		if (events & (EPOLLIN | GONE))
			nezha_link_path_fail(path, "the peer has closed the connection");
		return;
	}
	if (events & (EPOLLIN | GONE))
		path_listen(path);
	if (path->up && events & EPOLLOUT) {
		path->ready = true;
		nezha_link_pump(path->link);
	}
}

static void inpath_event(struct nezha_inpath *inpath, uint32_t events)
{
	if (!inpath->up)
		return;
	if (inpath->ops->apart) {
		if (events & (EPOLLIN | GONE))
			nezha_inlink_path_fail(inpath, "the peer has closed the connection");
		return;
	}
	if (events & EPOLLOUT && inpath->ops->reply(inpath, NULL) < 0)
		nezha_inlink_path_fail(inpath, "a backward record cannot be sent");
	if (events & (EPOLLIN | GONE))
		nezha_inlink_receive(inpath);
}

static void dispatch(struct nezha_engine *engine, const struct epoll_event *event)
{
	struct nezha_endpoint *end = event->data.ptr;
	uint64_t count;

	switch (end->kind) {
	case NEZHA_END_WAKE:
		if (read(engine->wake.fd, &count, sizeof count) < 0 && errno != EAGAIN)
			nezha_warn("eventfd: %m");
		break;
	case NEZHA_END_PATH:
		path_event((struct nezha_path *)end, event->events);
		break;
	case NEZHA_END_INPATH:
		inpath_event((struct nezha_inpath *)end, event->events);
		break;
	case NEZHA_END_PATH_EVENTS:
		path_listen((struct nezha_path *)((char *)end - offsetof(struct nezha_path, events)));
		break;
	case NEZHA_END_INPATH_EVENTS:
		nezha_inlink_receive((struct nezha_inpath *)((char *)end - offsetof(struct nezha_inpath, events)));
		break;
	case NEZHA_END_INA:
		nezha_ina_ready((struct nezha_ina_socket *)end);
		break;
	}
}

/* Receiving ends that were left with unread data get no new event. */
static bool receive_more(struct nezha_engine *engine)
{
	struct nezha_inlink *inlink;
	bool more = false;

	LIST_FOREACH(inlink, &engine->inlinks, entry)
		for (uint32_t r = 0; r < engine->card.rail_count; r++) {
			if (!inlink->paths[r].more)
				continue;
			nezha_inlink_receive(&inlink->paths[r]);
			more = more || inlink->paths[r].more;
		}
	return more;
}

static uint64_t tick_length(const struct nezha_engine *engine)
{
	const struct nezha_link *link;

	LIST_FOREACH(link, &engine->links, entry)
		if (link->queued)
			return TICK_QUEUED;
	return TICK;
}

static void tick(struct nezha_engine *engine)
{
	uint64_t now = nezha_now();
	struct nezha_link *link;
	struct nezha_team *team;

	if (now - engine->ticked < tick_length(engine))
		return;
	engine->ticked = now;
	LIST_FOREACH(link, &engine->links, entry)
		nezha_link_tick(link, now);
	LIST_FOREACH(team, &engine->busy, busy)
		nezha_collective_progress(team);
}

/* epoll_pwait2 came with Linux 5.11; before, a millisecond is the least. */
static int wait_events(int epoll, struct epoll_event *events, const struct timespec *wait)
{
	int n = epoll_pwait2(epoll, events, EVENTS, wait, NULL);

	if (n < 0 && errno == ENOSYS)
		n = epoll_wait(epoll, events, EVENTS, wait->tv_nsec ? 1 : 0);
	return n;
}

static void step(struct nezha_engine *engine, bool sleeps)
{
	struct timespec wait = { 0, receive_more(engine) || !sleeps ? 0 : (long)tick_length(engine) };
	struct epoll_event events[EVENTS];
	int n;

	pthread_mutex_unlock(&engine->lock);
	n = wait_events(engine->epoll, events, &wait);
	pthread_mutex_lock(&engine->lock);
	if (n < 0 && errno != EINTR)
		nezha_warn("epoll_wait: %m");
	for (int i = 0; i < n; i++)
		dispatch(engine, &events[i]);
	tick(engine);
}

void nezha_engine_step(struct nezha_engine *engine)
{
	step(engine, true);
}

/* False: another thread drives. */
static bool drive(struct nezha_engine *engine, bool sleeps)
{
	if (engine->driving)
		return false;
	engine->driving = true;
	step(engine, sleeps);
	engine->driving = false;
	pthread_cond_broadcast(&engine->changed);
	return true;
}

void nezha_engine_poll(struct nezha_engine *engine)
{
	drive(engine, false);
}

void nezha_engine_wait(struct nezha_engine *engine)
{
	struct timespec until;

	if (drive(engine, true))
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)NEZHA_MSEC;
	if (until.tv_nsec >= (long)NEZHA_SEC) {
		until.tv_nsec -= (long)NEZHA_SEC;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&engine->changed, &engine->lock, &until);
}

void nezha_engine_progress_mpi(struct nezha_engine *engine, uint64_t *last)
{
	uint64_t now = nezha_now();

	if (!engine->config.progress || now - *last < NEZHA_MSEC / 2)
		return;
	*last = now;
	pthread_mutex_unlock(&engine->lock);
	engine->config.progress(engine->config.progress_context);
	pthread_mutex_lock(&engine->lock);
}

/* ---- making and ending ---- */

struct nezha_team_list *nezha_engine_bucket(struct nezha_engine *engine, uint64_t id)
{
	/* Multiplying by 2^64 / golden ratio spreads ids that differ in few bits (Knuth, TAOCP 6.4). */
	return &engine->table[(id * 0x9e3779b97f4a7c15ull) >> 56];
}

struct nezha_team *nezha_engine_team(struct nezha_engine *engine, uint64_t id)
{
	struct nezha_team *team;

	LIST_FOREACH(team, nezha_engine_bucket(engine, id), same)
		if (team->id == id)
			return team;
	return NULL;
}

int nezha_engine_create(const struct nezha_engine_config *config, struct nezha_engine **out)
{
	struct nezha_engine *engine = calloc(1, sizeof *engine);
	struct epoll_event event = { .events = EPOLLIN };
	int rc = NEZHA_ERR_SYSTEM;

	if (!engine)
		return NEZHA_ERR_NOMEM;
	engine->config = *config;
	memcpy(engine->key, config->key, sizeof engine->key);
	engine->config.key = engine->key;
	memcpy(engine->rails, config->rails, config->rail_count * sizeof *config->rails);
	engine->config.rails = engine->rails;
	engine->verbs_memory.limit = (uint64_t)config->verbs.memory << 20;
	engine->card.protocol = NEZHA_PROTOCOL;
	engine->card.process = config->process;
	engine->card.host = nezha_host_identity(engine->card.hostname, sizeof engine->card.hostname);
	LIST_INIT(&engine->teams);
	LIST_INIT(&engine->links);
	LIST_INIT(&engine->inlinks);
	LIST_INIT(&engine->inas);
	LIST_INIT(&engine->ina_spare);
	pthread_mutex_init(&engine->lock, NULL);
	pthread_cond_init(&engine->changed, NULL);
	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (engine->epoll < 0) {
		nezha_warn("epoll_create1: %m");
		goto free_engine;
	}
	engine->wake = (struct nezha_endpoint){ NEZHA_END_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	event.data.ptr = &engine->wake;
	if (engine->wake.fd < 0 || epoll_ctl(engine->epoll, EPOLL_CTL_ADD, engine->wake.fd, &event)) {
		nezha_warn("eventfd: %m");
		goto close_fds;
	}
	rc = nezha_service_start(engine, &engine->service);
	if (rc != NEZHA_OK)
		goto close_fds;
	*out = engine;
	return NEZHA_OK;

close_fds:
	if (engine->wake.fd >= 0)
		close(engine->wake.fd);
	close(engine->epoll);
free_engine:
	pthread_cond_destroy(&engine->changed);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
	return rc;
}

void nezha_engine_destroy(struct nezha_engine *engine)
{
	struct nezha_link *link;
	struct nezha_inlink *inlink;

	if (!engine)
		return;
	nezha_service_stop(engine->service);
	engine->service = NULL;
	while ((link = LIST_FIRST(&engine->links)))
		nezha_link_destroy(link);
	while ((inlink = LIST_FIRST(&engine->inlinks)))
		nezha_inlink_destroy(inlink);
	nezha_ina_free_spare(engine);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		nezha_verbs_close(engine->verbs[r]);
	if (engine->verbs_memory.most)
		nezha_debug("verbs rails had %" PRIu64 " bytes registered at most", (uint64_t)engine->verbs_memory.most);
	close(engine->wake.fd);
	close(engine->epoll);
	pthread_cond_destroy(&engine->changed);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

void nezha_engine_abandon(struct nezha_engine *engine)
{
	struct nezha_link *link;
	struct nezha_inlink *inlink;

	/* The parent's lock may be held by a thread that this process does not have; its memory is left alone. */
	nezha_service_abandon(engine->service);
	LIST_FOREACH(link, &engine->links, entry)
		for (int r = 0; r < NEZHA_RAILS_MAX; r++)
			if (link->paths[r].joined && link->paths[r].end.fd >= 0)
				close(link->paths[r].end.fd);
	LIST_FOREACH(inlink, &engine->inlinks, entry)
		for (int r = 0; r < NEZHA_RAILS_MAX; r++)
			if (inlink->paths[r].end.fd >= 0)
				close(inlink->paths[r].end.fd);
	nezha_ina_abandon(engine);
	close(engine->wake.fd);
	close(engine->epoll);
}

void nezha_engine_card(const struct nezha_engine *engine, struct nezha_card *out)
{
	pthread_mutex_lock((pthread_mutex_t *)&engine->lock);
	*out = engine->card;
	out->ina_room = nezha_ina_has_room(engine);
	pthread_mutex_unlock((pthread_mutex_t *)&engine->lock);
}

size_t nezha_engine_rail_stats(const struct nezha_engine *engine, struct nezha_rail_stats *out, size_t max)
{
	size_t count = engine->card.rail_count < max ? engine->card.rail_count : max;

	pthread_mutex_lock((pthread_mutex_t *)&engine->lock);
	memcpy(out, engine->stats, count * sizeof *out);
	for (uint32_t i = 0; i < engine->config.aggregator_count && count < max; i++)
		nezha_ina_stats(engine, i, &out[count++]);
	pthread_mutex_unlock((pthread_mutex_t *)&engine->lock);
	return count;
}
