/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/strangers.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define STRANGERS_MOST 64           /* handshakes with unknown peers at a time */
#define TURNED_AWAY_MOST 64         /* in TURNED_AWAY_TIME */
#define TURNED_AWAY_TIME NEZHA_SEC
#define ACCEPT_MOST 64              /* of them in one turn */
#define BACKLOG 512                 /* connections that wait for it: a crowd must not keep the job's own out */
#define DEAF_PAUSE (50 * NEZHA_MSEC) /* without a descriptor to accept with */

_Static_assert(STRANGERS_MOST <= NEZHA_STRANGERS_MOST, "a choice is among all of them");

/* ---- strangers ---- */

static bool is_ours(struct nezha_engine *engine, uint32_t address)
{
	struct nezha_inlink *inlink;

	LIST_FOREACH(inlink, &engine->inlinks, entry)
		for (int r = 0; r < NEZHA_RAILS_MAX; r++)
			if (inlink->addresses[r] == address || inlink->from[r] == address)
				return true;
	return false;
}

static uint32_t count_strangers(const struct nezha_door *door)
{
	struct nezha_contact *contact;
	uint32_t count = 0;

	LIST_FOREACH(contact, door->contacts, entry)
		count += nezha_contact_stranger(contact);
	return count;
}

/* Too many strangers: one goes, if there is one. */
static void drop_stranger(struct nezha_door *door)
{
	struct nezha_contact *contact, *who[STRANGERS_MOST];
	struct nezha_stranger strangers[STRANGERS_MOST];
	size_t count = 0;

	nezha_fairlock_take(&door->engine->lock);
	LIST_FOREACH(contact, door->contacts, entry) {
		if (!nezha_contact_stranger(contact) || count == STRANGERS_MOST)
			continue;
		strangers[count] = (struct nezha_stranger){
			.address = contact->from, .ours = is_ours(door->engine, contact->from), .since = contact->deadline,
		};
		who[count++] = contact;
	}
	nezha_fairlock_give(&door->engine->lock);
	if (count)
		nezha_contact_drop(who[nezha_strangers_choose(strangers, count)]);
}

static void besiege(struct nezha_door *door, uint64_t now)
{
	nezha_siege_begin(&door->siege, door->engine, door->listeners, now);
}

void nezha_door_turned_away(struct nezha_door *door)
{
	uint64_t now = nezha_now();

	if (now - door->counted_since >= TURNED_AWAY_TIME) {
		door->counted_since = now;
		door->turned_away = 0;
	}
	if (++door->turned_away >= TURNED_AWAY_MOST)
		besiege(door, now);
}

/* ---- accepting ---- */

/* No descriptor, or no memory for one: a stranger's comes free, and the loop does not come back for the others at once. */
static void go_deaf(struct nezha_door *door)
{
	nezha_lack_note(door->engine->config.lack, "connections cannot be accepted", errno);
	drop_stranger(door);
	door->deaf_until = nezha_now() + DEAF_PAUSE;
}

bool nezha_door_deaf(const struct nezha_door *door, uint64_t *next)
{
	bool deaf = door->deaf_until > nezha_now();

	if (deaf && door->deaf_until < *next)
		*next = door->deaf_until;
	return deaf;
}

void nezha_door_accept(struct nezha_door *door, int rail)
{
	for (int i = 0; i < ACCEPT_MOST; i++) {
		struct sockaddr_in from = { .sin_family = AF_UNSPEC };
		socklen_t length = sizeof from;
		struct nezha_contact *contact;
		int fd = accept4(door->listeners[rail], (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && errno != EAGAIN && nezha_lack_is(errno))
			go_deaf(door);
		if (fd < 0)
			return;
		if (count_strangers(door) >= STRANGERS_MOST) {
			drop_stranger(door);
			besiege(door, nezha_now());
		}
		contact = nezha_contact_accept(door->engine, rail, fd, from.sin_addr.s_addr);
		if (contact)
			LIST_INSERT_HEAD(door->contacts, contact, entry);
	}
}

/* ---- opening and closing ---- */

static int listen_on(const struct nezha_nic *nic, struct nezha_lack *lack, uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = nic->address };
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		nezha_lack_note(lack, "a rail cannot listen", errno);
		nezha_log(nezha_lack_is(errno) ? NEZHA_LOG_INFO : NEZHA_LOG_WARN, "rail %s is left out, it cannot listen: %m", nic->device);
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

/* The next rail of the card is this one, whose socket listens. */
static void enter_rail(struct nezha_engine *engine, const struct nezha_rail_nic *rail, uint16_t port)
{
	struct nezha_card *card = &engine->card;
	uint32_t at = card->rail_count++;

	engine->rails[at] = *rail;
	name_rail(&engine->stats[at], rail);
	card->rails[at] = (struct nezha_card_rail){
		.key_subnet = rail->key_subnet, .key_prefix = rail->key_prefix, .key_entry = rail->key_entry,
		.key_ordinal = rail->key_ordinal, .kind = (uint16_t)rail->kind, .prefix = rail->nic.prefix,
		.port = port, .address = rail->nic.address.s_addr,
		.speed = rail->kind == NEZHA_RAIL_VERBS ? rail->port.speed : rail->nic.speed,
	};
}

void nezha_door_open(struct nezha_door *door, struct nezha_engine *engine, struct nezha_contact_list *contacts)
{
	*door = (struct nezha_door){ .engine = engine, .contacts = contacts };
	for (size_t r = 0; r < engine->config.rail_count && r < NEZHA_RAILS_MAX; r++) {
		struct nezha_rail_nic rail = engine->rails[r];
		uint32_t at = engine->card.rail_count;
		uint16_t port = 0;
		int fd = listen_on(&rail.nic, engine->config.lack, &port);

		if (fd < 0)
			continue;
		engine->verbs[at] = NULL;
		if (rail.kind == NEZHA_RAIL_VERBS && nezha_verbs_open(&rail.port, &engine->config.verbs, &engine->verbs_memory,
		                                                      &engine->verbs[at]) != NEZHA_OK) {
			close(fd);
			continue;
		}
		door->listeners[at] = fd;
		enter_rail(engine, &rail, port);
	}
}

void nezha_door_close(struct nezha_door *door)
{
	for (uint32_t r = 0; r < door->engine->card.rail_count; r++)
		close(door->listeners[r]);
}
