/* SPDX-License-Identifier: BSD-3-Clause
 * A fault to preload: what TCP never sees.  FLIP=RANK,EVERY: on that rank one bit of each EVERY-th piece of a payload that
 * is read from rail 0 of the lab (10.77.0.0/24) is changed. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define RECORD 40               /* bytes of a record of Nezha's (rails/wire.h) */

static unsigned every;          /* 0: another rank's fault */

__attribute__((constructor)) static void begin(void)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
	const char *fault = getenv("FLIP");
	int which;

	if (!rank || !fault || sscanf(fault, "%d,%u", &which, &every) != 2 || which != atoi(rank))
		every = 0;
}

static int is_on_rail(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);

	return !getsockname(fd, (struct sockaddr *)&name, &length) && name.sin_family == AF_INET &&
	       ntohl(name.sin_addr.s_addr) >> 8 == (10u << 16 | 77u << 8);
}

ssize_t readv(int fd, const struct iovec *iov, int parts)
{
	static unsigned seen;
	ssize_t n = syscall(SYS_readv, fd, iov, parts);
	size_t length;

	if (n <= 0 || !every || (parts < 2 && iov[0].iov_len <= RECORD) || !is_on_rail(fd) || ++seen % every)
		return n;
	length = (size_t)n < iov[0].iov_len ? (size_t)n : iov[0].iov_len;
	((unsigned char *)iov[0].iov_base)[seen * 40503u % length] ^= (unsigned char)(1u << seen / every % 8);
	return n;
}
