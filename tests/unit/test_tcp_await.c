/* SPDX-License-Identifier: BSD-3-Clause
 * How much has to come over a TCP connection before the engine hears of it, and reads it (rails/await.c): a connection over loopback, a receiving
 * end on one side, the test on the other, which sends what the engine drops, probes. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "tuning/status.h"

#define LENGTH 65536u           /* bytes of a payload, the longest whose end the kernel waits for; */
#define LONG 300000u            /* of a long one, */
#define PIECE 65536u            /* which is read in such pieces */
#define PATIENCE 10000          /* ms */
#define RECORD (sizeof(struct nezha_wire))

static struct {
	struct nezha_engine engine;
	struct nezha_inlink inlink;
	struct nezha_inpath *inpath;
	int sender;
	char scratch[NEZHA_SCRATCH];
} world;

static const char zeros[LONG];

static int listen_on_loopback(struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_true(fd >= 0);
	assert_return_code(bind(fd, (struct sockaddr *)address, sizeof *address), errno);
	assert_return_code(listen(fd, 1), errno);
	assert_return_code(getsockname(fd, (struct sockaddr *)address, &length), errno);
	return fd;
}

static int open_connection(void **state)
{
	struct sockaddr_in address;
	int one = 1, listener = listen_on_loopback(&address);

	(void)state;
	memset(&world, 0, sizeof world);
	world.sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(connect(world.sender, (struct sockaddr *)&address, sizeof address), errno);
	assert_return_code(setsockopt(world.sender, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), errno);
	world.inpath = &world.inlink.paths[0];
	*world.inpath = (struct nezha_inpath){ .inlink = &world.inlink, .ops = &nezha_tcp_rail, .up = true, .scratch = world.scratch };
	nezha_await_begin(&world.inpath->await);
	world.inlink.engine = &world.engine;
	world.inpath->end.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(world.inpath->end.fd >= 0);
	close(listener);
	return 0;
}

static int close_connection(void **state)
{
	(void)state;
	close(world.sender);
	close(world.inpath->end.fd);
	return 0;
}

/* ---- what the test does ---- */

static int unread(void)
{
	int bytes = 0;

	assert_return_code(ioctl(world.inpath->end.fd, FIONREAD, &bytes), errno);
	return bytes;
}

/* Sends the bytes, and sees that they have come. */
static void put(const void *data, size_t size)
{
	int before = unread();

	assert_int_equal(send(world.sender, data, size, MSG_NOSIGNAL), size);
	for (int ms = 0; ms < PATIENCE && unread() < before + (int)size; ms++)
		usleep(1000);
	assert_int_equal(unread(), before + (int)size);
}

/* The first bytes of a record, which announces a payload of so many. */
static void put_record(size_t size, uint32_t length)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_PROBE, 0, 0);

	record.length = length;
	put(&record, size);
}

/* A record of a block, of a team that does not exist (any more), which may be left unread in such pieces. */
static void put_block(uint32_t length, uint32_t piece)
{
	struct nezha_wire record = nezha_wire_make(NEZHA_WIRE_PARTIAL, 1, 1);

	record.length = length;
	record.piece = piece;
	put(&record, sizeof record);
}

/* Reads as the engine does when it hears of the connection, as long as there may be more. */
static void read_on(void)
{
	int rc = NEZHA_INPROGRESS;

	for (int turn = 0; turn < 100 && rc == NEZHA_INPROGRESS; turn++)
		rc = nezha_tcp_rail.receive(world.inpath);
	assert_int_equal(rc, NEZHA_OK);
}

/* ... which is all that there is. */
static void take(void)
{
	read_on();
	assert_int_equal(unread(), 0);
}

/* ... which leaves so much unread. */
static void leave(int bytes)
{
	read_on();
	assert_int_equal(unread(), bytes);
}

static bool is_heard_of(int ms)
{
	struct pollfd fd = { .fd = world.inpath->end.fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

#define NOT_HEARD_OF() assert_false(is_heard_of(0))
#define HEARD_OF() assert_true(is_heard_of(PATIENCE))

/* A record and the first bytes of its payload, as many as a packet or two hold; then all but `left` bytes, in such packets. */
static void begin(size_t left)
{
	put_record(RECORD, LENGTH);
	for (size_t sent = 0; sent < LENGTH - left;) {
		size_t piece = LENGTH - left - sent < 16000 ? LENGTH - left - sent : 16000;

		put(zeros, piece);
		take();
		sent += piece;
	}
}

/* ---- tests ---- */

/* A packet of a payload is no news; the end of it is, and so is each byte of what comes next. */
static void test_until_the_end(void **state)
{
	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		begin(50000);
		put(zeros, 16000);
		NOT_HEARD_OF();
		put(zeros, 50000 - 16000 - 1);
		NOT_HEARD_OF();
		put(zeros, 1);
		HEARD_OF();
		take();
		assert_false(world.inpath->in_payload);
		put_record(1, LENGTH);
		HEARD_OF();
		take();
		world.inpath->record_have = 0;
	}
}

/* The last packet or two are taken in as they come. */
static void test_the_last_packet(void **state)
{
	(void)state;
	begin(40000);
	put(zeros, 1);
	HEARD_OF();
	take();
}

/* A payload and the next record read at once: what is left of the next payload counts. */
static void test_into_the_next(void **state)
{
	(void)state;
	begin(42000);
	assert_int_equal(world.inpath->await.awaited, 42000);
	put(zeros, 42000);
	put_record(RECORD, LENGTH);
	put(zeros, 1000);
	take();
	assert_true(world.inpath->in_payload);
	put(zeros, LENGTH - 1000 - 1);
	NOT_HEARD_OF();
	put(zeros, 1);
	HEARD_OF();
}

/* The same where nothing of the next payload has come yet, and that is a short one. */
static void test_up_to_the_next(void **state)
{
	(void)state;
	begin(50000);
	put(zeros, 50000);
	put_record(RECORD, 10);
	take();
	assert_true(world.inpath->in_payload);
	put(zeros, 10);
	HEARD_OF();
}

/* The end of the connection is heard of whatever is waited for. */
static void test_the_end_of_the_connection(void **state)
{
	(void)state;
	begin(50000);
	put(zeros, 10);
	NOT_HEARD_OF();
	assert_return_code(shutdown(world.sender, SHUT_WR), errno);
	HEARD_OF();
	take();
	assert_int_equal(nezha_tcp_rail.receive(world.inpath), NEZHA_ERR_CLOSED);
}

/* Where the kernel forgets to say so, it is read after a while. */
static void test_not_told(void **state)
{
	uint64_t now = nezha_now();

	(void)state;
	begin(50000);
	assert_false(nezha_await_is_over(&world.inpath->await, now));
	put(zeros, 20000);
	NOT_HEARD_OF();
	assert_true(nezha_await_is_over(&world.inpath->await, nezha_now() + NEZHA_SEC));
	take();
	assert_false(nezha_await_is_over(&world.inpath->await, now));
	put(zeros, 30000);
	HEARD_OF();
	take();
	assert_false(world.inpath->in_payload);
	assert_false(nezha_await_is_over(&world.inpath->await, nezha_now() + NEZHA_SEC));
}

/* ---- long blocks ---- */

/* What was left unread was left just now, however long the test has been kept from going on. */
static void leave_anew(int bytes)
{
	leave(bytes);
	world.inpath->await.until = nezha_now() + NEZHA_SEC;
}

/* A piece of it is left until it has come whole, and heard of with each packet: that is what makes the kernel acknowledge all of it at once. */
static void test_a_piece_at_a_time(void **state)
{
	(void)state;
	put_block(LONG, PIECE);
	take();
	for (unsigned done = 0; done + PIECE < LONG; done += PIECE) {
		put(zeros, 16000);
		HEARD_OF();
		leave_anew(16000);
		put(zeros, PIECE - 16000 - 1);
		leave_anew(PIECE - 1);
		put(zeros, 1);
		take();
	}
	/* The last piece, however short. */
	put(zeros, LONG % PIECE - 1);
	leave(LONG % PIECE - 1);
	put(zeros, 1);
	HEARD_OF();
	take();
	assert_false(world.inpath->in_payload);
}

/* Which the sender does not want: the kernel waits for 64 KiB, or the end. */
static void test_no_pieces(void **state)
{
	(void)state;
	put_block(PIECE + 50000, 0);
	put(zeros, 16000);
	take();
	put(zeros, PIECE - 1);
	NOT_HEARD_OF();
	put(zeros, 1);
	HEARD_OF();
	take();
	put(zeros, 50000 - 16000);
	HEARD_OF();
	take();
	assert_false(world.inpath->in_payload);
}

/* After a short one, for whose end the kernel waited, each packet of a long one is heard of. */
static void test_long_after_short(void **state)
{
	(void)state;
	begin(50000);
	put(zeros, 50000);
	put_block(LONG, PIECE);
	take();
	put(zeros, 16000);
	HEARD_OF();
	leave(16000);
	assert_int_equal(world.inpath->await.awaited, 1);
}

/* A piece that does not go on to come is read after a while, without an event: the peer may wait for our acknowledgement.  From then on
 * nothing is left of this block and of some others. */
static void test_not_for_ever(void **state)
{
	uint64_t now = nezha_now();

	(void)state;
	put_block(LONG, PIECE);
	put(zeros, 1000);
	leave_anew(1000);
	assert_false(nezha_await_is_over(&world.inpath->await, now));
	assert_true(nezha_await_is_over(&world.inpath->await, nezha_now() + 2 * NEZHA_SEC));
	put(zeros, 1000);
	world.inpath->await.until = nezha_now() - NEZHA_SEC;
	take();
	assert_false(nezha_await_is_over(&world.inpath->await, now));
	put(zeros, 20000);
	take();
	put(zeros, PIECE - 1);
	NOT_HEARD_OF();
	put(zeros, LONG - PIECE - 22000 + 1);
	take();
	/* The next one, */
	put_block(LONG, PIECE);
	put(zeros, 1000);
	take();
	put(zeros, LONG - 1000);
	take();
	/* and in the one after that it is as before; but if that fails, too, two are without. */
	put_block(LONG, PIECE);
	put(zeros, 1000);
	leave(1000);
	world.inpath->await.until = nezha_now() - NEZHA_SEC;
	take();
	assert_int_equal(world.inpath->await.without, 2);
}

/* Where the host does not let the kernel hold much, nothing is left. */
static void test_a_small_buffer(void **state)
{
	int small = 16384;

	(void)state;
	assert_return_code(setsockopt(world.inpath->end.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), errno);
	put_block(LONG, PIECE);
	take();
	put(zeros, 2000);
	take();
}

static void test_the_end_of_the_connection_in_a_long_one(void **state)
{
	(void)state;
	put_block(LONG, PIECE);
	put(zeros, 1000);
	leave(1000);
	assert_return_code(shutdown(world.sender, SHUT_WR), errno);
	world.inpath->ends = true;      /* as the event says */
	for (int turn = 0; turn < 2; turn++)
		if (nezha_tcp_rail.receive(world.inpath) == NEZHA_ERR_CLOSED)
			return;
	fail_msg("the end of the connection is not seen");
}

/* ---- the sender ---- */

static void test_what_a_sender_wants(void **state)
{
	uint64_t now = nezha_now();
	struct nezha_path path = {
		.estimator.rate = 125e6,
		.last = { .time = now, .window = 1 << 20 },
	};

	(void)state;
	assert_int_equal(nezha_await_piece(&path, LONG, now), PIECE);
	assert_int_equal(nezha_await_piece(&path, PIECE, now), 0);       /* short */
	assert_int_equal(nezha_await_piece(&path, PIECE + 4, now), PIECE);
	path.last.window = 100000;
	assert_int_equal(nezha_await_piece(&path, LONG, now), 50000);
	path.last.window = 14480;                                        /* that TCP begins with */
	assert_int_equal(nezha_await_piece(&path, LONG, now), 0);
	path.last.window = 1 << 20;
	path.estimator.rate = 12.5e6;                                    /* 100 Mbit/s: 2 ms */
	assert_int_equal(nezha_await_piece(&path, LONG, now), 25000);
	path.estimator.rate = 125e6;
	assert_int_equal(nezha_await_piece(&path, LONG, now + NEZHA_SEC), 0);    /* has sent nothing for long */
	path.last.recovering = true;
	assert_int_equal(nezha_await_piece(&path, LONG, now), 0);
	path.last = (struct nezha_path_sample){ .time = now };
	assert_int_equal(nezha_await_piece(&path, LONG, now), 0);        /* a transport that does not tell */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_until_the_end, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_the_last_packet, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_into_the_next, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_up_to_the_next, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_the_end_of_the_connection, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_not_told, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_a_piece_at_a_time, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_no_pieces, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_long_after_short, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_not_for_ever, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_a_small_buffer, open_connection, close_connection),
		cmocka_unit_test_setup_teardown(test_the_end_of_the_connection_in_a_long_one, open_connection, close_connection),
		cmocka_unit_test(test_what_a_sender_wants),
	};

	return cmocka_run_group_tests_name("tcp_await", tests, NULL, NULL);
}
