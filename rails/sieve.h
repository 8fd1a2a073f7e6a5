/* SPDX-License-Identifier: BSD-3-Clause
 * A crowd is kept out by the kernel: while there is one, a listening socket takes packets of known hosts only, and others cost
 * neither a connection nor a turn of the service thread.  Pure, but for the socket that is told. */
#ifndef NEZHA_RAILS_SIEVE_H
#define NEZHA_RAILS_SIEVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_SIEVE_MOST 512     /* addresses: what the kernel takes for a socket without being asked for more */

/* The listening IPv4 socket, and what is accepted from it, lets only packets from these addresses (network byte order) in.  False: it lets
 * all in, for there are too many addresses, or none, or the kernel will not (errno). */
bool nezha_sieve_set(int fd, const uint32_t *addresses, size_t count);

/* The socket lets all in again. */
void nezha_sieve_lift(int fd);

#endif
