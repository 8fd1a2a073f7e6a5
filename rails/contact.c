/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/contact.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/contact_verbs.h"
#include "rails/inlink.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define CONNECT_LIMIT (300 * NEZHA_MSEC)     /* a lost SYN is sent again by us, sooner than by the kernel */
#define HANDSHAKE_LIMIT (2 * NEZHA_SEC)
#define PAUSE_LEAST (20 * NEZHA_MSEC)
#define PAUSE_MOST (80 * NEZHA_MSEC)
#define NOTSENT_BYTES (128 << 10)            /* unsent bytes a socket takes on: enough to stay busy, few to lose */

static struct nezha_contact *make(struct nezha_engine *engine, int rail, int fd, uint64_t limit)
{
	struct nezha_contact *contact = calloc(1, sizeof *contact);

	if (!contact)
		return NULL;
	contact->engine = engine;
	contact->rail = rail;
	contact->fd = fd;
	contact->deadline = nezha_now() + limit;
	return contact;
}

static void set_options(int fd, bool control)
{
	int on = 1, notsent = NOTSENT_BYTES;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!control)
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &notsent, sizeof notsent);
}

/* ---- beginning ---- */

struct nezha_contact *nezha_contact_connect(struct nezha_link *link, int rail, enum nezha_hello_kind kind)
{
	struct nezha_engine *engine = link->engine;
	const struct nezha_card_rail *theirs = &link->card.rails[link->paths[rail].peer_rail];
	const struct nezha_nic *nic = &engine->rails[rail].nic;
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = nic->address };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = theirs->address,
	                          .sin_port = htons(theirs->port) };
	struct nezha_contact *contact;
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return NULL;
	set_options(fd, kind == NEZHA_HELLO_CONTROL);
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	/* Two rails may be in one subnet: the address alone does not choose the interface. Not every kernel
	 * lets every user do this, and most networks do not need it.  Within a host there is only loopback. */
	if (link->card.host != engine->card.host)
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, nic->device, (socklen_t)strlen(nic->device));
	if (bind(fd, (struct sockaddr *)&from, sizeof from) ||
	    (connect(fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS))
		goto close_fd;
	contact = make(engine, rail, fd, CONNECT_LIMIT);
	if (!contact)
		goto close_fd;
	contact->state = NEZHA_CONTACT_CONNECTING;
	contact->link = link;
	contact->hello = (struct nezha_hello){ .from = engine->config.process, .to = link->peer,
	                                       .kind = (uint8_t)kind, .rail = link->paths[rail].peer_rail };
	return contact;

close_fd:
	close(fd);
	return NULL;
}

/* A handshake's messages fit any socket's empty buffer: less than all of it sent means a broken connection. */
static int send_all(int fd, const void *what, size_t length)
{
	ssize_t n = send(fd, what, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n == (ssize_t)length ? NEZHA_OK : NEZHA_ERR_CLOSED;
}

struct nezha_contact *nezha_contact_accept(struct nezha_engine *engine, int rail, int fd)
{
	struct nezha_contact *contact = make(engine, rail, fd, HANDSHAKE_LIMIT);

	if (!contact) {
		close(fd);
		return NULL;
	}
	contact->state = NEZHA_CONTACT_HELLO;
	nezha_challenge_make(&contact->challenge);
	if (send_all(fd, &contact->challenge, sizeof contact->challenge) != NEZHA_OK) {
		nezha_contact_destroy(contact);
		return NULL;
	}
	return contact;
}

/* ---- the handshake ---- */

static int connected(struct nezha_contact *contact)
{
	int error = 0;
	socklen_t length = sizeof error;

	if (getsockopt(contact->fd, SOL_SOCKET, SO_ERROR, &error, &length) || error) {
		pthread_mutex_lock(&contact->engine->lock);
		contact->link->paths[contact->rail].refused = error == ECONNREFUSED;
		pthread_mutex_unlock(&contact->engine->lock);
		return NEZHA_ERR_UNREACHABLE;
	}
	contact->state = NEZHA_CONTACT_CHALLENGE;
	contact->deadline = nezha_now() + HANDSHAKE_LIMIT;
	return NEZHA_OK;
}

static int challenged(struct nezha_contact *contact)
{
	contact->challenge = contact->in.challenge;
	if (nezha_hello_make(contact->engine->key, &contact->challenge, &contact->hello) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	contact->state = NEZHA_CONTACT_WELCOME;
	return send_all(contact->fd, &contact->hello, sizeof contact->hello);
}

int nezha_contact_send(struct nezha_contact *contact, const void *what, size_t length)
{
	return send_all(contact->fd, what, length);
}

int nezha_contact_attach(struct nezha_contact *contact, const struct nezha_connection *connection)
{
	struct nezha_engine *engine = contact->engine;
	struct nezha_inlink *inlink = NULL;

	pthread_mutex_lock(&engine->lock);
	if (contact->link)
		nezha_link_attach(contact->link, contact->rail, connection);
	else if ((inlink = nezha_inlink_get(engine, contact->hello.from)))
		nezha_inlink_attach(inlink, contact->rail, connection);
	pthread_mutex_unlock(&engine->lock);
	if (!contact->link && !inlink)
		return NEZHA_ERR_NOMEM;
	contact->fd = -1;
	nezha_engine_wake(engine);
	return NEZHA_INPROGRESS;
}

/* Both have shown that they are of the job; what for is in the hello. */
static int proved(struct nezha_contact *contact)
{
	struct nezha_connection connection = { .ops = &nezha_tcp_rail, .fd = contact->fd, .events = -1 };

	contact->deadline = 0;
	if (contact->hello.kind == NEZHA_HELLO_CONTROL) {
		contact->state = contact->link ? NEZHA_CONTACT_ASKING : NEZHA_CONTACT_ANSWERING;
		return NEZHA_OK;
	}
	if (contact->engine->rails[contact->rail].kind == NEZHA_RAIL_TCP)
		return nezha_contact_attach(contact, &connection);
	contact->deadline = nezha_now() + HANDSHAKE_LIMIT;
	return nezha_contact_verbs_begin(contact);
}

static int welcomed(struct nezha_contact *contact)
{
	struct nezha_engine *engine = contact->engine;

	if (nezha_welcome_check(engine->key, &contact->challenge, &contact->hello, &contact->in.welcome) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	return proved(contact);
}

static int greeted(struct nezha_contact *contact)
{
	struct nezha_engine *engine = contact->engine;
	const struct nezha_hello *hello = &contact->in.hello;
	struct nezha_welcome welcome;

	if (nezha_hello_check(engine->key, &contact->challenge, hello, engine->config.process, contact->rail) != NEZHA_OK) {
		nezha_info("a stranger tried to connect to rail %s", nezha_rail_name(&engine->rails[contact->rail]));
		return NEZHA_ERR_PROTOCOL;
	}
	contact->hello = *hello;
	nezha_welcome_make(engine->key, &contact->challenge, hello, &welcome);
	set_options(contact->fd, hello->kind == NEZHA_HELLO_CONTROL);
	if (send_all(contact->fd, &welcome, sizeof welcome) != NEZHA_OK)
		return NEZHA_ERR_CLOSED;
	return proved(contact);
}

/* ---- control ---- */

int nezha_contact_ask(struct nezha_contact *contact, uint64_t team, uint32_t op)
{
	struct nezha_wire query = nezha_wire_make(NEZHA_WIRE_QUERY, team, op);

	return send_all(contact->fd, &query, sizeof query);
}

static int answer(struct nezha_contact *contact)
{
	struct nezha_engine *engine = contact->engine;
	struct nezha_wire state;
	struct nezha_team *team;

	if (nezha_wire_check(&contact->in.record, NEZHA_CHANNEL_QUERY) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	state = nezha_wire_make(NEZHA_WIRE_STATE, contact->in.record.team, contact->in.record.op);
	pthread_mutex_lock(&engine->lock);
	team = nezha_engine_team(engine, state.team);
	if (team) {
		state.op = team->entered;
		state.block = team->finished;
	}
	pthread_mutex_unlock(&engine->lock);
	state.origin = !team;
	return send_all(contact->fd, &state, sizeof state);
}

static int answered(struct nezha_contact *contact)
{
	struct nezha_engine *engine = contact->engine;
	const struct nezha_wire *state = &contact->in.record;
	struct nezha_team *team;

	if (nezha_wire_check(state, NEZHA_CHANNEL_STATE) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	pthread_mutex_lock(&engine->lock);
	team = nezha_engine_team(engine, state->team);
	if (team && team->right == contact->link) {
		/* A team that the neighbour has ended is one of which it has finished every call. */
		uint32_t entered = state->op;
		uint32_t finished = state->origin ? state->op : state->block;

		if (nezha_seq_diff(finished, team->entered) <= 0 && nezha_seq_diff(finished, team->right_done) > 0) {
			team->right_done = finished;
			team->moved = nezha_now();
		}
		if (nezha_seq_diff(entered, team->entered) <= 1)
			nezha_link_granted(team, entered);
	}
	pthread_mutex_unlock(&engine->lock);
	nezha_engine_wake(engine);
	return NEZHA_OK;
}

/* ---- reading ---- */

static uint32_t expected_bytes(const struct nezha_contact *contact)
{
	switch (contact->state) {
	case NEZHA_CONTACT_CHALLENGE:
		return sizeof contact->in.challenge;
	case NEZHA_CONTACT_WELCOME:
		return sizeof contact->in.welcome;
	case NEZHA_CONTACT_HELLO:
		return sizeof contact->in.hello;
	case NEZHA_CONTACT_OFFERED:
	case NEZHA_CONTACT_OFFER:
	case NEZHA_CONTACT_GO:
		return sizeof contact->in.offer;
	case NEZHA_CONTACT_CONNECTING:
	case NEZHA_CONTACT_ASKING:
	case NEZHA_CONTACT_ANSWERING:
		break;
	}
	return sizeof contact->in.record;
}

static int arrived(struct nezha_contact *contact)
{
	switch (contact->state) {
	case NEZHA_CONTACT_CHALLENGE:
		return challenged(contact);
	case NEZHA_CONTACT_WELCOME:
		return welcomed(contact);
	case NEZHA_CONTACT_HELLO:
		return greeted(contact);
	case NEZHA_CONTACT_OFFERED:
	case NEZHA_CONTACT_OFFER:
	case NEZHA_CONTACT_GO:
		return nezha_contact_verbs_arrived(contact);
	case NEZHA_CONTACT_ASKING:
		return answered(contact);
	case NEZHA_CONTACT_ANSWERING:
		return answer(contact);
	case NEZHA_CONTACT_CONNECTING:
		break;
	}
	return NEZHA_ERR_PROTOCOL;
}

int nezha_contact_ready(struct nezha_contact *contact)
{
	ssize_t n;

	if (contact->state == NEZHA_CONTACT_CONNECTING)
		return connected(contact);
	n = recv(contact->fd, (char *)&contact->in + contact->have, expected_bytes(contact) - contact->have,
	         MSG_DONTWAIT);
	if (n == 0)
		return NEZHA_ERR_CLOSED;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? NEZHA_OK : NEZHA_ERR_CLOSED;
	contact->have += (uint32_t)n;
	if (contact->have < expected_bytes(contact))
		return NEZHA_OK;
	contact->have = 0;
	return arrived(contact);
}

/* ---- ending ---- */

static void tell_link(struct nezha_contact *contact)
{
	struct nezha_path *path = &contact->link->paths[contact->rail];
	uint64_t jitter = (uint64_t)(uintptr_t)path % (PAUSE_LEAST / 2);

	pthread_mutex_lock(&contact->engine->lock);
	if (contact->hello.kind == NEZHA_HELLO_CONTROL) {
		contact->link->control[contact->rail] = false;
		path->retry_at = nezha_now() + PAUSE_MOST;
	} else {
		path->connecting = false;
		/* That queue pairs could be connected does not mean that they carry anything. */
		path->pause = path->up && !path->ops->apart ? 0 : path->pause ? 2 * path->pause : PAUSE_LEAST;
		if (path->pause > PAUSE_MOST)
			path->pause = PAUSE_MOST;
		path->retry_at = nezha_now() + path->pause + jitter;
		if (path->up)
			path->refused = false;
	}
	pthread_mutex_unlock(&contact->engine->lock);
}

void nezha_contact_destroy(struct nezha_contact *contact)
{
	if (contact->fd >= 0)
		close(contact->fd);
	nezha_verbs_end_destroy(contact->end);
	if (contact->link)
		tell_link(contact);
	free(contact);
}
