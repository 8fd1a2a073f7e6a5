/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/aggd_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rails/ina_run.h"
#include "tuning/status.h"

#define WAIT 10                          /* s, for what must come */
#define ENDING 5000                      /* ms, for the daemon's end */

/* ---- before the C library ---- */

struct bed_network bed_network;
struct nezha_aggd_stats bed_stats;

static pthread_t daemon_thread;
static atomic_bool running;
static atomic_int ports[2][BED_RANKS];   /* of the sessions' members */

static int session_of(const struct sockaddr_in *to)
{
	for (int s = 0; to && s < 2; s++)
		for (int r = 0; r < BED_RANKS; r++)
			if (ntohs(to->sin_port) == atomic_load(&ports[s][r]))
				return s;
	return -1;
}

/* A switch: what goes to a group, which is session 0's, comes to its members' own ports.  Beacons, nobody waits for. */
static ssize_t send_to_group(int fd, const struct msghdr *message, int flags)
{
	const struct nezha_ina_header *first = message->msg_iov[0].iov_base;
	struct sockaddr_in member = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct msghdr copy = *message;
	ssize_t bytes = 0;

	copy.msg_name = &member;
	for (size_t i = 0; i < message->msg_iovlen; i++)
		bytes += (ssize_t)message->msg_iov[i].iov_len;
	if (first->kind != NEZHA_INA_RESULT)
		return bytes;
	atomic_fetch_add(&bed_network.to_groups, 1);
	for (int r = 0; r < BED_RANKS; r++) {
		member.sin_port = htons((uint16_t)atomic_load(&ports[0][r]));
		if (!(atomic_load(&bed_network.deaf) >> r & 1) && syscall(SYS_sendmsg, fd, &copy, flags) < 0)
			return -1;
	}
	return bytes;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	const struct sockaddr_in *to = message->msg_name;
	int session = session_of(to);

	if (to && IN_MULTICAST(ntohl(to->sin_addr.s_addr)))
		return send_to_group(fd, message, flags);
	if (session >= 0 && atomic_load(&bed_network.full) == session + 1) {
		errno = EAGAIN;
		return -1;
	}
	if (session >= 0 && message->msg_controllen) {
		if (atomic_load(&bed_network.refused) == session + 1) {
			errno = EMSGSIZE;
			return -1;
		}
		atomic_fetch_add(&bed_network.runs[session], 1);
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000 };

	if (atomic_load(&running) && pthread_equal(pthread_self(), daemon_thread))
		atomic_store(&bed_network.polled, true);
	return (int)syscall(SYS_ppoll, fds, count, timeout < 0 ? NULL : &limit, NULL, 0);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, out);

	out->tv_sec += atomic_load(&bed_network.ahead);
	return rc;
}

/* ---- the daemon ---- */

static struct nezha_aggd *aggd;
static bool grouped;                     /* results go to groups */

static void *serve(void *argument)
{
	nezha_aggd_run(argument);
	return NULL;
}

static int start_with(bool multicast)
{
	struct nezha_aggd_config config = { .address.s_addr = htonl(INADDR_LOOPBACK), .memory = 16 << 20,
	                                    .multicast = multicast };

	grouped = multicast;
	atomic_store(&bed_network.deaf, 0);
	atomic_store(&bed_network.full, 0);
	atomic_store(&bed_network.refused, 0);
	atomic_store(&bed_network.polled, false);
	if (nezha_aggd_create(&config, &aggd) != NEZHA_OK || pthread_create(&daemon_thread, NULL, serve, aggd))
		return 1;
	atomic_store(&running, true);
	return 0;
}

int bed_start(void **state)
{
	(void)state;
	return start_with(false);
}

int bed_start_grouped(void **state)
{
	(void)state;
	return start_with(true);
}

void bed_hold(void)
{
	nezha_aggd_order(aggd, NEZHA_AGGD_STOP);
	pthread_join(daemon_thread, NULL);
	atomic_store(&running, false);
}

void bed_go_on(void)
{
	assert_int_equal(pthread_create(&daemon_thread, NULL, serve, aggd), 0);
	atomic_store(&running, true);
}

static void free_daemon(void)
{
	nezha_aggd_stats(aggd, &bed_stats);
	nezha_aggd_destroy(aggd);
}

void bed_stop(void)
{
	bed_hold();
	free_daemon();
}

void bed_drain(void)
{
	nezha_aggd_order(aggd, NEZHA_AGGD_DRAIN);
}

bool bed_has_ended(void)
{
	/* Not by the time of day: a test may have moved it. */
	for (int i = 0; pthread_tryjoin_np(daemon_thread, NULL); i++) {
		if (i == ENDING)
			return false;
		usleep(1000);
	}
	atomic_store(&running, false);
	free_daemon();
	return true;
}

/* ---- ranks ---- */

const unsigned char bed_key[NEZHA_KEY_BYTES] = "a job's key";

uint64_t bed_name(int session)
{
	return 77 + (uint64_t)session;
}

static struct sockaddr_in daemon_address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                             .sin_port = htons(nezha_aggd_port(aggd)) };
}

int bed_connected(int type)
{
	struct sockaddr_in to = daemon_address();
	struct timeval limit = { WAIT, 0 };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

void bed_hear(const struct bed_rank *rank, enum nezha_ina_record_kind kind, struct nezha_ina_record *out)
{
	assert_int_equal(recv(rank->control, out, sizeof *out, MSG_WAITALL), sizeof *out);
	assert_int_equal(out->kind, kind);
}

struct bed_rank bed_join(int session, int number, const unsigned char *with)
{
	struct bed_rank rank = { session, number, bed_connected(SOCK_STREAM), bed_connected(SOCK_DGRAM), 0 };
	struct sockaddr_in ours;
	socklen_t length = sizeof ours;
	struct nezha_ina_record challenge, record;

	getsockname(rank.udp, (struct sockaddr *)&ours, &length);
	atomic_store(&ports[session][number], ntohs(ours.sin_port));
	bed_hear(&rank, NEZHA_INA_CHALLENGE, &challenge);
	nezha_ina_record_make(NEZHA_INA_JOIN, &record);
	record.join = (struct nezha_ina_join){ .ranks = BED_RANKS, .rank = (uint16_t)number, .port = ntohs(ours.sin_port),
	                                       .chunk = BED_CHUNK, .window = BED_WINDOW };
	nezha_ina_prove(with, bed_name(session), challenge.nonce, &record.join);
	assert_int_equal(send(rank.control, &record, sizeof record, 0), sizeof record);
	return rank;
}

void bed_open_session(int session, struct bed_rank ranks[BED_RANKS])
{
	struct nezha_ina_record record;

	for (int r = 0; r < BED_RANKS; r++)
		ranks[r] = bed_join(session, r, bed_key);
	for (int r = 0; r < BED_RANKS; r++) {
		bed_hear(&ranks[r], NEZHA_INA_WELCOME, &record);
		ranks[r].token = record.welcome.token;
		nezha_ina_record_make(NEZHA_INA_HEARD, &record);
		record.yes = grouped;
		assert_int_equal(send(ranks[r].control, &record, sizeof record, 0), sizeof record);
	}
	for (int r = 0; r < BED_RANKS; r++) {
		bed_hear(&ranks[r], NEZHA_INA_READY, &record);
		assert_int_equal(record.yes, grouped);
	}
}

void bed_leave(const struct bed_rank ranks[BED_RANKS])
{
	for (int r = 0; r < BED_RANKS; r++) {
		close(ranks[r].control);
		close(ranks[r].udp);
	}
}

struct bed_packet bed_contribution(const struct bed_rank *rank, uint32_t seq)
{
	struct bed_packet packet = { .header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_DATA,
	                                     .type = NEZHA_FLOAT32, .op = NEZHA_SUM, .token = rank->token, .seq = seq,
	                                     .block = seq, .length = BED_CHUNK, .rank = (uint16_t)rank->number } };

	for (int i = 0; i < BED_FLOATS; i++)
		packet.data[i] = (float)(1000 * rank->session + 100 * (int)seq + rank->number + i);
	return packet;
}

void bed_contribute(const struct bed_rank *rank, uint32_t from, uint32_t to)
{
	struct bed_packet packets[16];
	struct iovec part = { packets, (to - from) * sizeof packets[0] };

	for (uint32_t seq = from; seq < to; seq++)
		packets[seq - from] = bed_contribution(rank, seq);
	assert_int_equal(nezha_ina_send_run(rank->udp, NULL, &part, 1, to - from > 1 ? sizeof packets[0] : 0), part.iov_len);
}

static void check_result(const struct bed_rank *rank, const struct bed_packet *packet)
{
	struct bed_rank other = { rank->session, 1 - rank->number, -1, -1, rank->token };
	struct bed_packet mine = bed_contribution(rank, packet->header.seq);
	struct bed_packet theirs = bed_contribution(&other, packet->header.seq);

	assert_int_equal(packet->header.kind, NEZHA_INA_RESULT);
	assert_true(packet->header.token == rank->token);
	for (int i = 0; i < BED_FLOATS; i++)
		assert_true(packet->data[i] == mine.data[i] + theirs.data[i]);
}

void bed_expect(const struct bed_rank *rank, uint32_t from, uint32_t to)
{
	uint32_t seen = 0;

	for (uint32_t n = from; n < to; n++) {
		struct bed_packet packet;

		assert_int_equal(recv(rank->udp, &packet, sizeof packet, 0), sizeof packet);
		assert_true(packet.header.seq >= from && packet.header.seq < to);
		assert_false(seen >> (packet.header.seq - from) & 1);
		seen |= 1u << (packet.header.seq - from);
		check_result(rank, &packet);
	}
}

void bed_expect_nothing(const struct bed_rank *rank)
{
	char byte;

	assert_int_equal(recv(rank->udp, &byte, 1, MSG_DONTWAIT), -1);
}

void bed_exchange(const struct bed_rank ranks[BED_RANKS], uint32_t from, uint32_t to)
{
	for (int r = 0; r < BED_RANKS; r++)
		bed_contribute(&ranks[r], from, to);
	for (int r = 0; r < BED_RANKS; r++)
		bed_expect(&ranks[r], from, to);
}
