/* SPDX-License-Identifier: BSD-3-Clause
 * What may come over a new connection: a handshake, and what is asked and answered over one for control.  The first byte says who we
 * are and how much the peer knows, the second one how many bytes come first, seven what is in a member's hello; all others are the
 * peer's bytes, which the contact reads from a socket.  Without the key nobody gets past the handshake; so the input can have a peer of the job's say its part of
 * it, since no mutation would ever find a MAC.  Then the bytes as the offer of a queue pair. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/contact.h"
#include "rails/inlink.h"
#include "rails/verbs_message.h"
#include "rails/verbs_offer.h"
#include "tests/fuzz/fuzz.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define ME 1
#define PEER 2
#define RAIL 0
#define TEAM 7
#define HEAD 9                  /* bytes of the input that say how */
#define INPUT_MAX 4096          /* bytes: fits a socket pair's buffer with a handshake before it */

enum { CONNECTS = 1, ASKS = 2, IN_THE_JOB = 4, HAS_TEAM = 8, CRC = 16 };     /* bits of the first byte */

static const unsigned char key[NEZHA_KEY_BYTES] = "the key of a fuzzed job";

struct world {
	struct nezha_engine engine;
	struct nezha_team team;
	struct nezha_link *link;
	int peer;               /* the other end of the contact's connection */
};

static void begin(struct world *world, unsigned how)
{
	struct nezha_engine *engine = &world->engine;
	struct nezha_card card = { .protocol = NEZHA_PROTOCOL, .process = PEER, .rail_count = 1 };

	nezha_fairlock_init(&engine->lock);
	memcpy(engine->key, key, sizeof key);
	engine->config.key = engine->key;
	engine->config.process = ME;
	engine->config.crc = how & CRC;
	engine->card.rail_count = 1;
	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	engine->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	world->link = nezha_link_get(engine, &card);
	world->team.left = nezha_inlink_get(engine, 0);
	fuzz_assert(engine->epoll >= 0 && engine->wake.fd >= 0 && world->link && world->team.left);
	if (!(how & HAS_TEAM))
		return;
	world->team.engine = engine;
	world->team.id = TEAM;
	world->team.right = world->link;
	world->team.entered = world->team.finished = 3;
	TAILQ_INIT(&world->team.held);
	TAILQ_INIT(&world->team.eager);
	LIST_INSERT_HEAD(&engine->teams, &world->team, entry);
	LIST_INSERT_HEAD(nezha_engine_bucket(engine, TEAM), &world->team, same);
}

static void end(struct world *world)
{
	struct nezha_engine *engine = &world->engine;
	struct nezha_inlink *inlink;

	while ((inlink = LIST_FIRST(&engine->inlinks)))
		nezha_inlink_destroy(inlink);
	nezha_link_destroy(world->link);
	close(world->peer);
	close(engine->wake.fd);
	close(engine->epoll);
	nezha_fairlock_destroy(&engine->lock);
}

static void say(struct world *world, const void *what, size_t length)
{
	if (write(world->peer, what, length) != (ssize_t)length)
		abort();
}

/* As the service thread does it: an error ends the contact.  False: it is over. */
static bool turn(struct nezha_contact *contact)
{
	return nezha_contact_ready(contact) == NEZHA_OK;
}

/* The contact of who connects to us, and of the peer to whom we connect, as its connection comes up. */
static struct nezha_contact *greet(struct world *world, unsigned how)
{
	struct nezha_contact *contact;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		abort();
	world->peer = pair[1];
	contact = nezha_contact_accept(&world->engine, RAIL, pair[0], 0x0100007f);
	fuzz_assert(contact);
	if (how & CONNECTS) {
		contact->link = world->link;
		contact->state = NEZHA_CONTACT_CHALLENGE;
		contact->hello = (struct nezha_hello){ .from = ME, .to = PEER, .kind = how & ASKS ? NEZHA_HELLO_CONTROL : NEZHA_HELLO_DATA, .rail = RAIL };
	}
	return contact;
}

/* The peer's part of the handshake, with what the input (HEAD - 2 bytes) wants in its hello; false: the contact is over. */
static bool introduce(struct world *world, struct nezha_contact *contact, unsigned how, const uint8_t *data)
{
	struct nezha_challenge challenge;
	struct nezha_welcome welcome;
	struct nezha_hello hello = { .to = ME, .rail = RAIL, .kind = data[0] };

	if (how & CONNECTS) {
		nezha_challenge_make(&challenge);
		say(world, &challenge, sizeof challenge);
		if (!turn(contact))
			return false;
		nezha_welcome_make(key, &contact->challenge, &contact->hello, &welcome);
		say(world, &welcome, sizeof welcome);
	} else {
		memcpy(&hello.from, data + 1, sizeof hello.from);
		hello.to += (int8_t)data[5];
		hello.rail = data[6];
		fuzz_assert(nezha_hello_make(key, &contact->challenge, &hello) == NEZHA_OK);
		say(world, &hello, sizeof hello);
	}
	return turn(contact);
}

/* Records get their CRCs, if there are any. */
static void seal(const struct world *world, uint8_t *data, size_t size)
{
	struct nezha_wire record;

	for (; size >= sizeof record; data += sizeof record, size -= sizeof record) {
		memcpy(&record, data, sizeof record);
		nezha_wire_seal(&record, world->engine.config.crc);
		memcpy(data, &record, sizeof record);
	}
}

static void listen_to(struct world *world, struct nezha_contact *contact, const uint8_t *data, size_t size, size_t piece)
{
	uint8_t *copy = malloc(size + 1);
	bool on;

	fuzz_assert(copy);
	memcpy(copy, data, size);
	seal(world, copy, size);
	piece = piece < size ? piece : size;
	say(world, copy, piece);
	on = turn(contact);
	say(world, copy + piece, size - piece);
	for (size_t i = 0; on && i < size / sizeof(struct nezha_wire) + 3; i++)
		on = turn(contact);
	free(copy);
}

static void check_offers(const uint8_t *data, size_t size)
{
	struct nezha_verbs_offer offer;

	if (size < sizeof offer)
		return;
	memcpy(&offer, data, sizeof offer);
	if (nezha_verbs_offer_check(&offer, NEZHA_VERBS_OFFER) == NEZHA_OK)
		fuzz_assert(offer.qpn >> 24 == 0 && offer.psn >> 24 == 0 && offer.mtu >= 256 && offer.mtu <= 4096 && offer.buffers &&
		            offer.buffers <= NEZHA_VERBS_BUFFERS_MAX && offer.message == NEZHA_VERBS_MESSAGE);
}

/* Without the key no bytes make a member of a stranger. */
static void check_stranger(const struct nezha_contact *contact, unsigned how)
{
	fuzz_assert(how & IN_THE_JOB || contact->state == NEZHA_CONTACT_HELLO || contact->state == NEZHA_CONTACT_CHALLENGE ||
	            contact->state == NEZHA_CONTACT_WELCOME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nezha_contact *contact;
	struct world *world;
	static int quiet;
	unsigned how;

	if (!quiet++)
		nezha_log_open(NEZHA_LOG_ERROR, "/dev/null", -1);
	check_offers(data, size);
	if (size < HEAD || size > INPUT_MAX)
		return 0;
	how = data[0];
	world = calloc(1, sizeof *world);
	fuzz_assert(world);
	begin(world, how);
	contact = greet(world, how);
	if (!(how & IN_THE_JOB) || introduce(world, contact, how, data + 2))
		listen_to(world, contact, data + HEAD, size - HEAD, data[1]);
	check_stranger(contact, how);
	nezha_contact_destroy(contact);
	end(world);
	free(world);
	return 0;
}
