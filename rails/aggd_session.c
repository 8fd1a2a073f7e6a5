/* SPDX-License-Identifier: BSD-3-Clause
 * The sessions of the aggregation daemon: forming (ranks join), welcomed (slots are there, the group is tried), ready. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "rails/aggd_state.h"
#include "rails/clock.h"
#include "rails/ina_xdp.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define BEACON_EVERY (10 * NEZHA_MSEC)
#define LISTEN 150                       /* ms that ranks wait for a beacon; */
#define LISTEN_OFFLOAD 600               /* ... for two ways of them, see aggd_offload.c */
#define ANSWER_LIMIT (2 * NEZHA_SEC)
#define FORMING_LIMIT (10 * NEZHA_SEC)   /* ranks wait 5 s for each other */
#define GROUPS_FROM 0xef4e0000u       /* 239.78.0.0/16, administratively scoped (RFC 2365) */

static void link_token(struct nezha_aggd *aggd, struct aggd_session *session)
{
	LIST_INSERT_HEAD(&aggd->tokens[session->token % AGGD_BUCKETS], session, same);
}

struct aggd_session *aggd_session_find(struct nezha_aggd *aggd, uint64_t token)
{
	struct aggd_session *session;

	LIST_FOREACH(session, &aggd->tokens[token % AGGD_BUCKETS], same)
		if (session->token == token)
			return session;
	return NULL;
}

static struct aggd_session *find_team(struct nezha_aggd *aggd, const unsigned char *team)
{
	struct aggd_session *session;

	LIST_FOREACH(session, &aggd->sessions, entry)
		if (!memcmp(session->team, team, sizeof session->team))
			return session;
	return NULL;
}

static struct aggd_session *make(struct nezha_aggd *aggd, const struct nezha_ina_join *join)
{
	struct aggd_session *session = calloc(1, sizeof *session + join->ranks * sizeof session->members[0]);

	if (!session)
		return NULL;
	session->out.fd = -1;
	session->ranks = join->ranks;
	session->deadline = nezha_now() + FORMING_LIMIT;
	aggd->waiting = true;
	memcpy(session->team, join->team, sizeof session->team);
	LIST_INSERT_HEAD(&aggd->sessions, session, entry);
	return session;
}

static void forget(struct nezha_aggd *aggd, struct aggd_session *session)
{
	aggd_send_close(aggd, session);
	aggd_offload_forget(aggd, session);
	LIST_REMOVE(session, entry);
	if (session->welcomed)
		LIST_REMOVE(session, same);
	nezha_ina_slots_destroy(session->slots);
	free(session);
}

static void end_with(struct nezha_aggd *aggd, struct aggd_session *session, enum nezha_ina_record_kind kind,
                     const char *why)
{
	struct nezha_ina_record record;

	nezha_info("a session of %d ranks is over: %s", session->ranks, why);
	if (kind == NEZHA_INA_LEAVE)
		nezha_ina_record_make(kind, &record);
	else
		nezha_ina_record_text(kind, why, &record);
	for (int r = 0; r < session->ranks; r++)
		if (session->members[r].peer) {
			aggd_tell(session->members[r].peer, &record);
			aggd_peer_close(aggd, session->members[r].peer);
		}
	forget(aggd, session);
}

void aggd_session_end(struct nezha_aggd *aggd, struct aggd_session *session, const char *why)
{
	end_with(aggd, session, NEZHA_INA_OVER, why);
}

void aggd_leave(struct nezha_aggd *aggd, struct aggd_peer *peer, bool order)
{
	struct aggd_session *session = peer->session;
	int rank = peer->rank;
	char why[64];

	aggd_peer_close(aggd, peer);
	if (!session)
		return;
	session->members[rank].peer = NULL;
	session->joined--;
	snprintf(why, sizeof why, "rank %d of the communicator has %s", rank, order ? "left" : "closed its connection");
	if (session->welcomed)
		end_with(aggd, session, order ? NEZHA_INA_LEAVE : NEZHA_INA_OVER, why);
	else if (!session->joined)
		forget(aggd, session);
}

/* ---- joining ---- */

static void refuse(struct nezha_aggd *aggd, struct aggd_peer *peer, const char *why)
{
	struct nezha_ina_record record;

	aggd->stats.refused++;
	nezha_ina_record_text(NEZHA_INA_REFUSED, why, &record);
	aggd_tell(peer, &record);
	aggd_peer_close(aggd, peer);
}

/* As many slots as the budget allows, up to what all members want. */
static int make_slots(struct nezha_aggd *aggd, struct aggd_session *session)
{
	int rc = NEZHA_ERR_NOMEM;

	session->chunk = aggd->offload ? NEZHA_XDP_CHUNK : NEZHA_INA_CHUNK_MAX;
	session->window = NEZHA_INA_WINDOW_MAX;
	for (int r = 0; r < session->ranks; r++) {
		if (session->members[r].chunk < session->chunk)
			session->chunk = session->members[r].chunk;
		if (session->members[r].window < session->window)
			session->window = session->members[r].window;
	}
	while (rc != NEZHA_OK && session->window >= NEZHA_INA_WINDOW_MIN) {
		rc = nezha_ina_slots_create(&aggd->budget, session->ranks, session->window, session->chunk,
		                            aggd->offload != NULL, &session->slots);
		if (rc != NEZHA_OK)
			session->window /= 2;
	}
	return rc;
}

static void choose_group(struct nezha_aggd *aggd, struct aggd_session *session)
{
	if (!aggd->config.multicast)
		return;
	session->group = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(nezha_aggd_port(aggd)),
	                                       .sin_addr.s_addr = htonl(GROUPS_FROM | ++aggd->groups) };
}

/* All are there. */
static void welcome(struct nezha_aggd *aggd, struct aggd_session *session)
{
	struct nezha_ina_record record;
	char why[NEZHA_INA_TEXT_BYTES];

	if (make_slots(aggd, session) != NEZHA_OK) {
		aggd->stats.refused++;
		snprintf(why, sizeof why, "its memory is used up: %" PRIu64 " of %" PRIu64 " bytes, --memory allows more",
		         aggd->budget.used, aggd->budget.limit);
		end_with(aggd, session, NEZHA_INA_REFUSED, why);
		return;
	}
	if (aggd_send_open(aggd, session) != NEZHA_OK) {
		aggd->stats.refused++;
		end_with(aggd, session, NEZHA_INA_REFUSED, "it has no descriptors for more sessions");
		return;
	}
	do
		randombytes_buf(&session->token, sizeof session->token);
	while (!session->token || aggd_session_find(aggd, session->token));
	choose_group(aggd, session);
	aggd_offload_reserve(aggd, session);
	session->welcomed = aggd->waiting = true;
	session->beacon_at = nezha_now() + BEACON_EVERY;
	session->deadline = nezha_now() + ANSWER_LIMIT;
	link_token(aggd, session);
	aggd->stats.sessions++;
	nezha_ina_record_make(NEZHA_INA_WELCOME, &record);
	record.welcome = (struct nezha_ina_welcome){
		.token = session->token, .epoch = aggd->epoch, .group = session->group.sin_addr.s_addr,
		.port = ntohs(session->group.sin_port), .chunk = session->chunk, .window = session->window,
		.listen = session->kernel ? LISTEN_OFFLOAD : LISTEN,
	};
	/* One that cannot be told will be seen to have left. */
	for (int r = 0; r < session->ranks; r++)
		aggd_tell(session->members[r].peer, &record);
}

/* The session that the peer belongs to; an older one of the team gives way: its members have lost it, or will. */
static struct aggd_session *session_for(struct nezha_aggd *aggd, const struct nezha_ina_join *join)
{
	struct aggd_session *session = find_team(aggd, join->team);

	if (session && (session->welcomed || session->ranks != join->ranks)) {
		aggd_session_end(aggd, session, "a rank of the communicator has joined anew");
		session = NULL;
	}
	return session ? session : make(aggd, join);
}

void aggd_join(struct nezha_aggd *aggd, struct aggd_peer *peer, const struct nezha_ina_join *join)
{
	struct aggd_session *session;
	struct aggd_member *member;

	if (aggd->draining) {
		refuse(aggd, peer, "it is going down");
		return;
	}
	session = session_for(aggd, join);
	if (!session) {
		refuse(aggd, peer, "it has no memory");
		return;
	}
	member = &session->members[join->rank];
	if (member->peer)
		aggd_peer_close(aggd, member->peer);
	else
		session->joined++;
	aggd->strangers--;
	peer->session = session;
	peer->rank = join->rank;
	*member = (struct aggd_member){ .peer = peer, .address = peer->address, .chunk = join->chunk,
	                                .window = join->window };
	member->address.sin_port = htons(join->port);
	if (session->joined == session->ranks)
		welcome(aggd, session);
}

void aggd_answered(struct nezha_aggd *aggd, struct aggd_peer *peer, bool heard)
{
	struct aggd_session *session = peer->session;
	struct aggd_member *member = &session->members[peer->rank];
	struct nezha_ina_record record;

	if (!session->welcomed || member->answered) {
		aggd->stats.garbage++;
		aggd_leave(aggd, peer, false);
		return;
	}
	member->answered = true;
	member->heard = heard;
	if (++session->answered < session->ranks)
		return;
	session->ready = true;
	session->grouped = session->group.sin_port != 0 && !session->unlike;
	for (int r = 0; r < session->ranks; r++)
		session->grouped = session->grouped && session->members[r].heard;
	aggd_offload_settle(aggd, session);
	nezha_info("a session of %d ranks is open: %u slots of %u bytes, results %s%s", session->ranks, session->window,
	           session->chunk, session->grouped ? "by multicast" : "to each rank",
	           session->offloaded ? ", integers by XDP" : "");
	nezha_ina_record_make(NEZHA_INA_READY, &record);
	record.yes = session->grouped;
	for (int r = 0; r < session->ranks; r++)
		aggd_tell(session->members[r].peer, &record);
}

void aggd_sessions_tick(struct nezha_aggd *aggd, uint64_t now)
{
	struct aggd_session *session, *next;

	aggd->waiting = false;
	for (session = LIST_FIRST(&aggd->sessions); session; session = next) {
		next = LIST_NEXT(session, entry);
		if (session->ready)
			continue;
		aggd->waiting = true;
		if (now > session->deadline) {
			aggd_session_end(aggd, session, session->welcomed ? "not all ranks have answered in time" :
			                 "not all ranks have come in time");
		} else if (session->welcomed && session->group.sin_port && now >= session->beacon_at) {
			if (!aggd_offload_beacon(aggd, session))
				aggd_beacon(session);
			session->beacon_at = now + BEACON_EVERY;
		}
	}
}
