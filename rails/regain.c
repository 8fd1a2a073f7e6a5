/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/regain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/carrier.h"
#include "rails/clock.h"
#include "rails/contact.h"
#include "rails/contact_control.h"
#include "rails/engine.h"
#include "rails/link.h"
#include "tuning/log.h"
#include "tuning/pause.h"
#include "tuning/status.h"

#define DARK_EVERY (50 * NEZHA_MSEC) /* an interface without carrier is asked: the kernel may tell of its return late */
/* What is back is told of again, for the switch may not let everything through at once: after pauses that double up to this. */
#define TELL_FIRST (20 * NEZHA_MSEC)
#define TELL_MOST (320 * NEZHA_MSEC)
#define DISCARD 9                    /* the port that nobody listens on (RFC 863) */
#define NOBODY 0xc0000200u           /* 192.0.2.0/24, addresses that no host has (RFC 5737) */
#define NOBODIES 32                  /* of them: the kernel waits for each for 3 s */
#define CALL_PAUSE (10 * NEZHA_MSEC) /* a return may be told over several connections */

/* ---- calling the neighbours ---- */

/* Makes the kernel ask the rail's network for an address that no host has, by an empty datagram to it that is never sent.  The request is
 * a broadcast and refreshes what others know of this host.  Of another address each time: of the last one the kernel is still
 * waiting for an answer.  It does its best: if it fails, neighbours are found by the kernel's own requests, a second apart. */
static void call_neighbours(struct nezha_engine *engine, uint32_t rail)
{
	const struct nezha_nic *nic = &engine->rails[rail].nic;
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = nic->address };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(DISCARD) };
	int device = (int)htonl(if_nametoindex(nic->device)), on = 1, fd;
	uint64_t now = nezha_now();

	if (now - engine->regain[rail].called < CALL_PAUSE)
		return;
	engine->regain[rail].called = now;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	to.sin_addr.s_addr = htonl(NOBODY + 1 + ((uint32_t)engine->config.process + engine->calls++) % NOBODIES);
	if (setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &device, sizeof device) ||
	    setsockopt(fd, SOL_SOCKET, SO_DONTROUTE, &on, sizeof on) || bind(fd, (struct sockaddr *)&from, sizeof from) ||
	    sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to) < 0)
		nezha_debug("%s: the neighbours are not called: %m", nic->device);
	close(fd);
}

/* ---- telling ---- */

static void tell(struct nezha_engine *engine, struct nezha_contact_list *contacts, uint32_t rail)
{
	struct nezha_contact *contact;

	call_neighbours(engine, rail);
	LIST_FOREACH(contact, contacts, entry)
		if (nezha_contact_is_control(contact) && contact->rail != (int)rail &&
		    nezha_contact_tell_back(contact, rail) != NEZHA_OK)
			contact->deadline = 1;      /* the next turn ends it */
}

void nezha_regain_heard(struct nezha_engine *engine, struct nezha_link *link, uint32_t rail)
{
	if (link) {
		nezha_fairlock_take(&engine->lock);
		nezha_path_retry(&link->paths[rail]);
		nezha_fairlock_give(&engine->lock);
	}
	call_neighbours(engine, rail);
}

/* ---- the turn ---- */

static void ask_doubted(struct nezha_engine *engine, int fd)
{
	uint32_t doubted;

	nezha_fairlock_take(&engine->lock);
	doubted = engine->doubted;
	engine->doubted = 0;
	nezha_fairlock_give(&engine->lock);
	if (doubted)
		nezha_carrier_ask(engine, doubted, fd);
}

static void ask_dark(struct nezha_engine *engine, int fd, uint64_t now, uint64_t *next)
{
	uint32_t dark;

	nezha_fairlock_take(&engine->lock);
	dark = engine->dark;
	nezha_fairlock_give(&engine->lock);
	if (!dark)
		return;
	if (now - engine->dark_asked >= DARK_EVERY) {
		engine->dark_asked = now;
		nezha_carrier_ask_dark(engine, dark, fd);
	}
	if (engine->dark_asked + DARK_EVERY < *next)
		*next = engine->dark_asked + DARK_EVERY;
}

/* Whether it is time to tell of the rail, which is back; the last time is past when all of it is in use again. */
static bool is_due(struct nezha_engine *engine, uint32_t rail, uint64_t now, uint64_t *next)
{
	struct nezha_regain *regain = &engine->regain[rail];
	bool due = false;

	nezha_fairlock_take(&engine->lock);
	if (regain->tell_at && regain->pause && nezha_rail_whole(engine, rail))
		regain->tell_at = 0;
	if (regain->tell_at && regain->tell_at <= now) {
		due = true;
		if (regain->pause == TELL_MOST) {
			regain->tell_at = 0;
		} else {
			regain->pause = nezha_pause_longer(regain->pause, TELL_FIRST, TELL_MOST);
			regain->tell_at = now + regain->pause;
		}
	}
	if (regain->tell_at && regain->tell_at < *next)
		*next = regain->tell_at;
	nezha_fairlock_give(&engine->lock);
	return due;
}

void nezha_regain_turn(struct nezha_engine *engine, struct nezha_contact_list *contacts, int fd, uint64_t now, uint64_t *next)
{
	struct nezha_contact *contact;

	ask_doubted(engine, fd);
	ask_dark(engine, fd, now, next);
	for (uint32_t r = 0; r < engine->card.rail_count; r++)
		if (is_due(engine, r, now, next))
			tell(engine, contacts, r);
	LIST_FOREACH(contact, contacts, entry)
		if (nezha_contact_outdated(contact))
			contact->deadline = 1;
}
