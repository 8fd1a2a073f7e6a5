/* SPDX-License-Identifier: BSD-3-Clause
 * The control connections of the aggregation daemon. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/aggd_state.h"
#include "rails/clock.h"
#include "rails/ina_address.h"
#include "rails/strangers.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define JOIN_LIMIT (5 * NEZHA_SEC)
#define STRANGERS_MOST 256
#define PEERS_MOST 8192
#define ACCEPT_MOST 64           /* at a time */

_Static_assert(STRANGERS_MOST <= NEZHA_STRANGERS_MOST, "a choice is among all of them");

bool aggd_tell(struct aggd_peer *peer, const struct nezha_ina_record *record)
{
	return send(peer->end.fd, record, sizeof *record, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *record;
}

void aggd_peer_close(struct nezha_aggd *aggd, struct aggd_peer *peer)
{
	if (!peer->session)
		aggd->strangers--;
	aggd->peer_count--;
	LIST_REMOVE(peer, entry);
	close(peer->end.fd);
	free(peer);
}

/* Too many strangers: one goes.  Who will join a session cannot be told apart, but crowds can. */
static void drop_stranger(struct nezha_aggd *aggd)
{
	struct nezha_stranger strangers[STRANGERS_MOST];
	struct aggd_peer *peer, *who[STRANGERS_MOST];
	size_t count = 0;

	LIST_FOREACH(peer, &aggd->peers, entry) {
		if (peer->session || count == STRANGERS_MOST)
			continue;
		strangers[count] = (struct nezha_stranger){ .address = peer->address.sin_addr.s_addr, .since = peer->deadline };
		who[count++] = peer;
	}
	if (count)
		aggd_peer_close(aggd, who[nezha_strangers_choose(strangers, count)]);
}

static void welcome_stranger(struct nezha_aggd *aggd, int fd, const struct sockaddr_in *address)
{
	struct aggd_peer *peer = calloc(1, sizeof *peer);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = peer };
	struct nezha_ina_record challenge;

	if (!peer || epoll_ctl(aggd->epoll, EPOLL_CTL_ADD, fd, &event)) {
		free(peer);
		close(fd);
		return;
	}
	nezha_ina_keep_alive(fd);
	peer->end = (struct aggd_end){ AGGD_END_PEER, fd };
	peer->address = *address;
	peer->deadline = nezha_now() + JOIN_LIMIT;
	randombytes_buf(peer->nonce, sizeof peer->nonce);
	LIST_INSERT_HEAD(&aggd->peers, peer, entry);
	aggd->strangers++;
	aggd->peer_count++;
	nezha_ina_record_make(NEZHA_INA_CHALLENGE, &challenge);
	memcpy(challenge.nonce, peer->nonce, sizeof peer->nonce);
	if (!aggd_tell(peer, &challenge))
		aggd_peer_close(aggd, peer);
}

int aggd_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a free descriptor a connection would stay in the queue, and the loop come back for it at once, for ever: the reserve is
 * spent on closing it. */
static void turn_away(struct nezha_aggd *aggd)
{
	int fd;

	close(aggd->reserve);
	fd = accept4(aggd->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	aggd->reserve = aggd_reserve();
}

void aggd_accept(struct nezha_aggd *aggd)
{
	for (int i = 0; i < ACCEPT_MOST; i++) {
		struct sockaddr_in address;
		socklen_t length = sizeof address;
		int fd = accept4(aggd->listener.fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			turn_away(aggd);
		if (fd < 0)
			return;
		if (aggd->strangers >= STRANGERS_MOST)
			drop_stranger(aggd);
		if (aggd->peer_count >= PEERS_MOST)
			close(fd);
		else
			welcome_stranger(aggd, fd, &address);
	}
}

static void refuse_garbage(struct nezha_aggd *aggd, struct aggd_peer *peer)
{
	aggd->stats.garbage++;
	aggd_leave(aggd, peer, false);
}

/* A record has come whole. */
static void serve(struct nezha_aggd *aggd, struct aggd_peer *peer)
{
	struct nezha_ina_record record = peer->in;

	peer->have = 0;
	if (nezha_ina_record_check_upward(&record) != NEZHA_OK) {
		refuse_garbage(aggd, peer);
	} else if (record.kind == NEZHA_INA_LEAVE) {
		aggd_leave(aggd, peer, true);
	} else if (record.kind == NEZHA_INA_HEARD && peer->session) {
		aggd_answered(aggd, peer, record.yes);
	} else if (record.kind == NEZHA_INA_JOIN && !peer->session &&
	           nezha_ina_verify(peer->nonce, &record.join) == NEZHA_OK) {
		aggd_join(aggd, peer, &record.join);
	} else {
		refuse_garbage(aggd, peer);
	}
}

void aggd_peer_ready(struct nezha_aggd *aggd, struct aggd_peer *peer)
{
	/* One record at a time: a further one makes the connection readable again. */
	ssize_t n = recv(peer->end.fd, (char *)&peer->in + peer->have, sizeof peer->in - peer->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		aggd_leave(aggd, peer, false);
		return;
	}
	peer->have += (uint32_t)n;
	if (peer->have == sizeof peer->in)
		serve(aggd, peer);
}

void aggd_peers_tick(struct nezha_aggd *aggd, uint64_t now)
{
	struct aggd_peer *peer, *next;

	for (peer = LIST_FIRST(&aggd->peers); peer; peer = next) {
		next = LIST_NEXT(peer, entry);
		if (!peer->session && peer->deadline < now)
			aggd_peer_close(aggd, peer);
	}
}
