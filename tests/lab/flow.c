// SPDX-License-Identifier: BSD-3-Clause
/*
 * flow.c - one TCP connection between two nodes of the lab, to see what the network does.
 *
 *   flow receive ADDRESS PORT SECONDS       takes one connection to its end and prints
 *                                           "BYTES MBIT_PER_S CONGESTION_CONTROL"
 *   flow send ADDRESS PORT SECONDS BYTES    connects (again and again while refused), sends, and waits until
 *                                           all was taken
 *
 * Both end with status 1 after SECONDS at most.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[65536];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int fail(const char *what)
{
	fprintf(stderr, "flow: %s: %s\n", what, strerror(errno));
	return 1;
}

static int receive(const struct sockaddr_in *address)
{
	char name[32] = "?";
	socklen_t size = sizeof(name);
	long long total = 0;
	double start = 0;
	ssize_t n;
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) || listen(fd, 1))
		return fail("listen");
	fd = accept(fd, NULL, NULL);
	if (fd < 0)
		return fail("accept");
	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		if (total == 0)
			start = now();
		total += n;
	}
	if (n < 0)
		return fail("read");
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
	printf("%lld %.0f %s\n", total, total * 8e-6 / (now() - start), name);
	return 0;
}

static int send_all(const struct sockaddr_in *address, long long bytes)
{
	int fd;

	for (;;) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
			break;
		if (errno != ECONNREFUSED)
			return fail("connect");
		close(fd);
		usleep(10000);
	}
	while (bytes > 0) {
		size_t size = bytes < (long long)sizeof(buffer) ? (size_t)bytes : sizeof(buffer);
		ssize_t n = write(fd, buffer, size);

		if (n < 0)
			return fail("write");
		bytes -= n;
	}
	shutdown(fd, SHUT_WR);
	return read(fd, buffer, 1) == 0 ? 0 : fail("waiting for the other end");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	if (argc < 5 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) {
		fprintf(stderr, "usage: flow receive ADDRESS PORT SECONDS\n"
				"       flow send ADDRESS PORT SECONDS BYTES\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[3]));
	alarm(atoi(argv[4]));
	return argc > 5 ? send_all(&address, atoll(argv[5])) : receive(&address);
}
