/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a data connection's handshake that verbs rails add: the exchange of verbs_offer.h. */
#ifndef NEZHA_RAILS_CONTACT_VERBS_H
#define NEZHA_RAILS_CONTACT_VERBS_H

#include "rails/contact.h"

/* The handshake of hello.h is over, on either side.  An error: destroy the contact. */
int nezha_contact_verbs_begin(struct nezha_contact *contact);

/* contact->in.offer has come whole.  As nezha_contact_ready. */
int nezha_contact_verbs_arrived(struct nezha_contact *contact);

#endif
