/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/contact.h"
#include "rails/ina.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/service_verbs.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define STRANGERS_MOST 64           /* handshakes with unknown peers at a time */
#define BACKLOG 64
#define CONTROL_PAUSE (250 * NEZHA_MSEC)

struct nezha_service {
	struct nezha_engine *engine;
	pthread_t thread;
	bool stop;                      /* under the engine's lock */
	int kick;                       /* eventfd */
	int carrier;                    /* netlink socket, -1: none */
	int listeners[NEZHA_RAILS_MAX];
	struct nezha_contact_list contacts;
	uint32_t contact_count, strangers;
	struct pollfd *poll;            /* `room` entries */
	uint32_t room;
};

enum { AT_KICK, AT_CARRIER, AT_LISTENERS };   /* then, as many, the devices of verbs rails; then contacts */

/* ---- contacts ---- */

static void add(struct nezha_service *service, struct nezha_contact *contact)
{
	LIST_INSERT_HEAD(&service->contacts, contact, entry);
	service->contact_count++;
	service->strangers += nezha_contact_stranger(contact);
}

static void drop(struct nezha_service *service, struct nezha_contact *contact)
{
	LIST_REMOVE(contact, entry);
	service->contact_count--;
	nezha_contact_destroy(contact);
}

/* Too many strangers: the one that has dallied longest goes. */
static void drop_oldest_stranger(struct nezha_service *service)
{
	struct nezha_contact *contact, *oldest = NULL;

	LIST_FOREACH(contact, &service->contacts, entry)
		if (nezha_contact_stranger(contact) && (!oldest || contact->deadline < oldest->deadline))
			oldest = contact;
	if (oldest) {
		service->strangers--;
		drop(service, oldest);
	}
}

static void accept_all(struct nezha_service *service, int rail)
{
	struct nezha_contact *contact;
	int fd;

	for (int i = 0; i < BACKLOG; i++) {
		fd = accept4(service->listeners[rail], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		if (service->strangers >= STRANGERS_MOST)
			drop_oldest_stranger(service);
		contact = nezha_contact_accept(service->engine, rail, fd);
		if (contact)
			add(service, contact);
	}
}

static void contact_ready(struct nezha_service *service, struct nezha_contact *contact)
{
	bool stranger = nezha_contact_stranger(contact);
	int rc = nezha_contact_ready(contact);

	if (stranger && (rc != NEZHA_OK || !nezha_contact_stranger(contact)))
		service->strangers--;
	if (rc != NEZHA_OK)
		drop(service, contact);
}

/* ---- connecting ---- */

static void connect_one(struct nezha_service *service, struct nezha_link *link, int rail, enum nezha_hello_kind kind,
                        uint64_t now)
{
	struct nezha_path *path = &link->paths[rail];
	struct nezha_contact *contact = nezha_contact_connect(link, rail, kind);

	if (contact) {
		add(service, contact);
		if (kind == NEZHA_HELLO_CONTROL)
			link->control[rail] = true;
		else
			path->connecting = true;
		return;
	}
	path->refused = errno == ECONNREFUSED;
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

			if (!path->joined || !(data || control))
				continue;
			if (path->retry_at > now) {
				if (path->retry_at < *next)
					*next = path->retry_at;
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
		pthread_mutex_lock(&service->engine->lock);
		more = next_question(service, &question);
		pthread_mutex_unlock(&service->engine->lock);
		if (!more)
			return;
		for (contact = LIST_FIRST(&service->contacts); contact; contact = next) {
			next = LIST_NEXT(contact, entry);
			if (contact->state == NEZHA_CONTACT_ASKING && contact->link == question.link &&
			    nezha_contact_ask(contact, question.team, question.op) != NEZHA_OK)
				drop(service, contact);
		}
	}
}

/* ---- the links' carrier ---- */

static int open_carrier(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		nezha_info("the links' carrier cannot be watched: %m");
	return fd;
}

static void carrier_changed(struct nezha_engine *engine, int index, bool running)
{
	struct nezha_link *link;
	struct nezha_inlink *inlink;

	for (uint32_t r = 0; r < engine->card.rail_count; r++) {
		const struct nezha_rail_nic *rail = &engine->rails[r];

		if ((int)if_nametoindex(rail->nic.device) != index)
			continue;
		/* An interface that only makes connections for the port. */
		if (rail->kind == NEZHA_RAIL_VERBS && rail->port.address.s_addr != rail->nic.address.s_addr)
			continue;
		LIST_FOREACH(link, &engine->links, entry) {
			link->paths[r].retry_at = link->paths[r].pause = 0;
			if (!running && link->card.host != engine->card.host)
				nezha_link_path_fail(&link->paths[r], "no carrier");
		}
		if (running)
			continue;
		LIST_FOREACH(inlink, &engine->inlinks, entry)
			nezha_inlink_path_fail(&inlink->paths[r], "no carrier");
	}
}

static void read_carrier(struct nezha_service *service)
{
	_Alignas(struct nlmsghdr) char buffer[16384];
	ssize_t n = recv(service->carrier, buffer, sizeof buffer, MSG_DONTWAIT);
	struct nlmsghdr *message = (struct nlmsghdr *)buffer;

	for (; n > 0 && NLMSG_OK(message, (size_t)n); message = NLMSG_NEXT(message, n)) {
		const struct ifinfomsg *info = NLMSG_DATA(message);

		if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
			continue;
		if (message->nlmsg_len < NLMSG_LENGTH(sizeof *info))
			continue;
		pthread_mutex_lock(&service->engine->lock);
		carrier_changed(service->engine, info->ifi_index,
		                message->nlmsg_type == RTM_NEWLINK && info->ifi_flags & IFF_RUNNING);
		pthread_mutex_unlock(&service->engine->lock);
		nezha_engine_wake(service->engine);
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
	uint32_t rails = service->engine->card.rail_count, n = AT_LISTENERS + 2 * rails;
	struct nezha_contact *contact;

	pthread_mutex_lock(&service->engine->lock);
	if (!make_room(service, n + service->contact_count + nezha_ina_poll_room(service->engine))) {
		pthread_mutex_unlock(&service->engine->lock);
		return 0;
	}
	*inas = nezha_ina_poll(service->engine, service->poll + n + service->contact_count, next);
	pthread_mutex_unlock(&service->engine->lock);
	service->poll[AT_KICK] = (struct pollfd){ service->kick, POLLIN, 0 };
	service->poll[AT_CARRIER] = (struct pollfd){ service->carrier, POLLIN, 0 };
	for (uint32_t r = 0; r < rails; r++) {
		service->poll[AT_LISTENERS + r] = (struct pollfd){ service->listeners[r], POLLIN, 0 };
		service->poll[AT_LISTENERS + rails + r] =
			(struct pollfd){ nezha_service_verbs_watch(service->engine, r), POLLIN, 0 };
	}
	LIST_FOREACH(contact, &service->contacts, entry) {
		short events = contact->state == NEZHA_CONTACT_CONNECTING ? POLLOUT : POLLIN;

		service->poll[n++] = (struct pollfd){ contact->fd, events, 0 };
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
			service->strangers -= nezha_contact_stranger(contact);
			drop(service, contact);
		}
	}
}

static bool turn(struct nezha_service *service)
{
	uint64_t now = nezha_now(), next = UINT64_MAX, count;
	uint32_t rails = service->engine->card.rail_count, n, inas = 0;
	int wait;
	bool stop;

	pthread_mutex_lock(&service->engine->lock);
	stop = service->stop;
	if (!stop)
		connect_due(service, now, &next);
	if (!stop)
		nezha_ina_turn(service->engine, now);
	pthread_mutex_unlock(&service->engine->lock);
	if (stop)
		return false;
	nezha_service_verbs_turn(service->engine, now, &next);
	ask(service);
	n = fill_poll(service, &next, &inas);
	wait = next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / NEZHA_MSEC + 1);
	if (poll(service->poll, n + inas, n ? wait : 10) < 0 && errno != EINTR)
		nezha_warn("poll: %m");
	if (!n)
		return true;        /* no memory: tried again */
	if (service->poll[AT_KICK].revents && read(service->kick, &count, sizeof count) < 0 && errno != EAGAIN)
		nezha_warn("eventfd: %m");
	if (service->poll[AT_CARRIER].revents)
		read_carrier(service);
	for (uint32_t r = 0; r < rails; r++)
		if (service->poll[AT_LISTENERS + rails + r].revents)
			nezha_service_verbs_event(service->engine, r);
	turn_contacts(service, AT_LISTENERS + 2 * rails, n);
	for (uint32_t r = 0; r < rails; r++)
		if (service->poll[AT_LISTENERS + r].revents)
			accept_all(service, (int)r);
	return true;
}

static void *run(void *argument)
{
	struct nezha_service *service = argument;

	while (turn(service))
		;
	return NULL;
}

/* ---- starting and stopping ---- */

static int listen_on(const struct nezha_nic *nic, uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = nic->address };
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		nezha_warn("rail %s is left out, it cannot listen: %m", nic->device);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*port = ntohs(address.sin_port);
	return fd;
}

static void name_rail(struct nezha_rail_stats *stats, const struct nezha_rail_nic *rail)
{
	const struct nezha_nic *nic = &rail->nic;
	struct in_addr net = { nic->address.s_addr };
	char text[INET_ADDRSTRLEN];

	net.s_addr &= nic->prefix ? htonl(UINT32_MAX << (32 - nic->prefix)) : 0;
	snprintf(stats->device, sizeof stats->device, "%.15s", nezha_rail_name(rail));
	inet_ntop(AF_INET, &net, text, sizeof text);
	snprintf(stats->subnet, sizeof stats->subnet, "%s/%u", text, nic->prefix);
}

/* Rails that cannot listen are left out, so the engine's rails become those of the card. */
static void open_rails(struct nezha_service *service)
{
	struct nezha_engine *engine = service->engine;
	struct nezha_card *card = &engine->card;

	for (size_t r = 0; r < engine->config.rail_count && r < NEZHA_RAILS_MAX; r++) {
		struct nezha_rail_nic rail = engine->rails[r];
		uint32_t at = card->rail_count;
		uint16_t port = 0;
		int fd = listen_on(&rail.nic, &port);

		if (fd < 0)
			continue;
		engine->verbs[at] = NULL;
		if (rail.kind == NEZHA_RAIL_VERBS && nezha_verbs_open(&rail.port, &engine->config.verbs, &engine->verbs_memory,
		                                                      &engine->verbs[at]) != NEZHA_OK) {
			close(fd);
			continue;
		}
		service->listeners[at] = fd;
		engine->rails[at] = rail;
		name_rail(&engine->stats[at], &rail);
		card->rails[at] = (struct nezha_card_rail){
			.key_subnet = rail.key_subnet, .key_prefix = rail.key_prefix, .key_entry = rail.key_entry,
			.key_ordinal = rail.key_ordinal, .kind = (uint16_t)rail.kind, .prefix = rail.nic.prefix,
			.port = port, .address = rail.nic.address.s_addr,
			.speed = rail.kind == NEZHA_RAIL_VERBS ? rail.port.speed : rail.nic.speed,
		};
		card->rail_count++;
	}
}

int nezha_service_start(struct nezha_engine *engine, struct nezha_service **out)
{
	struct nezha_service *service = calloc(1, sizeof *service);
	sigset_t all, before;
	int error;

	if (!service)
		return NEZHA_ERR_NOMEM;
	service->engine = engine;
	LIST_INIT(&service->contacts);
	service->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service->kick < 0) {
		nezha_warn("eventfd: %m");
		free(service);
		return NEZHA_ERR_SYSTEM;
	}
	service->carrier = open_carrier();
	open_rails(service);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&service->thread, NULL, run, service);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		errno = error;
		nezha_warn("the service thread cannot be started: %m");
		for (uint32_t r = 0; r < engine->card.rail_count; r++)
			nezha_verbs_close(engine->verbs[r]);
		nezha_service_abandon(service);
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

void nezha_service_abandon(struct nezha_service *service)
{
	struct nezha_contact *contact;

	LIST_FOREACH(contact, &service->contacts, entry)
		if (contact->fd >= 0)
			close(contact->fd);
	for (uint32_t r = 0; r < service->engine->card.rail_count; r++)
		close(service->listeners[r]);
	if (service->carrier >= 0)
		close(service->carrier);
	close(service->kick);
}

void nezha_service_stop(struct nezha_service *service)
{
	struct nezha_contact *contact;

	pthread_mutex_lock(&service->engine->lock);
	service->stop = true;
	pthread_mutex_unlock(&service->engine->lock);
	nezha_service_kick(service);
	pthread_join(service->thread, NULL);
	for (uint32_t r = 0; r < service->engine->card.rail_count; r++)
		close(service->listeners[r]);
	if (service->carrier >= 0)
		close(service->carrier);
	close(service->kick);
	while ((contact = LIST_FIRST(&service->contacts)))
		drop(service, contact);
	free(service->poll);
	free(service);
}
