/* SPDX-License-Identifier: BSD-3-Clause
 * How a TCP path that is back opens its window (rails/tcp.c).  The program's own getsockopt, setsockopt and clock_gettime stand
 * before the C library's: whether this host lets this user have cubic does not matter, and time passes as a test wants it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/link.h"
#include "tuning/status.h"

#define RATE 60e6               /* bytes per second, of the path before it was lost */
#define MSS 1000u
#define MUCH (10u << 20)        /* bytes written, far more than greetings */

/* ---- before the C library ---- */

static struct {
	int fd;                 /* the path's socket, */
	char control[16];       /* ... its congestion control, */
	int changes;            /* ... and how often that was set */
	const char *refused;    /* what this user may not have; NULL: nothing */
	struct tcp_info info;
	uint64_t now;           /* ns */
} kernel;

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict length)
{
	if (level == IPPROTO_TCP && name == TCP_CONGESTION && fd == kernel.fd) {
		snprintf(value, *length, "%s", kernel.control);
		return 0;
	}
	if (level == IPPROTO_TCP && name == TCP_INFO && fd == kernel.fd) {
		memcpy(value, &kernel.info, *length < sizeof kernel.info ? *length : sizeof kernel.info);
		return 0;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	if (level != IPPROTO_TCP || name != TCP_CONGESTION)
		return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
	if (kernel.refused && strlen(kernel.refused) == length && !memcmp(kernel.refused, value, length)) {
		errno = EPERM;
		return -1;
	}
	if (fd == kernel.fd) {
		snprintf(kernel.control, sizeof kernel.control, "%.*s", (int)length, (const char *)value);
		kernel.changes++;
	}
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, out);
	*out = (struct timespec){ (time_t)(kernel.now / NEZHA_SEC), (long)(kernel.now % NEZHA_SEC) };
	return 0;
}

/* ---- a path ---- */

static struct nezha_path path;

/* A path of this rate that is back, on a host whose sockets begin with `control`. */
static void return_with(const char *control, double rate)
{
	kernel.now = 1000 * NEZHA_SEC;
	kernel.changes = 0;
	kernel.info = (struct tcp_info){ .tcpi_snd_mss = MSS, .tcpi_snd_cwnd = 10, .tcpi_ca_state = TCP_CA_Open };
	snprintf(kernel.control, sizeof kernel.control, "%s", control);
	path = (struct nezha_path){ .end.fd = kernel.fd, .estimator.rate = rate };
	nezha_tcp_rail.returned(&path);
}

/* So many ms later the path is looked at; by then it has written `written` bytes, and its window is `window` bytes. */
static void look(unsigned ms, uint64_t written, double window)
{
	struct nezha_path_sample sample;

	kernel.now += ms * NEZHA_MSEC;
	kernel.info.tcpi_snd_cwnd = (uint32_t)(window / MSS);
	path.written = written;
	assert_int_equal(nezha_tcp_rail.sample(&path, &sample), NEZHA_OK);
}

static int open_socket(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof kernel);
	kernel.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return kernel.fd < 0;
}

static int close_socket(void **state)
{
	(void)state;
	return close(kernel.fd);
}

/* ---- tests ---- */

/* It begins with reno, and goes on with cubic once its window holds some ms at the rate that it had. */
static void test_until_the_window_is_open(void **state)
{
	(void)state;
	return_with("cubic", RATE);
	assert_string_equal(kernel.control, "reno");
	look(1, MUCH, RATE * 0.2e-3);
	look(1, MUCH, RATE * 1e-3);
	assert_string_equal(kernel.control, "reno");
	look(1, MUCH, RATE * 20e-3);
	assert_string_equal(kernel.control, "cubic");
	/* That was it. */
	assert_int_equal(kernel.changes, 2);
	look(1, MUCH, RATE * 0.2e-3);
	look(2000, MUCH, RATE * 20e-3);
	assert_int_equal(kernel.changes, 2);
}

/* On a fast path some ms are more than a switch holds. */
static void test_not_until_a_switch_overflows(void **state)
{
	(void)state;
	return_with("cubic", 12.5e9);
	look(1, MUCH, 64 << 10);
	assert_string_equal(kernel.control, "reno");
	look(1, MUCH, 4 << 20);
	assert_string_equal(kernel.control, "cubic");
}

/* A window that does not open is cubic's, in the end; but time in which nothing is sent says nothing of it. */
static void test_in_the_end(void **state)
{
	(void)state;
	return_with("cubic", RATE);
	for (int i = 0; i < 100; i++)
		look(400, 200, 10 * MSS);
	assert_string_equal(kernel.control, "reno");
	look(10, MUCH, 10 * MSS);
	assert_string_equal(kernel.control, "reno");
	look(2000, MUCH, 10 * MSS);
	assert_string_equal(kernel.control, "cubic");
}

/* In the midst of a recovery it is not changed, however large the window, unless that does not end. */
static void test_not_in_a_recovery(void **state)
{
	(void)state;
	for (uint8_t ca_state = TCP_CA_Disorder; ca_state <= TCP_CA_Loss; ca_state++) {
		return_with("cubic", RATE);
		kernel.info.tcpi_ca_state = ca_state;
		look(1, MUCH, RATE * 20e-3);
		look(1, MUCH, RATE * 20e-3);
		assert_string_equal(kernel.control, "reno");
		kernel.info.tcpi_ca_state = TCP_CA_Open;
		look(1, MUCH, RATE * 20e-3);
		assert_string_equal(kernel.control, "cubic");
	}
	return_with("cubic", RATE);
	kernel.info.tcpi_ca_state = TCP_CA_Recovery;
	look(2000, MUCH, RATE * 20e-3);
	assert_string_equal(kernel.control, "cubic");
}

static void expect_left_alone(const char *control)
{
	return_with(control, RATE);
	look(1, MUCH, RATE * 20e-3);
	look(2000, MUCH, RATE * 20e-3);
	assert_string_equal(kernel.control, control);
	assert_int_equal(kernel.changes, 0);
}

/* What the host has chosen otherwise stays; so does cubic where the user could not have it back, or may not leave it. */
static void test_left_alone(void **state)
{
	(void)state;
	expect_left_alone("bbr");
	expect_left_alone("reno");
	kernel.refused = "cubic";
	expect_left_alone("cubic");
	kernel.refused = "reno";
	expect_left_alone("cubic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_until_the_window_is_open, open_socket, close_socket),
		cmocka_unit_test_setup_teardown(test_not_until_a_switch_overflows, open_socket, close_socket),
		cmocka_unit_test_setup_teardown(test_in_the_end, open_socket, close_socket),
		cmocka_unit_test_setup_teardown(test_not_in_a_recovery, open_socket, close_socket),
		cmocka_unit_test_setup_teardown(test_left_alone, open_socket, close_socket),
	};

	return cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
}
