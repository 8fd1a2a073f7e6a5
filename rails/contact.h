/* SPDX-License-Identifier: BSD-3-Clause
 * A connection as long as the service thread has it: while the handshake goes on, and for good if it is a control
 * connection.  Used by the service thread only; takes the engine's lock itself where it needs it. */
#ifndef NEZHA_RAILS_CONTACT_H
#define NEZHA_RAILS_CONTACT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rails/hello.h"
#include "rails/link.h"
#include "rails/verbs.h"
#include "rails/wire.h"

enum nezha_contact_state {
	NEZHA_CONTACT_CONNECTING,
	NEZHA_CONTACT_CHALLENGE,   /* we wait for it */
	NEZHA_CONTACT_WELCOME,     /* we wait for it */
	NEZHA_CONTACT_HELLO,       /* we wait for it */
	NEZHA_CONTACT_OFFERED,     /* verbs: we have made ours, and wait for the peer's */
	NEZHA_CONTACT_OFFER,       /* verbs: we wait for the peer's */
	NEZHA_CONTACT_PROVING,     /* verbs: we wait for the queue pair to have carried our proof */
	NEZHA_CONTACT_GO,          /* verbs: we wait for it */
	NEZHA_CONTACT_PROOF,       /* verbs: we wait for the proof, which must have been sent */
	NEZHA_CONTACT_ASKING,      /* control: we ask, the peer answers */
	NEZHA_CONTACT_ANSWERING,   /* control: the peer asks */
};

struct nezha_contact {
	LIST_ENTRY(nezha_contact) entry;
	struct nezha_engine *engine;
	int fd;
	enum nezha_contact_state state;
	struct nezha_link *link;       /* NULL: the peer connected to us */
	int rail;                      /* ours */
	uint32_t from;                 /* the address of who connected to us */
	struct nezha_challenge challenge;
	struct nezha_hello hello;
	union {
		struct nezha_challenge challenge;
		struct nezha_hello hello;
		struct nezha_welcome welcome;
		struct nezha_wire record;
		struct nezha_verbs_offer offer;
	} in;
	uint32_t have;
	uint64_t deadline;             /* ns; 0: none */
	int error;                     /* errno: why it comes to nothing, as far as is known */
	struct nezha_verbs_end *end;   /* verbs: ours, while the handshake goes on; owned */
	const char *why;               /* verbs: what has gone wrong, the device's text; NULL: nothing yet */
};
LIST_HEAD(nezha_contact_list, nezha_contact);

/* Begins to connect path `rail` of the link, for data or control.  NULL: it failed at once (errno). */
struct nezha_contact *nezha_contact_connect(struct nezha_link *link, int rail, enum nezha_hello_kind kind);

/* Greets whoever has connected to rail `rail`; owns fd from now on.  `from`: its IPv4 address.  NULL: no memory, or it is gone. */
struct nezha_contact *nezha_contact_accept(struct nezha_engine *engine, int rail, int fd, uint32_t from);

/* What to poll for, and the events. */
int nezha_contact_watch(const struct nezha_contact *contact, short *events);

/* That is ready.  NEZHA_OK: go on waiting; NEZHA_INPROGRESS: the fd was handed over, destroy the contact; an error:
 * destroy it. */
int nezha_contact_ready(struct nezha_contact *contact);

/* For the parts of a handshake, and for control: sends a message; NEZHA_ERR_CLOSED. */
int nezha_contact_send(struct nezha_contact *contact, const void *what, size_t length);

/* Hands the connection (contact->fd; its id is set here) to the link, or the inlink from who connected.  NEZHA_INPROGRESS: done; an error. */
int nezha_contact_attach(struct nezha_contact *contact, const struct nezha_connection *connection);

/* Closes the fd unless it was handed over (fd = -1), and tells the link, which plans the next attempt. */
void nezha_contact_destroy(struct nezha_contact *contact);

/* Takes it out of its list, too. */
static inline void nezha_contact_drop(struct nezha_contact *contact)
{
	LIST_REMOVE(contact, entry);
	nezha_contact_destroy(contact);
}

/* Whether it is an attempt that nobody has answered, and that may be in vain: there has been news of its rail since it began. */
static inline bool nezha_contact_outdated(const struct nezha_contact *contact)
{
	return contact->state == NEZHA_CONTACT_CONNECTING && contact->hello.kind == NEZHA_HELLO_DATA &&
	       contact->link->paths[contact->rail].renew;
}

/* Whether it is still shaking hands, and for a stranger. */
static inline bool nezha_contact_stranger(const struct nezha_contact *contact)
{
	return contact->state == NEZHA_CONTACT_HELLO;
}

#endif
