/* SPDX-License-Identifier: BSD-3-Clause
 * Payloads that go into a socket by reference (rails/lend.c).  The program's own vmsplice and splice stand before the C library's:
 * they fail when a test wants it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rails/lend.h"
#include "tests/unit/skip.h"

#define ROOM (2u << 20)

static int refuse_vmsplice, refuse_splice;      /* errno; 0: they work */
static long largest_pipe;        /* bytes that a pipe may be given */

ssize_t vmsplice(int fd, const struct iovec *iov, size_t count, unsigned flags)
{
	errno = refuse_vmsplice;
	return refuse_vmsplice ? -1 : syscall(SYS_vmsplice, fd, iov, count, flags);
}

ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes, unsigned flags)
{
	errno = refuse_splice;
	return refuse_splice ? -1 : syscall(SYS_splice, in, in_at, out, out_at, bytes, flags);
}

int fcntl(int fd, int command, ...)
{
	va_list more;
	long argument;

	va_start(more, command);
	argument = va_arg(more, long);
	va_end(more);
	errno = EPERM;
	return command == F_SETPIPE_SZ && argument > largest_pipe ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}

struct bed {
	struct nezha_lender lender;
	int out, in;            /* a TCP connection over loopback: `out` is nonblocking */
	unsigned char *sent, *got;
	size_t have;            /* bytes of `got` */
};

static int bed_make(void **state)
{
	struct bed *bed = calloc(1, sizeof *bed);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(bed);
	bed->out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(bed->out, (struct sockaddr *)&address, length), 0);
	bed->in = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(bed->in >= 0);
	assert_int_equal(fcntl(bed->out, F_SETFL, O_NONBLOCK), 0);
	close(listener);
	bed->sent = malloc(ROOM);
	bed->got = malloc(ROOM);
	assert_true(bed->sent && bed->got);
	for (size_t i = 0; i < ROOM; i++)
		bed->sent[i] = (unsigned char)(i * 2654435761u >> 11);
	refuse_vmsplice = refuse_splice = 0;
	largest_pipe = LONG_MAX;
	*state = bed;
	return 0;
}

static int bed_end(void **state)
{
	struct bed *bed = *state;

	nezha_lender_close(&bed->lender);
	close(bed->out);
	if (bed->in >= 0)
		close(bed->in);
	free(bed->sent);
	free(bed->got);
	free(bed);
	return 0;
}

static void drain(struct bed *bed)
{
	ssize_t n;

	while ((n = recv(bed->in, bed->got + bed->have, ROOM - bed->have, 0)) > 0)
		bed->have += (size_t)n;
	assert_true(n < 0 && errno == EAGAIN);
}

/* Lends [from, from + bytes), whatever the socket takes at a time; the other end has all of it then. */
static void pass(struct bed *bed, size_t from, size_t bytes)
{
	bed->have = 0;
	for (size_t at = 0; at < bytes;) {
		ssize_t n = nezha_lend(&bed->lender, bed->out, bed->sent + from + at, bytes - at);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		at += n > 0 ? (size_t)n : 0;
		drain(bed);
	}
	for (int i = 0; bed->have < bytes && i < 1000; i++) {
		usleep(1000);
		drain(bed);
	}
	assert_int_equal(bed->have, bytes);
	assert_memory_equal(bed->got, bed->sent + from, bytes);
}

static void test_bytes_arrive(void **state)
{
	static const size_t from[] = { 0, 1, 4095, 12345 }, bytes[] = { 1, 4096, NEZHA_LEND_LEAST, (256u << 10) + 1, 1u << 20 };

	for (size_t i = 0; i < sizeof from / sizeof *from; i++)
		for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++)
			pass(*state, from[i], bytes[k]);
}

/* A socket that is full takes nothing more, and what it did not take is not in the way of what goes next. */
static void test_full(void **state)
{
	struct bed *bed = *state;
	size_t taken = 0;
	ssize_t n;

	assert_int_equal(setsockopt(bed->out, SOL_SOCKET, SO_SNDBUF, &(int){ 100000 }, sizeof(int)), 0);
	while (taken < ROOM / 2 && (n = nezha_lend(&bed->lender, bed->out, bed->sent + taken, ROOM / 2 - taken)) > 0)
		taken += (size_t)n;
	if (taken == ROOM / 2)
		SKIP_DETAIL("a full socket: this host's buffers hold all");
	assert_true(n < 0 && errno == EAGAIN);
	assert_true(nezha_lend(&bed->lender, bed->out, bed->sent, 100) < 0 && errno == EAGAIN);
	for (int i = 0; bed->have < taken && i < 1000; i++) {
		usleep(1000);
		drain(bed);
	}
	assert_int_equal(bed->have, taken);
	assert_memory_equal(bed->got, bed->sent, taken);
	pass(bed, 77777, 1u << 20);
}

static void assert_copied(struct bed *bed)
{
	assert_true(nezha_lend(&bed->lender, bed->out, bed->sent, ROOM) < 0);
	assert_int_equal(errno, EOPNOTSUPP);
	drain(bed);
	assert_int_equal(bed->have, 0);
}

static void test_memory_that_cannot_be_lent(void **state)
{
	struct bed *bed = *state;
	void *hole = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(hole != MAP_FAILED);
	assert_true(nezha_lend(&bed->lender, bed->out, hole, ROOM) < 0);
	assert_int_equal(errno, EOPNOTSUPP);
	munmap(hole, ROOM);
	pass(bed, 0, ROOM / 2); /* other memory can */
}

/* Where it is forbidden, it is not tried again. */
static void test_forbidden(void **state)
{
	struct bed *bed = *state;

	refuse_vmsplice = EPERM;
	assert_copied(bed);
	refuse_vmsplice = 0;
	assert_copied(bed);
}

static void test_forbidden_half_way(void **state)
{
	struct bed *bed = *state;

	refuse_splice = EPERM;
	assert_copied(bed);
	refuse_splice = 0;
	assert_copied(bed);
}

/* Large pipes are refused to a user who has many: none is kept that is not. */
static void test_small_pipe(void **state)
{
	struct bed *bed = *state;

	largest_pipe = (512 << 10) - 1;
	assert_copied(bed);
	assert_false(bed->lender.open);
	largest_pipe = LONG_MAX;
	assert_copied(bed);
}

/* One of half the size is taken if the user has no room for a larger one. */
static void test_shorter_pipe(void **state)
{
	struct bed *bed = *state;

	largest_pipe = 512 << 10;
	pass(bed, 4095, 1u << 20);
	assert_int_equal(bed->lender.piece, 256 << 10);
	nezha_lender_close(&bed->lender);
	largest_pipe = LONG_MAX;
	pass(bed, 4095, 1u << 20);
	assert_int_equal(bed->lender.piece, 512 << 10);
}

static void test_no_descriptors(void **state)
{
	struct bed *bed = *state;
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_copied(bed);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	pass(bed, 0, ROOM / 2);
}

/* SIGPIPE would end this program, and does not stay pending either. */
static void test_peer_is_gone(void **state)
{
	struct bed *bed = *state;
	sigset_t pending;
	ssize_t n = 0;

	close(bed->in);
	bed->in = -1;
	for (int i = 0; i < 1000 && (n >= 0 || errno == EAGAIN); i++) {
		n = nezha_lend(&bed->lender, bed->out, bed->sent, ROOM);
		usleep(1000);
	}
	assert_true(n < 0 && (errno == EPIPE || errno == ECONNRESET));
	assert_true(nezha_lend(&bed->lender, bed->out, bed->sent, ROOM) < 0 && errno == EPIPE);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
}

/* One that the program has blocked, and waits for, is still there. */
static void test_pending_signal_stays(void **state)
{
	struct bed *bed = *state;
	sigset_t pipe, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, NULL);
	raise(SIGPIPE);
	close(bed->in);
	bed->in = -1;
	for (int i = 0; i < 1000; i++)
		if (nezha_lend(&bed->lender, bed->out, bed->sent, ROOM) < 0 && errno == EPIPE)
			break;
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGPIPE));
	sigtimedwait(&pipe, NULL, &(struct timespec){ 0 });
	sigprocmask(SIG_UNBLOCK, &pipe, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bytes_arrive),
		TEST(test_full),
		TEST(test_small_pipe),
		TEST(test_shorter_pipe),
		TEST(test_memory_that_cannot_be_lent),
		TEST(test_forbidden),
		TEST(test_forbidden_half_way),
		TEST(test_no_descriptors),
		TEST(test_peer_is_gone),
		TEST(test_pending_signal_stays),
	};

	return cmocka_run_group_tests_name("lend", tests, NULL, NULL);
}
