/* SPDX-License-Identifier: BSD-3-Clause
 * The engine's event loop: what comes from connections goes to paths and inpaths, timers, and who drives it. */
#include "rails/engine.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef SYS_epoll_pwait2
#include <linux/time_types.h>
#endif

#include "rails/clock.h"
#include "rails/ina.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define EVENTS 32
#define TICK NEZHA_MSEC
#define TICK_QUEUED (500 * NEZHA_USEC)  /* while blocks wait for acknowledgements, which are no events; */
#define QUEUED_MUCH (128u << 10)        /* ... while so many bytes do, the time that TICK_BYTES of them take, if that is longer: ranks that */
#define TICK_BYTES 32768                /* share the rails share the processors, too */

/* ---- events ---- */

static int control(struct nezha_engine *engine, int operation, struct nezha_endpoint *end, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLET, .data.ptr = end };

	if (end->fd >= 0 && epoll_ctl(engine->epoll, operation, end->fd, &event)) {
		nezha_warn("epoll_ctl: %m");
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

int nezha_engine_watch(struct nezha_engine *engine, struct nezha_endpoint *end)
{
	return control(engine, EPOLL_CTL_ADD, end, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

int nezha_engine_watch_input(struct nezha_engine *engine, struct nezha_endpoint *end)
{
	return control(engine, EPOLL_CTL_ADD, end, EPOLLIN);
}

int nezha_engine_want(struct nezha_engine *engine, struct nezha_endpoint *end, bool input, bool room)
{
	return control(engine, EPOLL_CTL_MOD, end, (input ? EPOLLIN : 0) | (room ? EPOLLOUT : 0));
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

/* What an event on a connection means for its path or inpath. */
enum duty { DUTY_TAKE = 1, DUTY_GIVE = 2, DUTY_END = 4 };

/* Asks the connection itself: the event may be of an older one, which this one has replaced since. */
static bool has_ended(const struct nezha_endpoint *end)
{
	char byte;

	return recv(end->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

static unsigned duties(const struct nezha_rail_ops *ops, const struct nezha_endpoint *end, uint32_t events)
{
	if (ops->apart)
		return has_ended(end) ? DUTY_END : 0;
	return (events & (EPOLLIN | GONE) ? DUTY_TAKE : 0) | (events & EPOLLOUT ? DUTY_GIVE : 0);
}

static const char closed_by_peer[] = "the peer has closed the connection";

static void path_listen(struct nezha_path *path)
{
	bool waited = !path->ready;

	if (!path->up)
		return;
	if (path->ops->listen(path) < 0) {
		path->hearing = NEZHA_HEAR_NOTHING;
		nezha_link_path_fail(path, "the connection was closed");
	} else if (path->up && waited && path->ready) {
		nezha_link_pump(path->link);
	}
}

static void path_event(struct nezha_path *path, uint32_t events)
{
	unsigned duty = path->up ? duties(path->ops, &path->end, events) : 0;

	if (duty & DUTY_END)
		nezha_link_path_fail(path, closed_by_peer);
	if (duty & DUTY_TAKE)
		path_listen(path);
	if (path->up && duty & DUTY_GIVE) {
		path->ready = true;
		nezha_link_pump(path->link);
	}
}

static void inpath_event(struct nezha_inpath *inpath, uint32_t events)
{
	unsigned duty = inpath->up ? duties(inpath->ops, &inpath->end, events) : 0;

	if (duty & DUTY_END)
		nezha_inlink_path_fail(inpath, closed_by_peer);
	if (duty & DUTY_GIVE && inpath->ops->reply(inpath, NULL) < 0)
		nezha_inlink_path_fail(inpath, "a backward record cannot be sent");
	if (duty & DUTY_TAKE) {
		inpath->ends = inpath->ends || events & GONE;
		nezha_inlink_receive(inpath);
	}
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
		nezha_ina_ready((struct nezha_ina_socket *)end, event->events);
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

/* What a receiving end has left unread for too long is read at the next step. */
static void end_awaiting(struct nezha_engine *engine, uint64_t now)
{
	struct nezha_inlink *inlink;

	LIST_FOREACH(inlink, &engine->inlinks, entry)
		for (uint32_t r = 0; r < engine->card.rail_count; r++)
			if (inlink->paths[r].up && nezha_await_is_over(&inlink->paths[r].await, now))
				inlink->paths[r].more = true;
}

/* Bytes per second. */
static double rate_of(const struct nezha_link *link)
{
	double rate = 0;

	for (uint32_t r = 0; r < link->engine->card.rail_count; r++)
		rate += link->paths[r].up ? link->paths[r].estimator.rate : 0;
	return rate;
}

static uint64_t tick_of(const struct nezha_link *link)
{
	double rate, time;

	if (!link->queued)
		return TICK;
	if (link->queued < QUEUED_MUCH)
		return TICK_QUEUED;
	rate = rate_of(link);
	time = TICK_BYTES * (double)NEZHA_SEC / (rate > 1 ? rate : 1);
	if (time < TICK_QUEUED)
		return TICK_QUEUED;
	return time < TICK ? (uint64_t)time : TICK;
}

static uint64_t tick_length(const struct nezha_engine *engine)
{
	const struct nezha_link *link;
	uint64_t least = TICK;

	LIST_FOREACH(link, &engine->links, entry) {
		uint64_t tick = tick_of(link);

		least = tick < least ? tick : least;
	}
	return least;
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
	end_awaiting(engine, now);
}

/* epoll_pwait2 came with Linux 5.11, and its function with glibc 2.35, later than in many a cluster's system; a container may refuse what it
 * does not know.  With epoll_wait a millisecond is the least. */
static int wait_events(int epoll, struct epoll_event *events, const struct timespec *wait)
{
#ifdef SYS_epoll_pwait2
	const struct __kernel_timespec most = { .tv_sec = wait->tv_sec, .tv_nsec = wait->tv_nsec };
	int n = (int)syscall(SYS_epoll_pwait2, epoll, events, EVENTS, &most, NULL, (size_t)0);

	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n;
#endif
	return epoll_wait(epoll, events, EVENTS, wait->tv_nsec ? 1 : 0);
}

static void step(struct nezha_engine *engine, bool sleeps)
{
	struct timespec wait = { 0, receive_more(engine) || !sleeps ? 0 : (long)tick_length(engine) };
	struct epoll_event events[EVENTS];
	int n;

	nezha_fairlock_give(&engine->lock);
	n = wait_events(engine->epoll, events, &wait);
	nezha_fairlock_retake(&engine->lock);
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
	until = nezha_wall_after(NEZHA_MSEC);
	pthread_cond_timedwait(&engine->changed, &engine->lock.mutex, &until);
}

void nezha_engine_progress_mpi(struct nezha_engine *engine, struct nezha_pace *pace, uint64_t pause)
{
	uint64_t now = nezha_now();

	if (!engine->config.progress || !nezha_pace_is_due(pace, now, pause))
		return;
	nezha_pace_done(pace, now);
	nezha_fairlock_give(&engine->lock);
	engine->config.progress(engine->config.progress_context);
	nezha_fairlock_retake(&engine->lock);
}
