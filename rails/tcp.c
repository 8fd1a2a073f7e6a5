/* SPDX-License-Identifier: BSD-3-Clause
 * The tcp rail: one TCP connection per path.  Header and payload go in one sendmsg; a payload and the next
 * record come in one readv. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rails/inlink.h"
#include "rails/link.h"
#include "tuning/status.h"

#define ZEROS 65536
static const char zeros[ZEROS];

static int tcp_send(struct nezha_path *path)
{
	struct nezha_outgoing *out = &path->out;

	while (out->record_left || out->payload_left) {
		char *record = (char *)&out->record + sizeof out->record - out->record_left;
		size_t piece = out->zeros && out->payload_left > ZEROS ? ZEROS : out->payload_left;
		struct iovec iov[2] = {
			{ record, out->record_left },
			{ (void *)(out->zeros ? zeros : out->payload), piece },
		};
		struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
		ssize_t n = sendmsg(path->end.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
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
		rc = nezha_link_backward(path, &path->back);
		if (rc != NEZHA_OK || !path->up)
			return rc;
	}
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
	out->shut = info.tcpi_rwnd_limited;
	/* That counter goes by the kernel's clock ticks; the window itself (Linux 6.2, else 0) tells at once. */
	flying = out->sent - out->acked;
	out->narrow = info.tcpi_snd_wnd && info.tcpi_notsent_bytes &&
	              flying + 65536 > info.tcpi_snd_wnd;
	out->rtt = info.tcpi_min_rtt;
	out->in_flight = info.tcpi_unacked > 0;
	out->recovering = info.tcpi_ca_state == TCP_CA_Loss;
	return NEZHA_OK;
}

static int tcp_receive(struct nezha_inpath *inpath)
{
	struct nezha_landing *landing = &inpath->landing;
	struct iovec iov[2];
	size_t room = 0, asked;
	int parts = 0;
	ssize_t n;

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
	if (n < 0)
		return errno == EAGAIN ? NEZHA_OK : errno == EINTR ? NEZHA_INPROGRESS : NEZHA_ERR_CLOSED;
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
	}
	return (size_t)n < asked ? NEZHA_OK : NEZHA_INPROGRESS;
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

static void tcp_close_path(struct nezha_path *path)
{
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
	.close_path = tcp_close_path,
	.close_inpath = tcp_close_inpath,
};
