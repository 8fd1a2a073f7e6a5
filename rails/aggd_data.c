/* SPDX-License-Identifier: BSD-3-Clause
 * The packets of the aggregation daemon.  Several come with one system call (recvmmsg, and each message may be a run of
 * packets that the kernel has joined: UDP_GRO); results that become complete meanwhile are sent as runs, too
 * (UDP_SEGMENT). */
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "rails/aggd_state.h"
#include "rails/ina_run.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define MESSAGES 16              /* received with one call */
#define MESSAGE_BYTES 65536
#define ROUNDS 4                 /* such calls before the control connections get their turn */
#define RUN_BYTES 16384          /* of a run of results: switches with shallow queues and shapers let no more pass whole */
#define RUN_MOST 32
#define SEND_WAIT 5              /* ms for room in the socket; then it is as if the network had lost the packets */

/* A run of results of one session that goes out with one call for each receiver. */
struct run {
	struct aggd_session *session;
	int count;
	size_t bytes;
	struct nezha_ina_header headers[RUN_MOST];
	struct iovec parts[2 * RUN_MOST];
};

struct aggd_io {
	struct mmsghdr messages[MESSAGES];
	struct iovec buffers[MESSAGES];
	struct sockaddr_in from[MESSAGES];
	union nezha_ina_control control[MESSAGES];
	struct run run;
	bool singly;                     /* the kernel cannot send runs of packets: see fits */
	char *memory;
};

int aggd_io_create(struct nezha_aggd *aggd)
{
	struct aggd_io *io = calloc(1, sizeof *io);

	if (!io)
		return NEZHA_ERR_NOMEM;
	io->memory = malloc((size_t)MESSAGES * MESSAGE_BYTES);
	if (!io->memory) {
		free(io);
		return NEZHA_ERR_NOMEM;
	}
	for (int i = 0; i < MESSAGES; i++)
		io->buffers[i] = (struct iovec){ io->memory + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES };
	aggd->io = io;
	return NEZHA_OK;
}

void aggd_io_destroy(struct aggd_io *io)
{
	if (io)
		free(io->memory);
	free(io);
}

/* ---- sending ---- */

static void send_to(struct nezha_aggd *aggd, const struct sockaddr_in *to, struct iovec *parts, size_t count,
                    uint16_t segment)
{
	struct pollfd room = { aggd->data.fd, POLLOUT, 0 };

	if (nezha_ina_send_run(aggd->data.fd, to, parts, count, segment) >= 0)
		return;
	if (segment && nezha_ina_only_singly(errno))
		aggd->io->singly = true;         /* the ranks will ask for this run again */
	else if ((errno == EAGAIN || errno == ENOBUFS) && poll(&room, 1, SEND_WAIT) == 1)
		nezha_ina_send_run(aggd->data.fd, to, parts, count, segment);
}

static void flush(struct nezha_aggd *aggd)
{
	struct run *run = &aggd->io->run;
	struct aggd_session *session = run->session;
	uint16_t segment = run->count > 1 ? (uint16_t)(sizeof run->headers[0] + run->headers[0].length) : 0;
	size_t parts = 2 * (size_t)run->count;

	if (run->count && session->grouped)
		send_to(aggd, &session->group, run->parts, parts, segment);
	for (int r = 0; run->count && !session->grouped && r < session->ranks; r++)
		send_to(aggd, &session->members[r].address, run->parts, parts, segment);
	run->count = 0;
	run->bytes = 0;
	run->session = NULL;
}

/* All packets of a run are of one length, but for the last, which may be shorter. */
static bool fits(const struct run *run, const struct aggd_session *session, uint16_t length)
{
	return !run->count || (run->session == session && run->count < RUN_MOST &&
	                       length <= run->headers[run->count - 1].length &&
	                       run->headers[run->count - 1].length == run->headers[0].length &&
	                       run->bytes + sizeof run->headers[0] + length <= RUN_BYTES);
}

static void queue(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_sum *sum)
{
	struct run *run = &aggd->io->run;

	if (!fits(run, session, sum->header.length) || aggd->io->singly)
		flush(aggd);
	run->session = session;
	run->headers[run->count] = sum->header;
	run->parts[2 * run->count] = (struct iovec){ &run->headers[run->count], sizeof run->headers[0] };
	run->parts[2 * run->count + 1] = (struct iovec){ (void *)sum->data, sum->header.length };
	run->bytes += sizeof run->headers[0] + sum->header.length;
	run->count++;
}

static void answer(struct nezha_aggd *aggd, const struct sockaddr_in *to, struct nezha_ina_header *header,
                   const void *payload)
{
	struct iovec parts[] = { { header, sizeof *header }, { (void *)payload, header->length } };

	send_to(aggd, to, parts, 2, 0);
}

static void answer_alive(struct nezha_aggd *aggd, const struct aggd_session *session, const struct sockaddr_in *to,
                         const struct nezha_ina_header *asked)
{
	struct nezha_ina_missing missing;
	struct nezha_ina_header header = *asked;

	nezha_ina_slots_missing(session->slots, asked->seq, &missing);
	header.kind = NEZHA_INA_ALIVE;
	header.flags = 0;
	header.rank = 0;
	header.length = sizeof missing;
	answer(aggd, to, &header, &missing);
}

void aggd_beacon(struct nezha_aggd *aggd, const struct aggd_session *session)
{
	struct nezha_ina_header header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION,
	                                   .kind = NEZHA_INA_BEACON, .token = session->token };

	answer(aggd, &session->group, &header, NULL);
}

/* ---- receiving ---- */

static void take(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_header *header,
                 const char *payload)
{
	const struct sockaddr_in *sender = &session->members[header->rank].address;
	enum nezha_ina_taken taken;
	struct nezha_ina_sum sum;
	char why[64];

	/* A version may be overwritten while its last result waits in the run: but then that result was received. */
	taken = nezha_ina_slots_take(session->slots, header, payload, &sum);
	switch (taken) {
	case NEZHA_INA_COMPLETE:
		aggd->stats.results++;
		queue(aggd, session, &sum);
		break;
	case NEZHA_INA_KEPT:
		aggd->stats.again++;
		answer(aggd, sender, &sum.header, sum.data);
		break;
	case NEZHA_INA_TWICE:
		aggd->stats.again++;
		break;
	case NEZHA_INA_OUTSIDE:
		aggd->stats.outside++;
		return;
	case NEZHA_INA_DISAGREE:
		flush(aggd);
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
	if (header->flags & NEZHA_INA_AGAIN && (taken == NEZHA_INA_TAKEN || taken == NEZHA_INA_TWICE))
		answer_alive(aggd, session, sender, header);
}

static void packet(struct nezha_aggd *aggd, const char *data, size_t size, const struct sockaddr_in *from)
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
	else
		take(aggd, session, &header, data + sizeof header);
}

static void message(struct nezha_aggd *aggd, struct mmsghdr *in)
{
	const char *data = in->msg_hdr.msg_iov->iov_base;
	size_t left = in->msg_len, segment = nezha_ina_run_segment(&in->msg_hdr, left);

	if (in->msg_hdr.msg_flags & MSG_TRUNC || !left)
		aggd->stats.garbage++;
	for (; left; left -= segment, data += segment) {
		segment = segment < left ? segment : left;
		packet(aggd, data, segment, in->msg_hdr.msg_name);
	}
}

static int receive_some(struct nezha_aggd *aggd)
{
	struct aggd_io *io = aggd->io;
	int n;

	for (int i = 0; i < MESSAGES; i++)
		io->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &io->from[i], .msg_namelen = sizeof io->from[i], .msg_iov = &io->buffers[i], .msg_iovlen = 1,
			.msg_control = io->control[i].bytes, .msg_controllen = sizeof io->control[i].bytes,
		};
	n = recvmmsg(aggd->data.fd, io->messages, MESSAGES, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		message(aggd, &io->messages[i]);
	flush(aggd);
	return n;
}

void aggd_receive(struct nezha_aggd *aggd)
{
	for (int i = 0; i < ROUNDS; i++)
		if (receive_some(aggd) < MESSAGES)
			return;
}
