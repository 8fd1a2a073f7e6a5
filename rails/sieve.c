/* SPDX-License-Identifier: BSD-3-Clause
 * A socket filter (Documentation/networking/filter.rst of Linux): on a listening socket it sees SYNs before anything is made of
 * them, and what ends a handshake. */
#include "rails/sieve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#define SOURCE 12               /* bytes into the IPv4 header */
#define ALL 0xffffffffu         /* bytes of a packet that pass */

bool nezha_sieve_set(int fd, const uint32_t *addresses, size_t count)
{
	struct sock_filter step[2 * NEZHA_SIEVE_MOST + 2];
	struct sock_fprog program = { .filter = step };
	int error = E2BIG;

	if (!count || count > NEZHA_SIEVE_MOST)
		goto failed;
	step[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + SOURCE);
	for (size_t i = 0; i < count; i++) {
		step[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(addresses[i]), 0, 1);
		step[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ALL);
	}
	step[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program))
		return true;
	error = errno;

failed:
	/* An older filter would keep out who is new. */
	nezha_sieve_lift(fd);
	errno = error;
	return false;
}

void nezha_sieve_lift(int fd)
{
	int none = 0;

	/* There may be none, which is as well. */
	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
}
