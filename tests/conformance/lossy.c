/* SPDX-License-Identifier: BSD-3-Clause
 * A bad network around nezha-aggd, to be preloaded: LOSSY=LOSS[,TWICE[,LATE]], in per cent of the packets of each
 * direction that are lost, come twice, and come after the next one.  Runs that the kernel joins or cuts count by
 * packet. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BYTES 65536
#define MESSAGES 64

static int loss, twice, late;
static unsigned seed = 1;

static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static int (*real_recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("LOSSY");

	/* What starts it, ip above all, gets it preloaded, too. */
	if (text && !strcmp(program_invocation_short_name, "nezha-aggd"))
		(void)!sscanf(text, "%d,%d,%d", &loss, &twice, &late);
	real_sendmsg = (ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	real_recvmmsg = (int (*)(int, struct mmsghdr *, unsigned, int, struct timespec *))dlsym(RTLD_NEXT, "recvmmsg");
}

static int happens(int percent)
{
	return (int)(rand_r(&seed) / 7 % 100) < percent;
}

static size_t segment_of(const struct msghdr *message, size_t size)
{
	for (struct cmsghdr *c = message->msg_controllen ? CMSG_FIRSTHDR(message) : NULL; c;
	     c = CMSG_NXTHDR((struct msghdr *)message, c))
		if (c->cmsg_level == SOL_UDP && (c->cmsg_type == UDP_SEGMENT || c->cmsg_type == UDP_GRO)) {
			uint16_t segment;

			memcpy(&segment, CMSG_DATA(c), sizeof segment);
			return segment;
		}
	return size;
}

static size_t gather(const struct msghdr *message, char *out)
{
	size_t size = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		memcpy(out + size, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
		size += message->msg_iov[i].iov_len;
	}
	return size;
}

static void send_run(int fd, const struct msghdr *like, char *data, size_t size, size_t segment, int flags)
{
	struct iovec part = { data, size };
	struct msghdr message = { .msg_name = like->msg_name, .msg_namelen = like->msg_namelen, .msg_iov = &part,
	                          .msg_iovlen = 1 };

	if (size > segment) {
		message.msg_control = like->msg_control;
		message.msg_controllen = like->msg_controllen;
	}
	if (size)
		real_sendmsg(fd, &message, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	static char data[BYTES], apart[BYTES];
	size_t size = 0, segment, kept = 0, later = 0, again = 0;

	if (!loss && !twice && !late)
		return real_sendmsg(fd, message, flags);
	size = gather(message, data);
	segment = segment_of(message, size);
	for (size_t at = 0; at < size; at += segment) {
		size_t length = size - at < segment ? size - at : segment;

		if (happens(loss))
			continue;
		if (!later && length == segment && happens(late)) {
			memcpy(apart, data + at, length);
			later = length;
			continue;
		}
		again = happens(twice) ? length : again;
		memmove(data + kept, data + at, length);
		kept += length;
	}
	send_run(fd, message, data, kept, segment, flags);
	send_run(fd, message, apart, later, segment, flags);
	send_run(fd, message, data, again && kept >= segment ? segment : 0, segment, flags);
	return (ssize_t)size;
}

/* Takes packets out of a message that has come, or exchanges two of one length. */
static void spoil(struct mmsghdr *in)
{
	char *data = in->msg_hdr.msg_iov->iov_base, other[BYTES / 4];
	size_t size = in->msg_len, segment = segment_of(&in->msg_hdr, size), kept = 0;

	for (size_t at = 0; at < size; at += segment) {
		size_t length = size - at < segment ? size - at : segment;

		if (happens(loss))
			continue;
		memmove(data + kept, data + at, length);
		if (kept >= segment && length == segment && segment <= sizeof other && happens(late)) {
			memcpy(other, data + kept, segment);
			memcpy(data + kept, data + kept - segment, segment);
			memcpy(data + kept - segment, other, segment);
		}
		kept += length;
	}
	in->msg_len = (unsigned)kept;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	int n = real_recvmmsg(fd, messages, count, flags, timeout);

	for (int i = 0; i < n; i++)
		spoil(&messages[i]);
	return n;
}
