/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/aggd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/aggd_state.h"
#include "rails/clock.h"
#include "rails/ina_run.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define BACKLOG 512
#define DATA_BUFFER (8 << 20)      /* bytes: all ranks of a session send their window at once */
#define DRAIN_LIMIT (10 * NEZHA_SEC)
#define TICK 1000                  /* ms */
#define TICK_BEACONS 5             /* ms, while groups are tried */

static int watch(struct nezha_aggd *aggd, struct aggd_end *end)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = end };

	return epoll_ctl(aggd->epoll, EPOLL_CTL_ADD, end->fd, &event);
}

/* Of the sockets of SOCK_DGRAM the first one gets all that comes, the sessions' get nothing. */
static int steer_to_first(int fd)
{
	struct sock_filter first = { BPF_RET | BPF_K, 0, 0, 0 };
	struct sock_fprog program = { 1, &first };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
}

int aggd_bound(struct nezha_aggd *aggd, int type)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = aggd->config.address,
	                               .sin_port = htons(aggd->config.port) };
	socklen_t length = sizeof address;
	int on = 1, fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	/* The first one finds a port if any will do. */
	setsockopt(fd, SOL_SOCKET, type == SOCK_STREAM ? SO_REUSEADDR : SO_REUSEPORT, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) || getsockname(fd, (struct sockaddr *)&address, &length)) {
		close(fd);
		return -1;
	}
	aggd->config.port = ntohs(address.sin_port);
	return fd;
}

bool aggd_tune_sender(const struct nezha_aggd *aggd, int fd)
{
	int bytes = DATA_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	return !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &aggd->config.address, sizeof aggd->config.address);
}

static void tune_data(struct nezha_aggd *aggd)
{
	int on = 1, bytes = DATA_BUFFER, fd = aggd->data.fd;

	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	if (!aggd_tune_sender(aggd, fd) && aggd->config.multicast) {
		nezha_warn("no multicast from this address: %m; results go to each rank%s",
		           aggd->config.devices ? ", and XDP is not used" : "");
		aggd->config.multicast = false;
	}
}

static const char *hint(int number)
{
	switch (number) {
	case EADDRNOTAVAIL:
		return "; allowed is an address of this host";
	case EADDRINUSE:
		return "; another program has it, maybe another nezha-aggd";
	case EACCES:
		return "; ports below 1024 are root's";
	default:
		return "";
	}
}

static int open_sockets(struct nezha_aggd *aggd)
{
	char address[INET_ADDRSTRLEN];

	aggd->listener = (struct aggd_end){ AGGD_END_LISTENER, aggd_bound(aggd, SOCK_STREAM) };
	if (aggd->listener.fd >= 0)
		aggd->data = (struct aggd_end){ AGGD_END_DATA, aggd_bound(aggd, SOCK_DGRAM) };
	if (aggd->listener.fd < 0 || aggd->data.fd < 0 || steer_to_first(aggd->data.fd) || listen(aggd->listener.fd, BACKLOG)) {
		nezha_error("cannot listen on %s port %u: %m%s",
		            inet_ntop(AF_INET, &aggd->config.address, address, sizeof address), aggd->config.port, hint(errno));
		return NEZHA_ERR_SYSTEM;
	}
	tune_data(aggd);
	aggd->epoll = epoll_create1(EPOLL_CLOEXEC);
	aggd->wake = (struct aggd_end){ AGGD_END_ORDERS, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (aggd->epoll < 0 || aggd->wake.fd < 0 || watch(aggd, &aggd->wake) || watch(aggd, &aggd->data) ||
	    watch(aggd, &aggd->listener)) {
		nezha_error("cannot wait for events: %m");
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

int nezha_aggd_create(const struct nezha_aggd_config *config, struct nezha_aggd **out)
{
	struct nezha_aggd *aggd = calloc(1, sizeof *aggd);
	int rc = NEZHA_ERR_NOMEM;

	if (!aggd)
		return rc;
	aggd->config = *config;
	aggd->budget.limit = config->memory;
	aggd->epoll = aggd->wake.fd = aggd->data.fd = aggd->listener.fd = -1;
	aggd->reserve = aggd_reserve();
	randombytes_buf(&aggd->epoch, sizeof aggd->epoch);
	/* Where two of them share a switch, each port gets what is sent to a group of its own only. */
	randombytes_buf(&aggd->groups, sizeof aggd->groups);
	rc = aggd_io_create(aggd);
	/* before it listens, which tells others that it is ready */
	if (rc == NEZHA_OK && config->devices)
		rc = aggd_offload_create(aggd);
	if (rc == NEZHA_OK)
		rc = open_sockets(aggd);
	if (rc != NEZHA_OK) {
		nezha_aggd_destroy(aggd);
		return rc;
	}
	*out = aggd;
	return NEZHA_OK;
}

static void close_end(struct aggd_end *end)
{
	if (end->fd >= 0)
		close(end->fd);
	end->fd = -1;
}

void nezha_aggd_destroy(struct nezha_aggd *aggd)
{
	if (!aggd)
		return;
	while (!LIST_EMPTY(&aggd->sessions))
		aggd_session_end(aggd, LIST_FIRST(&aggd->sessions), "the aggregator has ended");
	while (!LIST_EMPTY(&aggd->peers))
		aggd_peer_close(aggd, LIST_FIRST(&aggd->peers));
	close_end(&aggd->wake);
	close_end(&aggd->data);
	close_end(&aggd->listener);
	if (aggd->epoll >= 0)
		close(aggd->epoll);
	if (aggd->reserve >= 0)
		close(aggd->reserve);
	aggd_io_destroy(aggd->io);
	aggd_offload_destroy(aggd->offload);
	free(aggd);
}

uint16_t nezha_aggd_port(const struct nezha_aggd *aggd)
{
	return aggd->config.port;
}

void nezha_aggd_stats(const struct nezha_aggd *aggd, struct nezha_aggd_stats *out)
{
	*out = aggd->stats;
	aggd_offload_count(aggd, out);
}

void nezha_aggd_order(struct nezha_aggd *aggd, enum nezha_aggd_order order)
{
	uint64_t one = 1;

	atomic_fetch_or(&aggd->orders, order);
	(void)!write(aggd->wake.fd, &one, sizeof one);   /* it fails only if it was woken very often already */
}

static void report(const struct nezha_aggd *aggd)
{
	const struct aggd_session *session;
	struct nezha_aggd_stats stats, *s = &stats;
	int open = 0, offloaded = 0;

	nezha_aggd_stats(aggd, &stats);
	LIST_FOREACH(session, &aggd->sessions, entry) {
		open += session->ready;
		offloaded += session->offloaded;
	}
	printf("sessions %d now, %" PRIu64 " in all, %" PRIu64 " refused; memory %" PRIu64 " of %" PRIu64 " bytes\n"
	       "contributions %" PRIu64 ", %" PRIu64 " bytes; results %" PRIu64 "; again %" PRIu64 ", deferred %" PRIu64 "\n"
	       "dropped: garbage %" PRIu64 ", foreign %" PRIu64 ", outside %" PRIu64 "\n",
	       open, s->sessions, s->refused, aggd->budget.used, aggd->budget.limit, s->packets, s->bytes, s->results,
	       s->again, s->deferred, s->garbage, s->foreign, s->outside);
	if (aggd->offload)
		printf("of these by XDP: sessions %d now; contributions %" PRIu64 "; results %" PRIu64 "; again %" PRIu64
		       "; left to the daemon %" PRIu64 "\n", offloaded, s->xdp_packets, s->xdp_results, s->xdp_again,
		       s->xdp_passed);
	fflush(stdout);
}

static void drain(struct nezha_aggd *aggd)
{
	struct aggd_session *session, *next;

	aggd->draining = true;
	aggd->drain_until = nezha_now() + DRAIN_LIMIT;
	for (session = LIST_FIRST(&aggd->sessions); session; session = next) {
		next = LIST_NEXT(session, entry);
		if (!session->welcomed)
			aggd_session_end(aggd, session, "the aggregator is going down");
	}
}

/* false: it is to stop.  A second order to drain is one to stop. */
static bool obey(struct nezha_aggd *aggd)
{
	unsigned orders;
	uint64_t count;

	/* In this order: an order that comes in between wakes the loop again. */
	(void)!read(aggd->wake.fd, &count, sizeof count);
	orders = atomic_exchange(&aggd->orders, 0);
	if (orders & NEZHA_AGGD_REPORT)
		report(aggd);
	if (orders & NEZHA_AGGD_STOP || (orders & NEZHA_AGGD_DRAIN && aggd->draining))
		return false;
	if (orders & NEZHA_AGGD_DRAIN)
		drain(aggd);
	return true;
}

static bool dispatch(struct nezha_aggd *aggd, struct aggd_end *end)
{
	switch (end->kind) {
	case AGGD_END_ORDERS:
		return obey(aggd);
	case AGGD_END_DATA:
		aggd_receive(aggd);
		break;
	case AGGD_END_LISTENER:
		aggd_accept(aggd);
		break;
	case AGGD_END_PEER:
		aggd_peer_ready(aggd, (struct aggd_peer *)end);
		break;
	case AGGD_END_SESSION:
		aggd_send_ready(aggd, (struct aggd_session *)end);
		break;
	}
	return true;
}

static bool drained(const struct nezha_aggd *aggd, uint64_t now)
{
	return aggd->draining && (LIST_EMPTY(&aggd->sessions) || now > aggd->drain_until);
}

void nezha_aggd_run(struct nezha_aggd *aggd)
{
	struct epoll_event event;
	uint64_t ticked = 0;
	bool more = true;

	while (more) {
		/* One event at a time: serving a peer may end others, whose events would point nowhere. */
		int n = epoll_wait(aggd->epoll, &event, 1, aggd->waiting ? TICK_BEACONS : TICK);
		uint64_t now = nezha_now();

		if (n == 1)
			more = dispatch(aggd, event.data.ptr);
		else if (n < 0 && errno != EINTR)
			nezha_error("epoll_wait: %m");
		if (n != 1 || now - ticked > TICK_BEACONS * NEZHA_MSEC) {
			aggd_sessions_tick(aggd, now);
			aggd_peers_tick(aggd, now);
			ticked = nezha_now();           /* however long that took, packets get their turn in between */
		}
		more = more && !drained(aggd, now);
	}
}
