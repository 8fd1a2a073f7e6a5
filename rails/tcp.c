/* SPDX-License-Identifier: BSD-3-Clause
 * The tcp rail: one TCP connection per path.  Header and payload go in one sendmsg, but large payloads by reference (lend.h); a
 * payload and the next record come in one readv, at the time that await.h tells. */
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rails/await.h"
#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/lend.h"
#include "rails/link.h"
#include "tuning/status.h"

#define ZEROS 65536
static const char zeros[ZEROS];

/* What is lent follows the record, which is copied: it does not stay as it is. */
static ssize_t copy(struct nezha_path *path, bool record_only)
{
	struct nezha_outgoing *out = &path->out;
	char *record = (char *)&out->record + sizeof out->record - out->record_left;
	size_t piece = out->zeros && out->payload_left > ZEROS ? ZEROS : out->payload_left;
	struct iovec iov[2] = {
		{ record, out->record_left },
		{ (void *)(out->zeros ? zeros : out->payload), record_only ? 0 : piece },
	};
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(path->end.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL | (record_only ? MSG_MORE : 0));
}

static ssize_t lend(struct nezha_path *path)
{
	ssize_t n = nezha_lend(&path->link->engine->lender, path->end.fd, path->out.payload, path->out.payload_left);

	if (n < 0 && errno == EOPNOTSUPP)
		return copy(path, false);
	if (n > 0)
		path->lent = path->written + (uint64_t)n;
	return n;
}

static int tcp_send(struct nezha_path *path)
{
	struct nezha_outgoing *out = &path->out;

	while (out->record_left || out->payload_left) {
		bool large = out->payload_left >= NEZHA_LEND_LEAST && !out->zeros && !out->unsteady;
		ssize_t n = large && !out->record_left ? lend(path) : copy(path, large);
		size_t of_record;

		if (n < 0) {
			if (errno == EAGAIN)
				return NEZHA_INPROGRESS;
			if (errno == EINTR || errno == ENOBUFS)
				continue;
			return NEZHA_ERR_CLOSED;
		}
		path->written += (size_t)n;
		of_record = (size_t)n < out->record_left ? (size_t)n : out->record_left;
		out->record_left -= (uint32_t)of_record;
		out->payload_left -= (uint32_t)((size_t)n - of_record);
		if (!out->zeros)
			out->payload += (size_t)n - of_record;
	}
	return NEZHA_OK;
}

static int tcp_listen(struct nezha_path *path)
{
	struct nezha_wire record;

	for (;;) {
		char *at = (char *)&path->back + path->back_have;
		ssize_t n = recv(path->end.fd, at, sizeof path->back - path->back_have, MSG_DONTWAIT);
		int rc;

		if (n == 0)
			return NEZHA_ERR_CLOSED;
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? NEZHA_OK : NEZHA_ERR_CLOSED;
		}
		path->back_have += (uint32_t)n;
		if (path->back_have < sizeof path->back)
			continue;
		path->back_have = 0;
		record = path->back;    /* which the path's last records overwrite if this one ends it */
		rc = nezha_link_backward(path, &record);
		if (rc != NEZHA_OK || !path->up)
			return rc;
	}
}

/* ---- a path that is back ---- */

/* The kernel's cubic ends slow start as soon as round trips become longer (HyStart), which they do at once, from 10 us to some ms, where
 * acknowledgements wait behind data of the other direction: at 44 packets, and from there it took 300 ms to the rate that the path had
 * before.  So such a path begins with reno, which every kernel has, and goes on with cubic when its window holds what that rate needs, or
 * in the end.  Not in the middle of a recovery: packets that overtake each other at first look like a loss, which the kernel takes
 * back once it has learnt that all have arrived, but not if the control has changed meanwhile; a path was seen to stay at a window
 * of 20 packets for half a second.  Other ways of control are left as they are. */
#define RISE_FOR (500 * NEZHA_MSEC)
#define RISE_SECONDS 5e-3       /* what the window has to hold, at the rate that the path had; */
#define RISE_MOST (1 << 20)     /* bytes: where that is more, cubic is soon enough there, and reno might overrun a switch */
#define RISE_BEGUN (64 << 10)   /* bytes written: before, there were only greetings */
#define HAMPERED "cubic"
#define UNHAMPERED "reno"

static bool control(int fd, const char *name)
{
	return !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

/* Whether the host lets this user have both: a socket may begin with one that it may not go back to (tcp_allowed_congestion_control). */
static bool may_change(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool may = fd >= 0 && control(fd, UNHAMPERED) && control(fd, HAMPERED);

	if (fd >= 0)
		close(fd);
	return may;
}

static void tcp_returned(struct nezha_path *path)
{
	double needs = RISE_SECONDS * path->estimator.rate;
	char name[16] = "";
	socklen_t length = sizeof name - 1;

	if (getsockopt(path->end.fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) || strcmp(name, HAMPERED) || !may_change() ||
	    !control(path->end.fd, UNHAMPERED))
		return;
	path->rises = nezha_now() + RISE_FOR;
	path->rises_to = needs < RISE_MOST ? needs : RISE_MOST;
}

static void end_rise(struct nezha_path *path, const struct tcp_info *info)
{
	double window = (double)info->tcpi_snd_cwnd * info->tcpi_snd_mss;

	if (path->written < RISE_BEGUN)
		path->rises = nezha_now() + RISE_FOR;
	if ((window < path->rises_to || info->tcpi_ca_state != TCP_CA_Open) && nezha_now() < path->rises)
		return;
	control(path->end.fd, HAMPERED);
	path->rises = 0;
}

/* Bytes that have left the host: not those that wait in the socket, nor those in packets that the interface or its queue still holds
 * (SO_MEMINFO, which counts a packet's administration, too: they are taken for some per cent more than they are). */
static uint64_t left(const struct nezha_path *path, const struct tcp_info *info)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof memory;
	uint64_t here;

	if (getsockopt(path->end.fd, SOL_SOCKET, SO_MEMINFO, memory, &length))
		return 0;
	here = (uint64_t)info->tcpi_notsent_bytes + memory[SK_MEMINFO_WMEM_ALLOC];
	return here < path->written ? path->written - here : 0;
}

static int tcp_sample(struct nezha_path *path, struct nezha_path_sample *out)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof info;
	uint64_t flying;

	if (getsockopt(path->end.fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return NEZHA_ERR_SYSTEM;
	out->time = 0;
	out->written = path->written;
	out->acked = info.tcpi_bytes_acked - path->base_acked;
	out->sent = out->written - info.tcpi_notsent_bytes;
	out->left = left(path, &info);
	out->shut = info.tcpi_rwnd_limited;
	/* That counter goes by the kernel's clock ticks; the window itself (Linux 6.2, else 0) tells at once. */
	flying = out->sent - out->acked;
	if (path->rises)
		end_rise(path, &info);
#ifdef HAVE_STRUCT_TCP_INFO_TCPI_SND_WND
	out->narrow = info.tcpi_snd_wnd && info.tcpi_notsent_bytes &&
	              flying + 65536 > info.tcpi_snd_wnd;
#else
	out->narrow = false;
#endif
	out->window = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss;
	out->rtt = info.tcpi_min_rtt;
	out->quiet = info.tcpi_last_ack_recv * NEZHA_MSEC;
	/* A receiver that takes nothing in is asked for its window now and then, and answers as long as there is a way; not when it is asked
	 * within half a second (tcp_invalid_ratelimit), and one answer may get lost. */
	out->in_flight = info.tcpi_unacked > 0 || info.tcpi_probes > 2;
	out->recovering = info.tcpi_ca_state == TCP_CA_Loss;
	return NEZHA_OK;
}

/* ---- receiving ---- */

static int tcp_receive(struct nezha_inpath *inpath)
{
	struct nezha_landing *landing = &inpath->landing;
	struct iovec iov[2];
	size_t room = 0, asked;
	int parts = 0;
	ssize_t n;

	if (nezha_await_leaves(inpath))
		return NEZHA_OK;
	if (inpath->in_payload) {
		room = nezha_landing_room(landing, &iov[0].iov_base);
		iov[parts++].iov_len = room;
	}
	asked = room;
	if (!inpath->in_payload || landing->done + room == landing->length) {
		iov[parts].iov_base = (char *)&inpath->record + inpath->record_have;
		iov[parts].iov_len = sizeof inpath->record - inpath->record_have;
		asked += iov[parts++].iov_len;
	}
	n = readv(inpath->end.fd, iov, parts);
	if (n == 0)
		return NEZHA_ERR_CLOSED;
	if (n < 0 && errno == EAGAIN) {
		inpath->ends = false;   /* that was an older connection */
		return nezha_await(inpath);
	}
	if (n < 0)
		return errno == EINTR ? NEZHA_INPROGRESS : NEZHA_ERR_CLOSED;
	inpath->taken += (uint64_t)n;
	if (inpath->in_payload) {
		size_t of_payload = (size_t)n < room ? (size_t)n : room;

		nezha_landing_advance(landing, of_payload);
		inpath->record_have += (uint32_t)((size_t)n - of_payload);
		if (landing->done == landing->length) {
			inpath->in_payload = false;
			nezha_inlink_payload(inpath);
		}
	} else {
		inpath->record_have += (uint32_t)n;
	}
	if (inpath->up && inpath->record_have == sizeof inpath->record) {
		int rc = nezha_inlink_record(inpath);

		inpath->record_have = 0;
		if (rc != NEZHA_OK)
			return rc;
		inpath->in_payload = inpath->record.length > 0;
		nezha_await_block(inpath);
	}
	if ((size_t)n == asked || inpath->ends)
		return NEZHA_INPROGRESS;
	return inpath->up ? nezha_await(inpath) : NEZHA_OK;
}

static int flush_replies(struct nezha_inpath *inpath)
{
	while (inpath->reply_count) {
		char *at = (char *)inpath->replies + inpath->reply_sent;
		size_t left = inpath->reply_count * sizeof inpath->replies[0] - inpath->reply_sent;
		ssize_t n = send(inpath->end.fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? NEZHA_OK : NEZHA_ERR_CLOSED;
		}
		inpath->reply_sent += (uint32_t)n;
		if ((size_t)n == left)
			inpath->reply_count = inpath->reply_sent = 0;
	}
	return NEZHA_OK;
}

/* A NULL record: only try to send what was kept. */
static int tcp_reply(struct nezha_inpath *inpath, const struct nezha_wire *record)
{
	if (record && inpath->reply_count < NEZHA_REPLIES)
		inpath->replies[inpath->reply_count++] = *record;
	return flush_replies(inpath);
}

/* What the connection still holds of the program's memory must not go out after it, when that may have changed. */
static void tcp_close_path(struct nezha_path *path)
{
	struct nezha_path_sample sample;

	if (path->lent && (tcp_sample(path, &sample) != NEZHA_OK || sample.acked < path->lent))
		setsockopt(path->end.fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
	close(path->end.fd);
}

static void tcp_close_inpath(struct nezha_inpath *inpath)
{
	close(inpath->end.fd);
}

const struct nezha_rail_ops nezha_tcp_rail = {
	.name = "tcp",
	.send = tcp_send,
	.listen = tcp_listen,
	.sample = tcp_sample,
	.receive = tcp_receive,
	.reply = tcp_reply,
	.returned = tcp_returned,
	.close_path = tcp_close_path,
	.close_inpath = tcp_close_inpath,
};
