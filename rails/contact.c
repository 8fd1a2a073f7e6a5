/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/contact.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/contact_control.h"
#include "rails/contact_verbs.h"
#include "rails/inlink.h"
#include "rails/sieve.h"
#include "tuning/log.h"
#include "tuning/pause.h"
#include "tuning/status.h"

#define CONNECT_LIMIT (200 * NEZHA_MSEC)     /* a lost SYN is sent again by us, sooner than by the kernel */
#define HANDSHAKE_LIMIT (2 * NEZHA_SEC)
#define PAUSE_LEAST (20 * NEZHA_MSEC)
#define PAUSE_MOST (40 * NEZHA_MSEC)
/* A queue pair costs both ends more than a connection that is not made, and where it carries nothing that may well last.  But a path
 * that was there shall be back within a second. */
#define PAUSE_VERBS (640 * NEZHA_MSEC)
#define PAUSE_NEVER_UP (5120 * NEZHA_MSEC)
#define UNHEARD_MOST 2000                    /* ms for which what a control connection has sent may stay without an acknowledgement */
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
	contact->error = ETIMEDOUT;
	return contact;
}

/* A question that nobody acknowledges, since all rails are down or something on the way has forgotten the connection while it was idle:
 * without a limit it would be sent again ever more seldom, long after another connection could have carried it. */
static void set_options(int fd, bool control)
{
	int on = 1, notsent = NOTSENT_BYTES;
	unsigned unheard = UNHEARD_MOST;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (control)
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof unheard);
	else
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
	int why, on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

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
	why = errno;
	close(fd);
	errno = why;
	return NULL;
}

/* A handshake's messages fit any socket's empty buffer: less than all of it sent means a broken connection. */
static int send_all(int fd, const void *what, size_t length)
{
	ssize_t n = send(fd, what, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n == (ssize_t)length ? NEZHA_OK : NEZHA_ERR_CLOSED;
}

struct nezha_contact *nezha_contact_accept(struct nezha_engine *engine, int rail, int fd, uint32_t from)
{
	struct nezha_contact *contact = make(engine, rail, fd, HANDSHAKE_LIMIT);

	if (!contact) {
		close(fd);
		return NULL;
	}
	contact->from = from;
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
		contact->error = error ? error : errno;
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
	struct nezha_connection known = *connection;
	struct nezha_inlink *inlink = NULL;

	memcpy(&known.id, contact->hello.nonce, sizeof known.id);
	nezha_fairlock_take(&engine->lock);
	if (contact->link)
		nezha_link_attach(contact->link, contact->rail, &known);
	else if ((inlink = nezha_inlink_get(engine, contact->hello.from))) {
		nezha_inlink_came_from(inlink, contact->rail, contact->from);
		nezha_inlink_attach(inlink, contact->rail, &known);
	}
	nezha_fairlock_give(&engine->lock);
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
	nezha_sieve_lift(contact->fd);
	if (send_all(contact->fd, &welcome, sizeof welcome) != NEZHA_OK)
		return NEZHA_ERR_CLOSED;
	return proved(contact);
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
	case NEZHA_CONTACT_PROVING:
	case NEZHA_CONTACT_PROOF:
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
	case NEZHA_CONTACT_ANSWERING:
		return nezha_contact_heard(contact);
	case NEZHA_CONTACT_CONNECTING:
	case NEZHA_CONTACT_PROVING:
	case NEZHA_CONTACT_PROOF:
		break;
	}
	return NEZHA_ERR_PROTOCOL;
}

int nezha_contact_watch(const struct nezha_contact *contact, short *events)
{
	*events = contact->state == NEZHA_CONTACT_CONNECTING ? POLLOUT : POLLIN;
	return nezha_contact_verbs_waits(contact) ? nezha_verbs_end_events(contact->end) : contact->fd;
}

int nezha_contact_ready(struct nezha_contact *contact)
{
	ssize_t n;

	if (contact->state == NEZHA_CONTACT_CONNECTING)
		return connected(contact);
	if (nezha_contact_verbs_waits(contact))
		return nezha_contact_verbs_turn(contact);
	n = recv(contact->fd, (char *)&contact->in + contact->have, expected_bytes(contact) - contact->have,
	         MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NEZHA_OK;
	if (n <= 0) {
		contact->error = n ? errno : ECONNRESET;
		return NEZHA_ERR_CLOSED;
	}
	contact->have += (uint32_t)n;
	if (contact->have < expected_bytes(contact))
		return NEZHA_OK;
	contact->have = 0;
	return arrived(contact);
}

/* ---- ending ---- */

/* The pause after this attempt, twice the one before.  One that has succeeded needs none, but for queue pairs: until they
 * are known to be steady (damping.h) the next one may not come sooner. */
static uint64_t next_pause(const struct nezha_contact *contact, const struct nezha_path *path)
{
	uint64_t most = PAUSE_MOST;

	if (path->up && !path->ops->apart)
		return 0;
	if (path->up || nezha_contact_verbs_begun(contact))
		most = path->up || path->lost ? PAUSE_VERBS : PAUSE_NEVER_UP;
	return nezha_pause_longer(path->pause, PAUSE_LEAST, most);
}

static void tell_link(struct nezha_contact *contact)
{
	struct nezha_path *path = &contact->link->paths[contact->rail];
	uint64_t jitter = (uint64_t)(uintptr_t)path % (PAUSE_LEAST / 2);

	if (contact->hello.kind == NEZHA_HELLO_CONTROL) {
		contact->link->control[contact->rail] = false;
		if (path->up)
			path->retry_at = nezha_now() + PAUSE_MOST;
	} else {
		path->connecting = false;
		path->error = path->up ? 0 : contact->error;
		path->pause = path->renew ? 0 : next_pause(contact, path);
		path->retry_at = path->renew ? 0 : nezha_now() + path->pause + jitter;
		path->renew = false;
	}
}

void nezha_contact_destroy(struct nezha_contact *contact)
{
	if (contact->fd >= 0)
		close(contact->fd);
	nezha_verbs_end_destroy(contact->end);
	nezha_fairlock_take(&contact->engine->lock);
	if (contact->fd >= 0 && nezha_contact_verbs_begun(contact))
		nezha_contact_verbs_tell(contact);
	if (contact->link)
		tell_link(contact);
	nezha_fairlock_give(&contact->engine->lock);
	free(contact);
}
