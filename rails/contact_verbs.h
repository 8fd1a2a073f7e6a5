/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a data connection's handshake that verbs rails add: the exchange of verbs_offer.h. */
#ifndef NEZHA_RAILS_CONTACT_VERBS_H
#define NEZHA_RAILS_CONTACT_VERBS_H

#include "rails/contact.h"

/* The handshake of hello.h is over, on either side.  An error: destroy the contact. */
int nezha_contact_verbs_begin(struct nezha_contact *contact);

/* contact->in.offer has come whole.  As nezha_contact_ready. */
int nezha_contact_verbs_arrived(struct nezha_contact *contact);

/* Whether it waits for the queue pair instead of the connection; and what to do then when something has happened there.  As
 * nezha_contact_ready. */
bool nezha_contact_verbs_waits(const struct nezha_contact *contact);
int nezha_contact_verbs_turn(struct nezha_contact *contact);

/* Whether the handshake has come to this part. */
bool nezha_contact_verbs_begun(const struct nezha_contact *contact);

/* Why the handshake ends now, in this part: one line, the first time for a peer and until there is a connection, since it is
 * tried again for ever.  Nothing if the peer has ended it, which tells it for itself.  The engine's lock is held. */
void nezha_contact_verbs_tell(const struct nezha_contact *contact);

#endif
