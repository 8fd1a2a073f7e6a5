/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_run.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

ssize_t nezha_ina_send_run(int fd, const struct sockaddr_in *to, struct iovec *parts, size_t count, uint16_t segment)
{
	union nezha_ina_control control = { .bytes = { 0 } };
	struct msghdr message = { .msg_name = (void *)to, .msg_namelen = to ? sizeof *to : 0, .msg_iov = parts,
	                          .msg_iovlen = count };

	if (segment) {
		struct cmsghdr *c;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof segment);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof segment);
		memcpy(CMSG_DATA(c), &segment, sizeof segment);
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool nezha_ina_only_singly(int error)
{
	return error == EIO || error == EMSGSIZE || error == EINVAL || error == ENOPROTOOPT;
}

size_t nezha_ina_run_segment(struct msghdr *message, size_t size)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			int segment;

			memcpy(&segment, CMSG_DATA(c), sizeof segment);
			return segment > 0 ? (size_t)segment : size;
		}
	return size;
}
