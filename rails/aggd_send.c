/* SPDX-License-Identifier: BSD-3-Clause
 * What the aggregation daemon sends.  Results that become complete one after the other go out as a run (UDP_SEGMENT), from
 * a socket of their session's own: where a member's port is full, that socket is, and no other session waits.  What does not
 * get into it is owed, and sent when there is room: the slots keep results as long as any rank may miss them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/aggd_state.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define PAY_MOST 16              /* runs that are paid at a time, so that others get their turn */

/* ---- a session's socket ---- */

int aggd_send_open(struct nezha_aggd *aggd, struct aggd_session *session)
{
	size_t receivers = (size_t)session->ranks, words = 2 * (size_t)session->window / 64 + 1;

	session->out = (struct aggd_end){ AGGD_END_SESSION, aggd_bound(aggd, SOCK_DGRAM) };
	session->owed = calloc(receivers * words, sizeof *session->owed);
	session->owed_words = words;
	if (session->out.fd < 0 || !session->owed) {
		aggd_send_close(aggd, session);
		return NEZHA_ERR_SYSTEM;
	}
	aggd_tune_sender(aggd, session->out.fd);
	return NEZHA_OK;
}

void aggd_send_close(struct nezha_aggd *aggd, struct aggd_session *session)
{
	if (aggd->run.session == session)
		aggd->run = (struct aggd_run){ 0 };
	if (session->out.fd >= 0)
		close(session->out.fd);
	session->out.fd = -1;
	free(session->owed);
	session->owed = NULL;
}

static int receivers_of(const struct aggd_session *session)
{
	return session->grouped ? 1 : session->ranks;
}

static const struct sockaddr_in *receiver(const struct aggd_session *session, int r)
{
	return session->grouped ? &session->group : &session->members[r].address;
}

/* ---- runs ---- */

/* false: it is for another run. */
static bool add(struct aggd_run *run, struct aggd_session *session, const struct nezha_ina_sum *sum)
{
	if (run->session && run->session != session)
		return false;
	run->session = session;
	return nezha_ina_run_add(&run->packets, &sum->header, sum->data);
}

static void clear(struct aggd_run *run)
{
	run->session = NULL;
	nezha_ina_run_clear(&run->packets);
}

/* Sends packet by packet from number `from` on; how many of the run have gone.  One that the kernel refuses for another
 * reason than a full socket counts as lost by the network: the ranks ask again. */
static int send_singly(struct aggd_run *run, int from, const struct sockaddr_in *to)
{
	struct nezha_ina_run *packets = &run->packets;

	for (int i = from; i < packets->count; i++)
		if (nezha_ina_send_run(run->session->out.fd, to, &packets->parts[2 * i], 2, 0) < 0 && errno == EAGAIN)
			return i;
	return packets->count;
}

/* How many packets of the run have gone to the receiver. */
static int send_run(struct aggd_run *run, const struct sockaddr_in *to)
{
	struct nezha_ina_run *packets = &run->packets;
	uint16_t segment = nezha_ina_run_order(packets);

	if (!segment || run->session->singly)
		return send_singly(run, 0, to);
	if (nezha_ina_send_run(run->session->out.fd, to, packets->parts, 2 * (size_t)packets->count, segment) >= 0)
		return packets->count;
	if (nezha_ina_only_singly(errno)) {
		run->session->singly = true;
		return send_singly(run, 0, to);
	}
	return errno == EAGAIN ? 0 : packets->count;
}

/* ---- debts ---- */

static uint64_t *owed_to(const struct aggd_session *session, int r)
{
	return session->owed + (size_t)r * session->owed_words;
}

static void owe(struct nezha_aggd *aggd, struct aggd_session *session, int r, uint32_t seq)
{
	struct epoll_event event = { .events = EPOLLOUT, .data.ptr = &session->out };
	uint32_t at = seq & (2u * session->window - 1);
	uint64_t *word = owed_to(session, r) + at / 64, bit = (uint64_t)1 << at % 64;

	/* Where it cannot be watched, it counts as lost: the ranks ask for what is missing. */
	if (*word & bit || (!session->owed_count && epoll_ctl(aggd->epoll, EPOLL_CTL_ADD, session->out.fd, &event)))
		return;
	session->owed_count++;
	*word |= bit;
	aggd->stats.deferred++;
}

static void pay_bit(struct aggd_session *session, int r, uint32_t seq)
{
	uint32_t at = seq & (2u * session->window - 1);

	owed_to(session, r)[at / 64] &= ~((uint64_t)1 << at % 64);
	session->owed_count--;
}

static bool is_owed(const struct aggd_session *session, int r, uint32_t at)
{
	return owed_to(session, r)[at / 64] >> at % 64 & 1;
}

/* The next run of what is owed to the receiver, from version *at on; whether there is any. */
static bool next_debts(struct aggd_session *session, int r, uint32_t *at, struct aggd_run *run)
{
	struct nezha_ina_sum sum;

	clear(run);
	for (; *at < 2u * session->window; ++*at) {
		if (!is_owed(session, r, *at))
			continue;
		if (!nezha_ina_slots_kept(session->slots, *at, &sum)) {
			pay_bit(session, r, *at);    /* overwritten: all have it */
			continue;
		}
		if (!add(run, session, &sum))
			break;
	}
	return run->packets.count > 0;
}

/* false: there is no more room, or others shall have their turn. */
static bool pay_one(struct aggd_session *session, int r, int *most)
{
	struct aggd_run run;
	uint32_t at = 0;

	while (next_debts(session, r, &at, &run)) {
		int gone = send_run(&run, receiver(session, r));

		for (int i = 0; i < gone; i++)
			pay_bit(session, r, run.packets.headers[i].seq);
		if (gone < run.packets.count || !--*most)
			return false;
	}
	return true;
}

void aggd_send_ready(struct nezha_aggd *aggd, struct aggd_session *session)
{
	int most = PAY_MOST, receivers = receivers_of(session);

	/* Whoever was not reached this time comes first the next. */
	for (int i = 0; i < receivers; i++) {
		int r = (session->first_debtor + i) % receivers;

		if (!pay_one(session, r, &most)) {
			session->first_debtor = (r + 1) % receivers;
			break;
		}
	}
	if (!session->owed_count)
		epoll_ctl(aggd->epoll, EPOLL_CTL_DEL, session->out.fd, NULL);
}

/* ---- what the others call ---- */

void aggd_flush(struct nezha_aggd *aggd)
{
	struct aggd_run *run = &aggd->run;
	struct aggd_session *session = run->session;

	for (int r = 0; run->packets.count && r < receivers_of(session); r++)
		for (int i = session->owed_count ? 0 : send_run(run, receiver(session, r)); i < run->packets.count; i++)
			owe(aggd, session, r, run->packets.headers[i].seq);
	clear(run);
}

void aggd_queue(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_sum *sum)
{
	if (add(&aggd->run, session, sum))
		return;
	aggd_flush(aggd);
	add(&aggd->run, session, sum);
}

void aggd_answer(struct aggd_session *session, const struct sockaddr_in *to, struct nezha_ina_header *header,
                 const void *payload)
{
	struct iovec parts[] = { { header, sizeof *header }, { (void *)payload, header->length } };

	nezha_ina_send_run(session->out.fd, to, parts, 2, 0);
}

void aggd_beacon(struct aggd_session *session)
{
	struct nezha_ina_header header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION,
	                                   .kind = NEZHA_INA_BEACON, .token = session->token };

	aggd_answer(session, &session->group, &header, NULL);
}
