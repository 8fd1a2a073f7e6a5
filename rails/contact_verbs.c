/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/contact_verbs.h"

#include "rails/clock.h"
#include "rails/inlink.h"
#include "tuning/log.h"
#include "tuning/status.h"

static struct nezha_verbs_device *device_of(const struct nezha_contact *contact)
{
	return contact->engine->verbs[contact->rail];
}

/* Remembers why. */
static int checked(struct nezha_contact *contact, int rc)
{
	if (rc < 0)
		contact->why = nezha_verbs_why(device_of(contact));
	return rc;
}

static int make_end(struct nezha_contact *contact)
{
	return checked(contact, nezha_verbs_end_create(device_of(contact), contact->link != NULL, &contact->end));
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
	if (make_end(contact) != NEZHA_OK ||
	    checked(contact, nezha_verbs_end_connect(contact->end, &contact->in.offer)) != NEZHA_OK)
		return NEZHA_ERR_UNREACHABLE;
	return send_offer(contact, NEZHA_VERBS_OFFER);
}

/* rc: whether our proof has arrived. */
static int go_if_proved(struct nezha_contact *contact, int rc)
{
	if (checked(contact, rc) == NEZHA_INPROGRESS)
		return NEZHA_OK;
	if (rc != NEZHA_OK)
		return rc;
	contact->state = NEZHA_CONTACT_GO;
	return send_offer(contact, NEZHA_VERBS_GO);
}

/* The acceptor's, which can take in already. */
static int answered(struct nezha_contact *contact)
{
	contact->state = NEZHA_CONTACT_PROVING;
	if (checked(contact, nezha_verbs_end_connect(contact->end, &contact->in.offer)) != NEZHA_OK)
		return NEZHA_ERR_UNREACHABLE;
	return go_if_proved(contact, nezha_verbs_end_prove(contact->end));
}

/* The peer knows that the proof has arrived, but that may be to be seen here only later. */
static int take_proof(struct nezha_contact *contact)
{
	int rc = checked(contact, nezha_verbs_end_take_proof(contact->end));

	contact->state = NEZHA_CONTACT_PROOF;
	if (rc == NEZHA_INPROGRESS)
		return NEZHA_OK;
	if (rc == NEZHA_OK)
		rc = send_offer(contact, NEZHA_VERBS_GO);
	return rc == NEZHA_OK ? hand_over(contact) : rc;
}

int nezha_contact_verbs_arrived(struct nezha_contact *contact)
{
	bool go = contact->state == NEZHA_CONTACT_GO;

	if (nezha_verbs_offer_check(&contact->in.offer, go ? NEZHA_VERBS_GO : NEZHA_VERBS_OFFER) != NEZHA_OK)
		return NEZHA_ERR_PROTOCOL;
	if (go)
		return contact->link ? hand_over(contact) : take_proof(contact);
	return contact->state == NEZHA_CONTACT_OFFER ? answer(contact) : answered(contact);
}

bool nezha_contact_verbs_waits(const struct nezha_contact *contact)
{
	return contact->state == NEZHA_CONTACT_PROVING || contact->state == NEZHA_CONTACT_PROOF;
}

int nezha_contact_verbs_turn(struct nezha_contact *contact)
{
	return contact->state == NEZHA_CONTACT_PROOF ? take_proof(contact)
	                                             : go_if_proved(contact, nezha_verbs_end_proved(contact->end));
}

bool nezha_contact_verbs_begun(const struct nezha_contact *contact)
{
	return contact->state >= NEZHA_CONTACT_OFFERED && contact->state <= NEZHA_CONTACT_PROOF;
}

/* NULL: the peer has ended it. */
static const char *cause(const struct nezha_contact *contact)
{
	if (contact->why)
		return contact->why;
	if (contact->deadline > nezha_now())
		return NULL;
	return nezha_contact_verbs_waits(contact) ? "its queue pair carries nothing within 2 s" : "the peer does not answer within 2 s";
}

void nezha_contact_verbs_tell(const struct nezha_contact *contact)
{
	const char *name = nezha_rail_name(&contact->engine->rails[contact->rail]), *why = cause(contact);
	struct nezha_inlink *inlink;

	if (!why)
		return;
	if (contact->link) {
		struct nezha_path *path = &contact->link->paths[contact->rail];

		if (!path->why_told)
			nezha_info("rail %s does not reach process %d on %s, and is tried again now and then: %s", name,
			           contact->link->peer, contact->link->card.hostname, why);
		path->why_told = true;
	} else if ((inlink = nezha_inlink_get(contact->engine, contact->hello.from))) {
		struct nezha_inpath *inpath = &inlink->paths[contact->rail];

		if (!inpath->why_told)
			nezha_info("rail %s cannot be reached by process %d: %s", name, inlink->peer, why);
		inpath->why_told = true;
	}
}
