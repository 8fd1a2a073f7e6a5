/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/service.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rails/carrier.h"
#include "rails/clock.h"
#include "rails/contact.h"
#include "rails/contact_control.h"
#include "rails/door.h"
#include "rails/ina.h"
#include "rails/link.h"
#include "rails/regain.h"
#include "rails/service_verbs.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define CONTROL_PAUSE (250 * NEZHA_MSEC)

struct nezha_service {
	struct nezha_engine *engine;
	pthread_t thread;
	bool stop;                      /* under the engine's lock */
	pthread_mutex_t awake;          /* the thread's, but while it sleeps in poll; taken before the engine's lock */
	int kick;                       /* eventfd */
	int carrier;                    /* netlink socket, -1: none */
	struct nezha_door door;
	struct nezha_contact_list contacts;
	struct pollfd *poll;            /* `room` entries */
	uint32_t room;
};

enum { AT_KICK, AT_CARRIER, AT_LISTENERS };   /* then, as many, the devices of verbs rails; then contacts */

/* ---- contacts ---- */

/* A peer that makes its control connection anew has lost the former one, of whose end we may never hear. */
static void retire_former(struct nezha_service *service, const struct nezha_contact *newer)
{
	struct nezha_contact *contact;

	LIST_FOREACH(contact, &service->contacts, entry)
		if (contact != newer && contact->state == NEZHA_CONTACT_ANSWERING && contact->rail == newer->rail &&
		    contact->hello.from == newer->hello.from)
			contact->deadline = 1;      /* the next turn ends it */
}

static void contact_ready(struct nezha_service *service, struct nezha_contact *contact)
{
	bool stranger = nezha_contact_stranger(contact);
	int rc = nezha_contact_ready(contact);

	if (rc != NEZHA_OK) {
		nezha_contact_drop(contact);
		if (stranger && rc != NEZHA_INPROGRESS)         /* else it has become a path's */
			nezha_door_turned_away(&service->door);
	} else if (stranger && contact->state == NEZHA_CONTACT_ANSWERING) {
		retire_former(service, contact);
	}
}

/* ---- connecting ---- */

static void connect_one(struct nezha_service *service, struct nezha_link *link, int rail, enum nezha_hello_kind kind,
                        uint64_t now)
{
	struct nezha_path *path = &link->paths[rail];
	struct nezha_contact *contact = nezha_contact_connect(link, rail, kind);
	int why;

	path->left_at = now;
	if (contact) {
		LIST_INSERT_HEAD(&service->contacts, contact, entry);
		if (kind == NEZHA_HELLO_CONTROL)
			link->control[rail] = true;
		else
			path->connecting = true;
		return;
	}
	why = errno;
	if (kind == NEZHA_HELLO_DATA)
		path->error = why;
	if (nezha_lack_is(why))
		nezha_lack_note(link->engine->config.lack, "connections cannot be made", why);
	path->retry_at = now + CONTROL_PAUSE;
}

/* Begins what is due; lowers *next to when something will be.  The lock is held. */
static void connect_due(struct nezha_service *service, uint64_t now, uint64_t *next)
{
	struct nezha_link *link;

	LIST_FOREACH(link, &service->engine->links, entry)
		for (uint32_t r = 0; r < service->engine->card.rail_count; r++) {
			struct nezha_path *path = &link->paths[r];
			bool data = !path->up && !path->connecting, control = path->up && !link->control[r];
			uint64_t due = path->retry_at;

			if (!path->joined || !(data || control) || !nezha_service_verbs_usable(service->engine, r))
				continue;
			if (data)
				due = nezha_path_due(path);
			if (due > now) {
				if (due < *next)
					*next = due;
				continue;
			}
			connect_one(service, link, (int)r, data ? NEZHA_HELLO_DATA : NEZHA_HELLO_CONTROL, now);
		}
}

/* ---- asking ---- */

struct question {
	struct nezha_link *link;
	uint64_t team;
	uint32_t op;
};

static bool next_question(struct nezha_service *service, struct question *out)
{
	struct nezha_team *team;

	LIST_FOREACH(team, &service->engine->busy, busy)
		if (team->query) {
			team->query = false;
			*out = (struct question){ team->right, team->id, team->entered };
			return true;
		}
	return false;
}

static void ask(struct nezha_service *service)
{
	struct nezha_contact *contact, *next;
	struct question question;
	bool more;

	for (;;) {
		nezha_fairlock_take(&service->engine->lock);
		more = next_question(service, &question);
		nezha_fairlock_give(&service->engine->lock);
		if (!more)
			return;
		for (contact = LIST_FIRST(&service->contacts); contact; contact = next) {
			next = LIST_NEXT(contact, entry);
			if (contact->state == NEZHA_CONTACT_ASKING && contact->link == question.link &&
			    nezha_contact_ask(contact, question.team, question.op) != NEZHA_OK)
				nezha_contact_drop(contact);
		}
	}
}

/* ---- the thread ---- */

static bool make_room(struct nezha_service *service, uint32_t need)
{
	struct pollfd *poll;

	if (need <= service->room)
		return true;
	poll = realloc(service->poll, 2 * need * sizeof *poll);
	if (!poll)
		return false;
	service->poll = poll;
	service->room = 2 * need;
	return true;
}

/* Fills service->poll: what is returned, then *inas sessions with aggregators; lowers *next to the first deadline. */
static uint32_t fill_poll(struct nezha_service *service, uint64_t *next, uint32_t *inas)
{
	uint32_t rails = service->engine->card.rail_count, n = AT_LISTENERS + 2 * rails, total = n;
	struct nezha_contact *contact;
	bool deaf;

	LIST_FOREACH(contact, &service->contacts, entry)
		total++;
	nezha_fairlock_take(&service->engine->lock);
	if (!make_room(service, total + nezha_ina_poll_room(service->engine))) {
		nezha_fairlock_give(&service->engine->lock);
		return 0;
	}
	*inas = nezha_ina_poll(service->engine, service->poll + total, next);
	nezha_fairlock_give(&service->engine->lock);
	service->poll[AT_KICK] = (struct pollfd){ service->kick, POLLIN, 0 };
	service->poll[AT_CARRIER] = (struct pollfd){ service->carrier, POLLIN, 0 };
	deaf = nezha_door_deaf(&service->door, next);
	for (uint32_t r = 0; r < rails; r++) {
		service->poll[AT_LISTENERS + r] = (struct pollfd){ deaf ? -1 : service->door.listeners[r], POLLIN, 0 };
		service->poll[AT_LISTENERS + rails + r] =
			(struct pollfd){ nezha_service_verbs_watch(service->engine, r), POLLIN, 0 };
	}
	LIST_FOREACH(contact, &service->contacts, entry) {
		short events;
		int fd = nezha_contact_watch(contact, &events);

		service->poll[n++] = (struct pollfd){ fd, events, 0 };
		if (contact->deadline && contact->deadline < *next)
			*next = contact->deadline;
	}
	return n;
}

static void turn_contacts(struct nezha_service *service, uint32_t first, uint32_t count)
{
	struct nezha_contact *contact = LIST_FIRST(&service->contacts), *next;
	uint64_t now = nezha_now();

	/* The list is as it was when the poll array was filled: only its own elements go. */
	for (uint32_t i = first; i < count && contact; i++, contact = next) {
		next = LIST_NEXT(contact, entry);
		if (service->poll[i].revents) {
			contact_ready(service, contact);
		} else if (contact->deadline && contact->deadline <= now) {
			nezha_contact_drop(contact);
		}
	}
}

static bool turn(struct nezha_service *service)
{
	uint64_t now = nezha_now(), next = UINT64_MAX, count;
	uint32_t rails = service->engine->card.rail_count, n, inas = 0;
	int wait;
	bool stop;

	nezha_regain_turn(service->engine, &service->contacts, service->door.listeners[0], now, &next);
	nezha_fairlock_take(&service->engine->lock);
	stop = service->stop;
	if (!stop)
		connect_due(service, now, &next);
	if (!stop)
		nezha_ina_turn(service->engine, now);
	nezha_fairlock_give(&service->engine->lock);
	if (stop)
		return false;
	nezha_service_verbs_turn(service->engine, now, &next);
	nezha_siege_turn(&service->door.siege, service->engine, service->door.listeners, now, &next);
	ask(service);
	n = fill_poll(service, &next, &inas);
	wait = next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / NEZHA_MSEC + 1);
	pthread_mutex_unlock(&service->awake);
	if (poll(service->poll, n + inas, n ? wait : 10) < 0 && errno != EINTR)
		nezha_warn("poll: %m");
	pthread_mutex_lock(&service->awake);
	if (!n)
		return true;        /* no memory: tried again */
	if (service->poll[AT_KICK].revents && read(service->kick, &count, sizeof count) < 0 && errno != EAGAIN)
		nezha_warn("eventfd: %m");
	if (service->poll[AT_CARRIER].revents)
		nezha_carrier_read(service->carrier, service->engine);
	for (uint32_t r = 0; r < rails; r++)
		if (service->poll[AT_LISTENERS + rails + r].revents)
			nezha_service_verbs_event(service->engine, r);
	turn_contacts(service, AT_LISTENERS + 2 * rails, n);
	for (uint32_t r = 0; r < rails; r++)
		if (service->poll[AT_LISTENERS + r].revents)
			nezha_door_accept(&service->door, (int)r);
	return true;
}

static void *run(void *argument)
{
	struct nezha_service *service = argument;

	pthread_mutex_lock(&service->awake);
	while (turn(service))
		;
	pthread_mutex_unlock(&service->awake);
	return NULL;
}

/* ---- starting and stopping ---- */

int nezha_service_start(struct nezha_engine *engine, struct nezha_service **out)
{
	struct nezha_service *service = calloc(1, sizeof *service);
	sigset_t all, before;
	int error;

	if (!service) {
		nezha_lack_note(engine->config.lack, "the service thread cannot be started", errno);
		return NEZHA_ERR_NOMEM;
	}
	service->engine = engine;
	LIST_INIT(&service->contacts);
	pthread_mutex_init(&service->awake, NULL);
	service->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service->kick < 0) {
		nezha_lack_note(engine->config.lack, "eventfd", errno);
		nezha_info("eventfd: %m");
		pthread_mutex_destroy(&service->awake);
		free(service);
		return NEZHA_ERR_SYSTEM;
	}
	service->carrier = nezha_carrier_open();
	nezha_door_open(&service->door, engine, &service->contacts);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&service->thread, NULL, run, service);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		errno = error;
		nezha_lack_note(engine->config.lack, "the service thread cannot be started", errno);
		nezha_info("the service thread cannot be started: %m");
		for (uint32_t r = 0; r < engine->card.rail_count; r++)
			nezha_verbs_close(engine->verbs[r]);
		nezha_service_abandon(service);
		pthread_mutex_destroy(&service->awake);
		free(service);
		return NEZHA_ERR_SYSTEM;
	}
	*out = service;
	return NEZHA_OK;
}

void nezha_service_kick(struct nezha_service *service)
{
	uint64_t one = 1;

	if (write(service->kick, &one, sizeof one) < 0 && errno != EAGAIN)
		nezha_warn("eventfd: %m");
}

bool nezha_service_hold(struct nezha_service *service, const struct timespec *until)
{
	return !pthread_mutex_timedlock(&service->awake, until);
}

void nezha_service_release(struct nezha_service *service)
{
	pthread_mutex_unlock(&service->awake);
}

void nezha_service_abandon(struct nezha_service *service)
{
	struct nezha_contact *contact;

	LIST_FOREACH(contact, &service->contacts, entry)
		if (contact->fd >= 0)
			close(contact->fd);
	nezha_door_close(&service->door);
	if (service->carrier >= 0)
		close(service->carrier);
	close(service->kick);
}

void nezha_service_stop(struct nezha_service *service)
{
	struct nezha_contact *contact;

	nezha_fairlock_take(&service->engine->lock);
	service->stop = true;
	nezha_fairlock_give(&service->engine->lock);
	nezha_service_kick(service);
	pthread_join(service->thread, NULL);
	nezha_door_close(&service->door);
	if (service->carrier >= 0)
		close(service->carrier);
	close(service->kick);
	while ((contact = LIST_FIRST(&service->contacts)))
		nezha_contact_drop(contact);
	pthread_mutex_destroy(&service->awake);
	free(service->poll);
	free(service);
}
