/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_run.h"

#include <errno.h>
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

void nezha_ina_run_clear(struct nezha_ina_run *run)
{
	run->count = run->shorter = 0;
	run->bytes = 0;
}

/* Whether a packet with so much payload can be added to those of the run, of which the one numbered `full` sets the length. */
static bool is_one_more(const struct nezha_ina_run *run, uint16_t length, int full)
{
	if (run->count == NEZHA_INA_RUN_MOST || run->bytes + sizeof run->headers[0] + length > NEZHA_INA_RUN_BYTES)
		return false;
	if (length == run->headers[full].length)
		return true;
	return !run->shorter && (length < run->headers[full].length || run->count == 1);
}

bool nezha_ina_run_add(struct nezha_ina_run *run, const struct nezha_ina_header *header, const void *payload)
{
	int full = run->shorter == 1, n = run->count;

	if (n && !is_one_more(run, header->length, full))
		return false;
	if (n && header->length != run->headers[full].length)
		run->shorter = header->length < run->headers[full].length ? n + 1 : 1;
	run->headers[n] = *header;
	run->parts[2 * n] = (struct iovec){ &run->headers[n], sizeof *header };
	run->parts[2 * n + 1] = (struct iovec){ (void *)payload, header->length };
	run->bytes += sizeof *header + header->length;
	run->count++;
	return true;
}

uint16_t nezha_ina_run_order(struct nezha_ina_run *run)
{
	int last = run->count - 1, shorter = run->shorter - 1;

	if (run->shorter) {
		struct nezha_ina_header header = run->headers[shorter];
		struct iovec payload = run->parts[2 * shorter + 1];

		run->headers[shorter] = run->headers[last];
		run->parts[2 * shorter + 1] = run->parts[2 * last + 1];
		run->headers[last] = header;
		run->parts[2 * last + 1] = payload;
		run->shorter = run->count;
	}
	return run->count > 1 ? (uint16_t)(sizeof run->headers[0] + run->headers[0].length) : 0;
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
