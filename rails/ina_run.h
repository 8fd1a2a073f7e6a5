/* SPDX-License-Identifier: BSD-3-Clause
 * Runs of UDP packets that pass the kernel with one system call: UDP_SEGMENT when they are sent, UDP_GRO when they come
 * (udp(7)).  Of a run all packets are of one length, but for the last, which may be shorter. */
#ifndef NEZHA_RAILS_INA_RUN_H
#define NEZHA_RAILS_INA_RUN_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "rails/ina_wire.h"

#ifndef UDP_SEGMENT                   /* C libraries older than the kernel (glibc before 2.29, 2.30) */
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define NEZHA_INA_RUN_BYTES 16384     /* of a run: switches with shallow queues and shapers let no more pass whole */
#define NEZHA_INA_RUN_MOST 32         /* packets of a run */

/* A run that is put together; all zeros, or cleared: an empty one.  The rest of a block is shorter than its other chunks: it does not end the
 * run, but goes behind what is added after it, since by itself it would cost as much as a whole run. */
struct nezha_ina_run {
	struct nezha_ina_header headers[NEZHA_INA_RUN_MOST];
	struct iovec parts[2 * NEZHA_INA_RUN_MOST];  /* header, payload, ... */
	int count;
	int shorter;          /* 1 + number of the packet that is; 0: none yet */
	size_t bytes;         /* of all headers and payloads */
};

void nezha_ina_run_clear(struct nezha_ina_run *run);

/* Adds a packet; its payload is not copied.  false: it is for another run. */
bool nezha_ina_run_add(struct nezha_ina_run *run, const struct nezha_ina_header *header, const void *payload);

/* Before a run is sent: puts its packets into their order; they are numbered by it afterwards.  Bytes of a packet, 0: it
 * is a single one. */
uint16_t nezha_ina_run_order(struct nezha_ina_run *run);

/* Room for what the kernel says of a run; struct msghdr's msg_control. */
union nezha_ina_control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* As sendmsg without waiting.  segment: bytes of a packet, 0: it is a single one; to: NULL on a connected socket. */
ssize_t nezha_ina_send_run(int fd, const struct sockaddr_in *to, struct iovec *parts, size_t count, uint16_t segment);

/* Whether this errno of a run means that packets have to be sent one by one. */
bool nezha_ina_only_singly(int error);

/* Bytes of a packet of what was received: `size` if it is no run. */
size_t nezha_ina_run_segment(struct msghdr *message, size_t size);

#endif
