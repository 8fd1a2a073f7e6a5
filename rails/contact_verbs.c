/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/contact_verbs.h"

#include "tuning/status.h"

static int make_end(struct nezha_contact *contact)
{
	return nezha_verbs_end_create(contact->engine->verbs[contact->rail], contact->link != NULL, &contact->end);
}

static int send_offer(struct nezha_contact *contact, enum nezha_verbs_offer_kind kind)
{
	struct nezha_verbs_offer offer;

	nezha_verbs_end_offer(contact->end, &offer);
	offer.kind = (uint8_t)kind;
	return nezha_contact_send(contact, &offer, sizeof offer);
}

static int hand_over(struct nezha_contact *contact)
{
	struct nezha_connection connection = {
		.ops = &nezha_verbs_rail, .fd = contact->fd, .events = nezha_verbs_end_events(contact->end),
		.transport = contact->end,
	};
	int rc = nezha_contact_attach(contact, &connection);

	if (rc == NEZHA_INPROGRESS)
		contact->end = NULL;
	return rc;
}

int nezha_contact_verbs_begin(struct nezha_contact *contact)
{
	if (!contact->link) {
		contact->state = NEZHA_CONTACT_OFFER;
		return NEZHA_OK;
	}
	contact->state = NEZHA_CONTACT_OFFERED;
	return make_end(contact) == NEZHA_OK ? send_offer(contact, NEZHA_VERBS_OFFER) : NEZHA_ERR_UNREACHABLE;
}

/* The connector's: make ours, answer. */
static int answer(struct nezha_contact *contact)
{
	contact->state = NEZHA_CONTACT_GO;
	if (make_end(contact) != NEZHA_OK || nezha_verbs_end_connect(contact->end, &contact->in.offer) != NEZHA_OK)
		return NEZHA_ERR_UNREACHABLE;
	return send_offer(contact, NEZHA_VERBS_OFFER);
}

/* The acceptor's, which can take in already. */
static int answered(struct nezha_contact *contact)
{
	if (nezha_verbs_end_connect(contact->end, &contact->in.offer) != NEZHA_OK)
		return NEZHA_ERR_UNREACHABLE;
	return send_offer(contact, NEZHA_VERBS_GO) == NEZHA_OK ? hand_over(contact) : NEZHA_ERR_CLOSED;
}

int nezha_contact_verbs_arrived(struct nezha_contact *contact)
{
	bool go = contact->state == NEZHA_CONTACT_GO;

	if (nezha_verbs_offer_check(&contact->in.offer, go ? NEZHA_VERBS_GO : NEZHA_VERBS_OFFER) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	if (go)
		return hand_over(contact);
	return contact->state == NEZHA_CONTACT_OFFER ? answer(contact) : answered(contact);
}
