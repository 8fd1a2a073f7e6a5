/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation daemon in a thread, and ranks made up here: full ports, refused runs of packets, forged packets and
 * joins, ranks that never come, groups that die.  This program's own sendmsg, poll and clock_gettime stand before the C
 * library's. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rails/aggd.h"
#include "rails/ina_run.h"
#include "rails/ina_wire.h"
#include "rails/team.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define RANKS 2
#define FLOATS 128                       /* of a chunk */
#define CHUNK (FLOATS * 4)
#define WAIT 10                          /* s, for what must come */
#define WINDOW 16
#define LOOKED_AT 256                    /* results that the daemon looks at together, with such a window */

/* ---- before the C library ---- */

static pthread_t daemon_thread;
static atomic_bool running;
static atomic_int full, refused;         /* a session (its number + 1) whose members' ports are full; to which no runs go */
static atomic_int runs[2];               /* that went to a session's members */
static atomic_bool polled;               /* by the daemon */
static atomic_long ahead;                /* s, of the clock */
static atomic_int ports[2][RANKS];       /* of the sessions' members */
static atomic_int deaf;                  /* a bit for each rank that its session's group does not reach */
static atomic_int to_groups;             /* messages with results */

static int session_of(const struct sockaddr_in *to)
{
	for (int s = 0; to && s < 2; s++)
		for (int r = 0; r < RANKS; r++)
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
	atomic_fetch_add(&to_groups, 1);
	for (int r = 0; r < RANKS; r++) {
		member.sin_port = htons((uint16_t)atomic_load(&ports[0][r]));
		if (!(atomic_load(&deaf) >> r & 1) && syscall(SYS_sendmsg, fd, &copy, flags) < 0)
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
	if (session >= 0 && atomic_load(&full) == session + 1) {
		errno = EAGAIN;
		return -1;
	}
	if (session >= 0 && message->msg_controllen) {
		if (atomic_load(&refused) == session + 1) {
			errno = EMSGSIZE;
			return -1;
		}
		atomic_fetch_add(&runs[session], 1);
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000 };

	if (atomic_load(&running) && pthread_equal(pthread_self(), daemon_thread))
		atomic_store(&polled, true);
	return (int)syscall(SYS_ppoll, fds, count, timeout < 0 ? NULL : &limit, NULL, 0);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, out);

	out->tv_sec += atomic_load(&ahead);
	return rc;
}

/* ---- the daemon ---- */

static struct nezha_aggd *aggd;
static struct nezha_aggd_stats stats;
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
	atomic_store(&deaf, 0);
	atomic_store(&full, 0);
	atomic_store(&refused, 0);
	atomic_store(&polled, false);
	if (nezha_aggd_create(&config, &aggd) != NEZHA_OK || pthread_create(&daemon_thread, NULL, serve, aggd))
		return 1;
	atomic_store(&running, true);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_with(false);
}

static int start_grouped(void **state)
{
	(void)state;
	return start_with(true);
}

/* Ends the daemon; what it counted is in `stats`. */
static void stop(void)
{
	nezha_aggd_order(aggd, NEZHA_AGGD_STOP);
	pthread_join(daemon_thread, NULL);
	atomic_store(&running, false);
	nezha_aggd_stats(aggd, &stats);
	nezha_aggd_destroy(aggd);
}

/* ---- ranks ---- */

static const unsigned char key[NEZHA_KEY_BYTES] = "a job's key";

struct rank {
	int session, number, control, udp;
	uint64_t token;
};

static struct sockaddr_in daemon_address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                             .sin_port = htons(nezha_aggd_port(aggd)) };
}

static int connected(int type)
{
	struct sockaddr_in to = daemon_address();
	struct timeval limit = { WAIT, 0 };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static void hear(struct rank *rank, enum nezha_ina_record_kind kind, struct nezha_ina_record *out)
{
	assert_int_equal(recv(rank->control, out, sizeof *out, MSG_WAITALL), sizeof *out);
	assert_int_equal(out->kind, kind);
}

static struct rank join(int session, int number, const unsigned char *with)
{
	struct rank rank = { session, number, connected(SOCK_STREAM), connected(SOCK_DGRAM), 0 };
	struct sockaddr_in ours;
	socklen_t length = sizeof ours;
	struct nezha_ina_record challenge, record;

	getsockname(rank.udp, (struct sockaddr *)&ours, &length);
	atomic_store(&ports[session][number], ntohs(ours.sin_port));
	hear(&rank, NEZHA_INA_CHALLENGE, &challenge);
	nezha_ina_record_make(NEZHA_INA_JOIN, &record);
	record.join = (struct nezha_ina_join){ .ranks = RANKS, .rank = (uint16_t)number, .port = ntohs(ours.sin_port),
	                                       .chunk = CHUNK, .window = WINDOW };
	nezha_ina_prove(with, 77 + (uint64_t)session, challenge.nonce, &record.join);
	assert_int_equal(send(rank.control, &record, sizeof record, 0), sizeof record);
	return rank;
}

static void open_session(int session, struct rank ranks[RANKS])
{
	struct nezha_ina_record record;

	for (int r = 0; r < RANKS; r++)
		ranks[r] = join(session, r, key);
	for (int r = 0; r < RANKS; r++) {
		hear(&ranks[r], NEZHA_INA_WELCOME, &record);
		ranks[r].token = record.welcome.token;
		nezha_ina_record_make(NEZHA_INA_HEARD, &record);
		record.yes = grouped;
		assert_int_equal(send(ranks[r].control, &record, sizeof record, 0), sizeof record);
	}
	for (int r = 0; r < RANKS; r++) {
		hear(&ranks[r], NEZHA_INA_READY, &record);
		assert_int_equal(record.yes, grouped);
	}
}

static void leave(struct rank ranks[RANKS])
{
	for (int r = 0; r < RANKS; r++) {
		close(ranks[r].control);
		close(ranks[r].udp);
	}
}

struct packet {
	struct nezha_ina_header header;
	float data[FLOATS];
};

static struct packet contribution(const struct rank *rank, uint32_t seq)
{
	struct packet packet = { .header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_DATA,
	                                     .type = NEZHA_FLOAT32, .op = NEZHA_SUM, .token = rank->token, .seq = seq,
	                                     .block = seq, .length = CHUNK, .rank = (uint16_t)rank->number } };

	for (int i = 0; i < FLOATS; i++)
		packet.data[i] = (float)(1000 * rank->session + 100 * (int)seq + rank->number + i);
	return packet;
}

/* Chunks [from, to) as one run of packets, which comes to the daemon as one. */
static void contribute(const struct rank *rank, uint32_t from, uint32_t to)
{
	struct packet packets[16];
	struct iovec part = { packets, (to - from) * sizeof packets[0] };

	for (uint32_t seq = from; seq < to; seq++)
		packets[seq - from] = contribution(rank, seq);
	assert_int_equal(nezha_ina_send_run(rank->udp, NULL, &part, 1, to - from > 1 ? sizeof packets[0] : 0), part.iov_len);
}

static void check_result(const struct rank *rank, const struct packet *packet)
{
	struct rank other = { rank->session, 1 - rank->number, -1, -1, rank->token };
	struct packet mine = contribution(rank, packet->header.seq), theirs = contribution(&other, packet->header.seq);

	assert_int_equal(packet->header.kind, NEZHA_INA_RESULT);
	assert_true(packet->header.token == rank->token);
	for (int i = 0; i < FLOATS; i++)
		assert_true(packet->data[i] == mine.data[i] + theirs.data[i]);
}

/* The results of [from, to) come, in any order and each once. */
static void expect(const struct rank *rank, uint32_t from, uint32_t to)
{
	uint32_t seen = 0;

	for (uint32_t n = from; n < to; n++) {
		struct packet packet;

		assert_int_equal(recv(rank->udp, &packet, sizeof packet, 0), sizeof packet);
		assert_true(packet.header.seq >= from && packet.header.seq < to);
		assert_false(seen >> (packet.header.seq - from) & 1);
		seen |= 1u << (packet.header.seq - from);
		check_result(rank, &packet);
	}
}

static void expect_nothing(const struct rank *rank)
{
	char byte;

	assert_int_equal(recv(rank->udp, &byte, 1, MSG_DONTWAIT), -1);
}

static void exchange(const struct rank ranks[RANKS], uint32_t from, uint32_t to)
{
	for (int r = 0; r < RANKS; r++)
		contribute(&ranks[r], from, to);
	for (int r = 0; r < RANKS; r++)
		expect(&ranks[r], from, to);
}

/* ---- tests ---- */

static void test_full_port(void **state)
{
	struct rank slow[RANKS], other[RANKS];

	(void)state;
	open_session(0, slow);
	open_session(1, other);
	exchange(slow, 0, 2);
	atomic_store(&full, 1);
	contribute(&slow[0], 2, 10);
	contribute(&slow[1], 2, 10);
	for (uint32_t seq = 0; seq < 8; seq++)
		exchange(other, seq, seq + 1);
	for (int r = 0; r < RANKS; r++)
		expect_nothing(&slow[r]);
	atomic_store(&full, 0);
	for (int r = 0; r < RANKS; r++)
		expect(&slow[r], 2, 10);         /* though nobody has asked again */
	exchange(slow, 10, 12);
	leave(slow);
	leave(other);
	stop();
	assert_int_equal(stats.deferred, 8 * RANKS);
	assert_int_equal(stats.again, 0);
	assert_false(atomic_load(&polled));      /* it waits nowhere but in its loop */
}

static void test_ends_in_debt(void **state)
{
	struct rank ranks[RANKS];

	(void)state;
	open_session(0, ranks);
	atomic_store(&full, 1);
	contribute(&ranks[0], 0, 8);
	contribute(&ranks[1], 0, 8);
	leave(ranks);
	atomic_store(&full, 0);
	open_session(0, ranks);
	exchange(ranks, 0, 8);
	leave(ranks);
	stop();
}

static void test_refused_runs(void **state)
{
	struct rank narrow[RANKS], other[RANKS];
	int before;

	(void)state;
	open_session(0, narrow);
	open_session(1, other);
	atomic_store(&refused, 1);
	exchange(narrow, 0, 8);
	exchange(narrow, 8, 16);
	before = atomic_load(&runs[1]);
	exchange(other, 0, 8);
	assert_true(atomic_load(&runs[1]) > before);      /* the other session's still go in runs */
	/* a new session begins anew */
	leave(narrow);
	atomic_store(&refused, 0);
	open_session(0, narrow);
	before = atomic_load(&runs[0]);
	exchange(narrow, 0, 8);
	assert_true(atomic_load(&runs[0]) > before);
	leave(narrow);
	leave(other);
	stop();
	assert_int_equal(stats.again, 0);
}

static void forge(int fd, struct packet packet)
{
	memset(packet.data, 0x7f, sizeof packet.data);
	assert_int_equal(send(fd, &packet, sizeof packet, 0), sizeof packet);
}

/* Packets of the right form, wrong in one thing each. */
static void test_forged_packets(void **state)
{
	struct rank ranks[RANKS], other[RANKS];
	struct packet packet;
	int stranger;

	(void)state;
	open_session(0, ranks);
	open_session(1, other);
	stranger = connected(SOCK_DGRAM);
	forge(stranger, contribution(&ranks[0], 0));      /* the token, but another port */
	packet = contribution(&ranks[0], 0);
	packet.header.token ^= 1;
	forge(ranks[0].udp, packet);                      /* no such token */
	packet = contribution(&ranks[0], 0);
	packet.header.token = other[0].token;
	forge(ranks[0].udp, packet);                      /* another job's */
	forge(ranks[0].udp, contribution(&ranks[1], 0));  /* another rank's place */
	packet = contribution(&ranks[0], 0);
	packet.header.rank = NEZHA_INA_RANKS_MAX - 1;
	forge(ranks[0].udp, packet);                      /* a rank that there is not */
	packet = contribution(&ranks[0], 0);
	packet.header.kind = NEZHA_INA_RESULT;
	forge(ranks[0].udp, packet);                      /* no rank says that */
	packet = contribution(&ranks[0], 100);
	forge(ranks[0].udp, packet);                      /* a chunk far ahead */
	exchange(ranks, 0, 8);
	exchange(other, 0, 8);
	expect_nothing(&ranks[0]);
	expect_nothing(&other[0]);
	close(stranger);
	leave(ranks);
	leave(other);
	stop();
	assert_int_equal(stats.foreign, 5);
	assert_int_equal(stats.garbage, 1);
	assert_int_equal(stats.outside, 1);
	assert_int_equal(stats.results, 16);
}

/* A join without the team's key, or with the proof of another nonce, neither enters a session nor ends one. */
static void test_forged_joins(void **state)
{
	static const unsigned char other_key[NEZHA_KEY_BYTES] = "another job's key";
	struct rank ranks[RANKS], stranger;
	struct nezha_ina_record record;
	char byte;

	(void)state;
	open_session(0, ranks);
	for (int k = 0; k < 2; k++) {
		unsigned char nonce[NEZHA_INA_NONCE_BYTES] = { 0 };

		stranger = (struct rank){ 0, 0, connected(SOCK_STREAM), -1, 0 };
		hear(&stranger, NEZHA_INA_CHALLENGE, &record);
		memcpy(nonce, record.nonce, k ? sizeof nonce : 0);
		nezha_ina_record_make(NEZHA_INA_JOIN, &record);
		record.join = (struct nezha_ina_join){ .ranks = RANKS, .rank = 0, .port = 4791, .chunk = CHUNK, .window = 16 };
		nezha_ina_prove(k ? other_key : key, 77, nonce, &record.join);
		if (k) {
			/* the team's public key with another one's signature */
			struct nezha_ina_join right = record.join;

			nezha_ina_prove(key, 77, nonce, &right);
			memcpy(record.join.team, right.team, sizeof right.team);
		}
		assert_int_equal(send(stranger.control, &record, sizeof record, 0), sizeof record);
		assert_int_equal(recv(stranger.control, &byte, 1, 0), 0);
		close(stranger.control);
	}
	exchange(ranks, 0, 4);
	leave(ranks);
	stop();
	assert_int_equal(stats.garbage, 2);
	assert_int_equal(stats.sessions, 1);
}

/* Ranks wait for each other, but not for ever: those that are there are told, and may come again. */
static void test_forming_limit(void **state)
{
	struct rank before, alone, ranks[RANKS];
	struct nezha_ina_record record;

	(void)state;
	/* It joins twice: the daemon closes the first connection when it takes the second one's place.  A clock that goes on
	 * earlier would be that of the session's beginning, too. */
	before = join(0, 0, key);
	alone = join(0, 0, key);
	assert_int_equal(recv(before.control, &record, 1, 0), 0);
	close(before.control);
	close(before.udp);
	atomic_fetch_add(&ahead, 11);
	hear(&alone, NEZHA_INA_OVER, &record);
	assert_string_equal(record.text, "not all ranks have come in time");
	assert_int_equal(recv(alone.control, &record, 1, 0), 0);
	close(alone.control);
	close(alone.udp);
	open_session(0, ranks);
	exchange(ranks, 0, 2);
	leave(ranks);
	stop();
}

static void ask_again(const struct rank *rank, uint32_t from, uint32_t to)
{
	contribute(rank, from, to);
	expect(rank, from, to);
}

/* A window of chunks from `from` on, whose results come to rank 0 by the group or by asking.  Whether it has to ask. */
static bool exchange_deaf(const struct rank ranks[RANKS], uint32_t from)
{
	char byte;

	for (int r = 0; r < RANKS; r++)
		contribute(&ranks[r], from, from + WINDOW);
	/* What goes to each rank goes to rank 0 first. */
	expect(&ranks[1], from, from + WINDOW);
	if (recv(ranks[0].udp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
		expect(&ranks[0], from, from + WINDOW);
		return false;
	}
	ask_again(&ranks[0], from, from + WINDOW);
	return true;
}

static void check_way(const struct rank ranks[RANKS], uint32_t from, bool by_group)
{
	int before = atomic_load(&to_groups);

	exchange(ranks, from, from + WINDOW);
	assert_true((atomic_load(&to_groups) > before) == by_group);
}

/* Neither much loss nor a break, nor one who asks for a result many times, makes an end of the group. */
static void test_group_stays(void **state)
{
	struct rank ranks[RANKS];
	uint32_t seq = 0;

	(void)state;
	open_session(0, ranks);
	for (; seq < 4 * LOOKED_AT; seq += WINDOW) {
		exchange(ranks, seq, seq + WINDOW);
		for (int i = 0; i < 5; i++)      /* 5/4 of the results, but only a quarter of them */
			ask_again(&ranks[0], seq, seq + WINDOW / 4);
	}
	atomic_store(&deaf, 1);
	for (uint32_t end = seq + LOOKED_AT / 2; seq < end; seq += WINDOW)
		assert_true(exchange_deaf(ranks, seq));
	atomic_store(&deaf, 0);
	for (uint32_t end = seq + 2 * LOOKED_AT; seq < end; seq += WINDOW)
		exchange(ranks, seq, seq + WINDOW);
	check_way(ranks, seq, true);
	leave(ranks);
	stop();
}

/* A group that one rank no longer hears, after many results that it has got: soon they go to each rank, unasked. */
static void test_group_dies(void **state)
{
	struct rank ranks[RANKS];
	uint32_t seq = 0, died;

	(void)state;
	open_session(0, ranks);
	for (; seq < 16 * LOOKED_AT + 7 * WINDOW; seq += WINDOW)
		exchange(ranks, seq, seq + WINDOW);
	check_way(ranks, seq, true);
	died = seq += WINDOW;
	atomic_store(&deaf, 1);
	while (exchange_deaf(ranks, seq)) {
		seq += WINDOW;
		assert_true(seq - died < 2 * LOOKED_AT);
	}
	for (uint32_t end = seq + LOOKED_AT; seq < end;) {
		seq += WINDOW;
		check_way(ranks, seq, false);
	}
	leave(ranks);
	stop();
	assert_int_equal(stats.results, seq + WINDOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_full_port, start),
		cmocka_unit_test_setup(test_ends_in_debt, start),
		cmocka_unit_test_setup(test_refused_runs, start),
		cmocka_unit_test_setup(test_forged_packets, start),
		cmocka_unit_test_setup(test_forged_joins, start),
		cmocka_unit_test_setup(test_forming_limit, start),
		cmocka_unit_test_setup(test_group_stays, start_grouped),
		cmocka_unit_test_setup(test_group_dies, start_grouped),
	};

	if (sodium_init() < 0)
		return 1;
	nezha_log_open(NEZHA_LOG_ERROR, NULL, -1);
	return cmocka_run_group_tests_name("aggd", tests, NULL, NULL);
}
