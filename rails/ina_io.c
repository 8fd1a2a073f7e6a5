/* SPDX-License-Identifier: BSD-3-Clause
 * The packets between a rank and its aggregator.  Chunks that follow each other go out with one system call
 * (UDP_SEGMENT), straight from the user's memory; what comes may be a run that the kernel has joined (UDP_GRO). */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rails/ina.h"
#include "rails/ina_run.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define HEADERS 60               /* bytes of an IPv4 and UDP header and of ours */
#define BUFFER (4 << 20)         /* bytes: a window of results that comes while nobody looks */
#define MESSAGES_MOST 64         /* taken in at a time */
#define WINDOW_MOST 512          /* slots */
#define WINDOW_LEAST 256

/* ---- opening ---- */

static int make_socket(struct nezha_ina *ina, struct nezha_ina_socket *out)
{
	int on = 1, bytes = BUFFER, fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return NEZHA_ERR_SYSTEM;
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	*out = (struct nezha_ina_socket){ .end = { NEZHA_END_INA, fd }, .ina = ina, .unread = true };
	return NEZHA_OK;
}

static void close_socket(struct nezha_ina_socket *socket)
{
	if (socket->end.fd >= 0)
		close(socket->end.fd);
	socket->end.fd = -1;
	socket->unread = false;
}

void nezha_ina_close_sockets(struct nezha_ina *ina)
{
	close_socket(&ina->direct);
	close_socket(&ina->group);
}

int nezha_ina_open_direct(struct nezha_ina *ina, uint16_t *port, uint16_t *chunk)
{
	const struct nezha_ina_address *where = nezha_ina_where(ina);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = where->address, .sin_port = htons(where->port) };
	struct sockaddr_in from = { .sin_family = AF_INET };
	socklen_t length = sizeof from, int_length = sizeof(int);
	int mtu = 1500, most;

	if (ina->rail >= 0)
		from.sin_addr = ina->engine->rails[ina->rail].nic.address;
	if (make_socket(ina, &ina->direct) != NEZHA_OK)
		return NEZHA_ERR_SYSTEM;
	ina->singly = false;
	ina->hushed = NULL;
	if (bind(ina->direct.end.fd, (struct sockaddr *)&from, sizeof from) ||
	    connect(ina->direct.end.fd, (struct sockaddr *)&to, sizeof to) ||
	    getsockname(ina->direct.end.fd, (struct sockaddr *)&from, &length))
		return NEZHA_ERR_SYSTEM;
	getsockopt(ina->direct.end.fd, IPPROTO_IP, IP_MTU, &mtu, &int_length);
	most = (mtu - HEADERS) / 8 * 8;
	*chunk = (uint16_t)(most > NEZHA_INA_CHUNK_MAX ? NEZHA_INA_CHUNK_MAX :
	                    most < NEZHA_INA_CHUNK_MIN ? NEZHA_INA_CHUNK_MIN : most);
	*port = ntohs(from.sin_port);
	return NEZHA_OK;
}

uint16_t nezha_ina_window_wanted(const struct nezha_ina *ina, uint16_t chunk)
{
	int bytes = 0;
	socklen_t length = sizeof bytes;

	getsockopt(ina->direct.end.fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length);
	return WINDOW_MOST * chunk <= bytes ? WINDOW_MOST : WINDOW_LEAST;
}

int nezha_ina_open_group(struct nezha_ina *ina)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = ina->welcome.group,
	                             .sin_port = htons(ina->welcome.port) };
	struct sockaddr_in ours = { .sin_family = AF_INET };
	struct ip_mreqn membership = { .imr_multiaddr.s_addr = ina->welcome.group };
	socklen_t length = sizeof ours;
	int on = 1;

	if (getsockname(ina->direct.end.fd, (struct sockaddr *)&ours, &length) || make_socket(ina, &ina->group) != NEZHA_OK)
		return NEZHA_ERR_SYSTEM;
	membership.imr_address = ours.sin_addr;
	setsockopt(ina->group.end.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(ina->group.end.fd, (struct sockaddr *)&group, sizeof group) ||
	    setsockopt(ina->group.end.fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership)) {
		nezha_info("no multicast from the aggregator: %m");
		close_socket(&ina->group);
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

int nezha_ina_watch(struct nezha_ina *ina)
{
	int rc = nezha_engine_watch_input(ina->engine, &ina->direct.end);

	if (rc == NEZHA_OK && ina->group.end.fd >= 0)
		rc = nezha_engine_watch_input(ina->engine, &ina->group.end);
	return rc;
}

/* If the event loop cannot tell, the call's next look at it tries again. */
static void block(struct nezha_ina_socket *socket)
{
	if (!socket->full)
		socket->full = nezha_engine_want(socket->ina->engine, &socket->end, socket != socket->ina->hushed, true) == NEZHA_OK;
}

void nezha_ina_unblock(struct nezha_ina_socket *socket)
{
	socket->full = false;
	nezha_engine_want(socket->ina->engine, &socket->end, socket != socket->ina->hushed, false);
}

/* Results come by the group, or all to the direct one: where no group works, or the aggregator has found one to be dead.  Few packets come to
 * the other one, and events for them cost less than a look into it at each turn. */
void nezha_ina_hush(struct nezha_ina *ina, bool hushed)
{
	struct nezha_ina_socket *socket = ina->hushed;

	if (hushed == (socket != NULL))
		return;
	if (hushed) {
		socket = ina->group.came > ina->direct.came ? &ina->group : &ina->direct;
		ina->group.came = ina->direct.came = 0;
	}
	ina->hushed = hushed ? socket : NULL;
	nezha_engine_want(ina->engine, &socket->end, !hushed, socket->full);
}

bool nezha_ina_heard_beacon(struct nezha_ina *ina)
{
	struct nezha_ina_header header;
	char packet[sizeof header];
	ssize_t n;

	/* Anyone may send to a group: not more of it than a turn's worth. */
	for (int i = 0; i < MESSAGES_MOST && (n = recv(ina->group.end.fd, packet, sizeof packet, MSG_DONTWAIT)) >= 0; i++)
		if (nezha_ina_check_downward(packet, (size_t)n, &header) == NEZHA_OK && header.kind == NEZHA_INA_BEACON &&
		    header.token == ina->welcome.token)
			return true;
	return false;
}

/* ---- sending ---- */

struct nezha_ina_place nezha_ina_place(const struct nezha_ina *ina, uint32_t seq)
{
	uint32_t i = seq - ina->base, chunk = ina->welcome.chunk, left;
	struct nezha_ina_place place = { .exponents = i < ina->fixed.chunks };

	if (place.exponents)
		return nezha_ina_fixed_place(ina, i);
	i -= ina->fixed.chunks;
	place.block = ina->first + i / ina->per_block;
	place.offset = i % ina->per_block * chunk;
	left = nezha_call_length(&ina->team->call, place.block) - place.offset;
	place.length = left < chunk ? left : chunk;
	return place;
}

static enum nezha_type type_of(const struct nezha_ina *ina, const struct nezha_ina_place *place)
{
	return ina->fixed.on ? nezha_ina_fixed_type(ina, place) : ina->team->call.type;
}

static enum nezha_op op_of(const struct nezha_ina *ina, const struct nezha_ina_place *place)
{
	return ina->fixed.on ? nezha_ina_fixed_op(ina, place) : ina->team->call.reduction;
}

/* `room`: for the payload, where it does not lie in the vector. */
static void make_packet(const struct nezha_ina *ina, uint32_t seq, uint8_t flags, char *room, struct nezha_ina_header *header,
                        struct iovec parts[2])
{
	const struct nezha_call *call = &ina->team->call;
	struct nezha_ina_place place = nezha_ina_place(ina, seq);
	const char *data = room;

	if (ina->fixed.on)
		nezha_ina_fixed_fill(ina, &place, room);
	else
		data = call->sendbuf + nezha_grid_offset(&call->grid, place.block) + place.offset;
	*header = (struct nezha_ina_header){
		.magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_DATA, .flags = flags,
		.type = (uint8_t)type_of(ina, &place), .op = (uint8_t)op_of(ina, &place), .token = ina->used, .seq = seq, .call = call->op,
		.block = place.block, .length = (uint16_t)place.length, .rank = (uint16_t)ina->team->rank,
	};
	parts[0] = (struct iovec){ header, sizeof *header };
	parts[1] = (struct iovec){ (void *)data, place.length };
}

/* NEZHA_INPROGRESS: no room. */
static int send_parts(struct nezha_ina *ina, struct iovec *parts, size_t count, uint16_t segment)
{
	if (nezha_ina_send_run(ina->direct.end.fd, NULL, parts, count, segment) >= 0)
		return NEZHA_OK;
	if (errno == EAGAIN) {
		block(&ina->direct);
		return NEZHA_INPROGRESS;
	}
	if (segment && nezha_ina_only_singly(errno)) {
		ina->singly = true;
		return NEZHA_INPROGRESS;
	}
	return errno == ENOBUFS || errno == EINTR ? NEZHA_INPROGRESS : NEZHA_ERR_CLOSED;
}

/* Whether the chunk can be sent by now. */
static bool is_ready(const struct nezha_ina *ina, uint32_t seq)
{
	struct nezha_ina_place place;

	if (!ina->fixed.on)
		return true;
	place = nezha_ina_place(ina, seq);
	return nezha_ina_fixed_ready(ina, &place);
}

/* The payload of what has been added. */
static size_t payload_of(const struct nezha_ina_run *run)
{
	return run->bytes - (size_t)run->count * sizeof run->headers[0];
}

/* Chunks from `seq` on, `most` at most. */
static void make_run(struct nezha_ina *ina, uint32_t seq, uint32_t most, struct nezha_ina_run *run)
{
	nezha_ina_run_clear(run);
	for (uint32_t i = 0; i < most && is_ready(ina, seq + i); i++) {
		char *room = ina->fixed.on ? ina->fixed.buffer + payload_of(run) : NULL;
		struct nezha_ina_header header;
		struct iovec parts[2];

		make_packet(ina, seq + i, 0, room, &header, parts);
		if (!nezha_ina_run_add(run, &header, parts[1].iov_base))
			break;
	}
}

/* Sends up to `most` chunks for the first time.  NEZHA_INPROGRESS: none can be now. */
static int send_run(struct nezha_ina *ina, uint32_t most, uint64_t now)
{
	uint32_t seq = ina->window.next;
	struct nezha_ina_run run;
	uint16_t segment;
	int rc;

	make_run(ina, seq, ina->singly ? 1 : most, &run);
	if (!run.count)
		return NEZHA_INPROGRESS;
	segment = nezha_ina_run_order(&run);
	rc = send_parts(ina, run.parts, 2 * (size_t)run.count, segment);
	if (rc != NEZHA_OK)
		return rc;
	for (int i = 0; i < run.count; i++)
		nezha_ina_window_sent(&ina->window, seq + (uint32_t)i, now);
	nezha_ina_count_sent(ina, payload_of(&run));
	return NEZHA_OK;
}

int nezha_ina_send(struct nezha_ina *ina, uint64_t now)
{
	uint32_t most;
	int rc = NEZHA_OK;

	while (rc == NEZHA_OK && !ina->direct.full && (most = nezha_ina_window_room(&ina->window)))
		rc = send_run(ina, most, now);
	return rc < 0 ? rc : NEZHA_OK;
}

int nezha_ina_send_again(struct nezha_ina *ina, uint32_t seq, bool answer, uint64_t now)
{
	struct nezha_ina_header header;
	struct iovec parts[2];
	int rc;

	make_packet(ina, seq, answer ? NEZHA_INA_AGAIN : 0, ina->fixed.buffer, &header, parts);
	rc = send_parts(ina, parts, 2, 0);
	if (rc == NEZHA_OK) {
		nezha_ina_window_sent(&ina->window, seq, now);
		nezha_ina_count_sent(ina, header.length);
		nezha_ina_counters(ina)->bytes_resent += header.length;
	}
	return rc;
}

/* ---- receiving ---- */

static void take_result(struct nezha_ina *ina, const struct nezha_ina_header *header, const char *data, uint64_t now)
{
	const struct nezha_call *call = &ina->team->call;
	struct nezha_ina_place place;

	if (header->call != call->op || header->seq - ina->window.first >= ina->window.next - ina->window.first)
		return;
	place = nezha_ina_place(ina, header->seq);
	if (header->block != place.block || header->length != place.length ||
	    header->type != type_of(ina, &place) || header->op != op_of(ina, &place))
		return;
	if (nezha_ina_window_answered(&ina->window, header->seq, now))
		nezha_ina_result(ina, header->seq, data);
}

static void packet(struct nezha_ina *ina, const char *data, size_t size, uint64_t now)
{
	struct nezha_ina_header header;

	if (nezha_ina_check_downward(data, size, &header) != NEZHA_OK || header.token != ina->used)
		return;
	ina->silent = 0;
	if (header.kind == NEZHA_INA_RESULT && ina->open)
		take_result(ina, &header, data + sizeof header, now);
	else if (header.kind == NEZHA_INA_ALIVE && ina->open)
		nezha_ina_window_waits(&ina->window, header.seq);
}

/* Whoever reaches the group may send to it. */
static bool from_aggregator(const struct nezha_ina *ina, const struct sockaddr_in *from)
{
	const struct nezha_ina_address *where = nezha_ina_where(ina);

	return from->sin_addr.s_addr == where->address.s_addr && from->sin_port == htons(where->port);
}

static int receive_from(struct nezha_ina *ina, struct nezha_ina_socket *socket, uint64_t now)
{
	/* While packets do not rouse it, what is left now would wait for the next turn. */
	int most = socket == ina->hushed ? WINDOW_MOST : MESSAGES_MOST;

	for (int i = 0; i < most; i++) {
		union nezha_ina_control control;
		struct iovec buffer = { ina->scratch, NEZHA_INA_MESSAGE };
		struct sockaddr_in from = { .sin_family = AF_UNSPEC };
		struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &buffer,
		                          .msg_iovlen = 1, .msg_control = control.bytes,
		                          .msg_controllen = sizeof control.bytes };
		ssize_t n = recvmsg(socket->end.fd, &message, MSG_DONTWAIT);
		size_t segment;

		if (n < 0) {
			socket->unread = errno != EAGAIN;
			return errno == EAGAIN || errno == EINTR ? NEZHA_OK : NEZHA_ERR_CLOSED;
		}
		if (!from_aggregator(ina, &from))
			continue;
		socket->came += (uint64_t)n;
		segment = nezha_ina_run_segment(&message, (size_t)n);
		for (size_t at = 0; at < (size_t)n; at += segment)
			packet(ina, ina->scratch + at, (size_t)n - at < segment ? (size_t)n - at : segment, now);
	}
	return NEZHA_INPROGRESS;
}

/* Whether packets may be there. */
static bool has_some(const struct nezha_ina_socket *socket)
{
	return socket->unread || socket == socket->ina->hushed;
}

int nezha_ina_receive(struct nezha_ina *ina, uint64_t now)
{
	int rc = has_some(&ina->direct) ? receive_from(ina, &ina->direct, now) : NEZHA_OK;

	/* One of its errors may stand for an earlier packet; the next call tells whether it lasts. */
	if (rc >= 0 && ina->group.end.fd >= 0 && has_some(&ina->group))
		rc = receive_from(ina, &ina->group, now);
	return rc;
}
