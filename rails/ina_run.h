/* SPDX-License-Identifier: BSD-3-Clause
 * Runs of UDP packets that pass the kernel with one system call: UDP_SEGMENT when they are sent, UDP_GRO when they come
 * (udp(7)).  Of a run all packets are of one length, but for the last. */
#ifndef NEZHA_RAILS_INA_RUN_H
#define NEZHA_RAILS_INA_RUN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

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
