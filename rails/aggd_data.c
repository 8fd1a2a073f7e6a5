/* SPDX-License-Identifier: BSD-3-Clause
 * The packets that come to the aggregation daemon.  Several come with one system call (recvmmsg), and each message may be a
 * run of packets that the kernel has joined (UDP_GRO). */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "rails/aggd_state.h"
#include "rails/ina_run.h"
#include "rails/ina_xdp.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define MESSAGES 16              /* received with one call */
#define MESSAGE_BYTES 65536
#define SPARE 256                /* messages besides, in which something may wait for its turn */
#define ROUNDS 4                 /* such calls before the control connections get their turn */
#define DOUBT_FROM 16            /* results that were asked for again, where no group has shown yet that it works */
#define DOUBT_RESULTS 256        /* at least so many are looked at together */
#define DOUBT_SPARE 8            /* a rank that gets an eighth of them by the group, or more, hears it */

struct aggd_io {
	struct mmsghdr messages[MESSAGES];
	struct iovec parts[MESSAGES];
	struct sockaddr_in from[MESSAGES];
	union nezha_ina_control control[MESSAGES];
	struct nezha_ina_buffer *posted[MESSAGES];
	struct nezha_ina_buffers *buffers;
};

int aggd_io_create(struct nezha_aggd *aggd)
{
	struct aggd_io *io = calloc(1, sizeof *io);

	if (!io)
		return NEZHA_ERR_NOMEM;
	if (nezha_ina_buffers_create(MESSAGES, SPARE, MESSAGE_BYTES, &io->buffers) != NEZHA_OK) {
		free(io);
		return NEZHA_ERR_NOMEM;
	}
	aggd->io = io;
	return NEZHA_OK;
}

void aggd_io_destroy(struct aggd_io *io)
{
	if (io)
		nezha_ina_buffers_destroy(io->buffers);
	free(io);
}

/* ---- receiving ---- */

void aggd_answer_alive(struct aggd_session *session, const struct nezha_ina_header *asked,
                       const struct nezha_ina_missing *missing)
{
	struct nezha_ina_header header = *asked;

	header.kind = NEZHA_INA_ALIVE;
	header.flags = 0;
	header.rank = 0;
	header.length = sizeof *missing;
	aggd_answer(session, &session->members[asked->rank].address, &header, missing);
}

/* How many of the latest results are looked at together: a short break makes a rank miss a window of them at most, which is
 * half of these. */
static uint64_t looked_at(const struct aggd_session *session)
{
	uint64_t two = 2 * (uint64_t)session->window;

	return two > DOUBT_RESULTS ? two : DOUBT_RESULTS;
}

static void count_result(struct aggd_session *session)
{
	if (++session->results % looked_at(session))
		return;
	for (int r = 0; r < session->ranks; r++)
		session->members[r].kept = 0;
}

/* Loss makes all ranks ask again for the chunks that any one has lost: of N at 1 %, for 1 - 0.99^(N+1) of them at most.  But
 * who gets none asks for every one. */
static bool is_deaf(const struct aggd_session *session, const struct aggd_member *member)
{
	uint64_t all = looked_at(session);

	/* That ranks get the XDP program's results does not prove that they have ever got ours. */
	if (session->offloaded && session->results < all)
		return member->kept > DOUBT_FROM && member->kept > session->results / 2;
	return member->kept > all - all / DOUBT_SPARE;
}

/* A rank asks for a result again, for the first time.  That all have heard the group once does not prove that they still do: a
 * switch may forget who listens.  There is no way back: whether they would hear it again nobody could tell without a try, and
 * each costs what this one did. */
static void doubt_group(struct aggd_session *session, int rank)
{
	session->members[rank].kept++;
	if (!session->grouped || !is_deaf(session, &session->members[rank]))
		return;
	session->grouped = false;
	nezha_info("a session of %d ranks: rank %d gets nothing by multicast, results go to each rank", session->ranks, rank);
}

static void take(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_header *header,
                 const char *payload, struct nezha_ina_buffer *in)
{
	const struct sockaddr_in *sender = &session->members[header->rank].address;
	enum nezha_ina_taken taken;
	struct nezha_ina_missing missing;
	struct nezha_ina_sum sum;
	char why[64];

	/* A version may be overwritten while its last result waits in the run: but then that result was received. */
	taken = nezha_ina_slots_take(session->slots, header, payload, in, &sum);
	switch (taken) {
	case NEZHA_INA_COMPLETE:
		aggd->stats.results++;
		count_result(session);
		aggd_queue(aggd, session, &sum);
		break;
	case NEZHA_INA_KEPT:
		aggd->stats.again++;
		aggd_answer(session, sender, &sum.header, sum.data);
		if (!sum.asked)
			doubt_group(session, header->rank);
		break;
	case NEZHA_INA_TWICE:
		aggd->stats.again++;
		break;
	case NEZHA_INA_OUTSIDE:
		aggd->stats.outside++;
		return;
	case NEZHA_INA_DISAGREE:
		aggd_flush(aggd);
		snprintf(why, sizeof why, "the ranks have different ideas of call %u", header->call);
		aggd_session_end(aggd, session, why);
		return;
	case NEZHA_INA_TAKEN:
		break;
	}
	if (taken == NEZHA_INA_COMPLETE || taken == NEZHA_INA_TAKEN) {
		aggd->stats.packets++;
		aggd->stats.bytes += header->length;
	}
	if (header->flags & NEZHA_INA_AGAIN && (taken == NEZHA_INA_TAKEN || taken == NEZHA_INA_TWICE)) {
		nezha_ina_slots_missing(session->slots, header->seq, &missing);
		aggd_answer_alive(session, header, &missing);
	}
}

static void packet(struct nezha_aggd *aggd, const char *data, size_t size, const struct sockaddr_in *from,
                   struct nezha_ina_buffer *in)
{
	struct nezha_ina_header header;
	struct aggd_session *session;
	const struct sockaddr_in *known;

	if (nezha_ina_check_upward(data, size, &header) != NEZHA_OK) {
		aggd->stats.garbage++;
		return;
	}
	session = aggd_session_find(aggd, header.token);
	known = session && header.rank < session->ranks ? &session->members[header.rank].address : NULL;
	if (!known || known->sin_addr.s_addr != from->sin_addr.s_addr || known->sin_port != from->sin_port)
		aggd->stats.foreign++;
	else if (session->offloaded && nezha_xdp_folds(header.type, header.op))
		aggd_offload_passed(aggd, session, &header);
	else
		take(aggd, session, &header, data + sizeof header, in);
}

static void take_message(struct nezha_aggd *aggd, struct mmsghdr *message, struct nezha_ina_buffer *in)
{
	const char *data = in->data;
	size_t left = message->msg_len, segment = nezha_ina_run_segment(&message->msg_hdr, left);

	if (message->msg_hdr.msg_flags & MSG_TRUNC || !left)
		aggd->stats.garbage++;
	for (; left; left -= segment, data += segment) {
		segment = segment < left ? segment : left;
		packet(aggd, data, segment, message->msg_hdr.msg_name, in);
	}
}

static int receive_some(struct nezha_aggd *aggd)
{
	struct aggd_io *io = aggd->io;
	int n;

	for (int i = 0; i < MESSAGES; i++) {
		io->posted[i] = nezha_ina_buffers_post(io->buffers, io->posted[i]);
		io->parts[i] = (struct iovec){ io->posted[i]->data, MESSAGE_BYTES };
		io->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &io->from[i], .msg_namelen = sizeof io->from[i], .msg_iov = &io->parts[i], .msg_iovlen = 1,
			.msg_control = io->control[i].bytes, .msg_controllen = sizeof io->control[i].bytes,
		};
	}
	n = recvmmsg(aggd->data.fd, io->messages, MESSAGES, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		take_message(aggd, &io->messages[i], io->posted[i]);
	aggd_flush(aggd);
	return n;
}

void aggd_receive(struct nezha_aggd *aggd)
{
	for (int i = 0; i < ROUNDS; i++)
		if (receive_some(aggd) < MESSAGES)
			return;
}
