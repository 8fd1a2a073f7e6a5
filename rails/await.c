/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/await.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "tuning/status.h"

#define MOST 65536u             /* bytes: no more than the cache takes well */
#define LEAST 40960u            /* bytes: less comes in a packet or two, and is better copied as it comes */
#define BUFFER (4 * MOST)       /* bytes that the kernel shall take in: the peer must not wait for a window while we wait for it */
#define TOO_LONG (8 * NEZHA_MSEC) /* 64 KiB take 5 ms at 100 Mbit/s */

void nezha_await_begin(struct nezha_await *await)
{
	*await = (struct nezha_await){ .awaited = 1 };
}

static size_t bytes_left(const struct nezha_inpath *inpath)
{
	return inpath->in_payload ? inpath->landing.length - inpath->landing.done : 0;
}

static bool is_long(const struct nezha_inpath *inpath)
{
	return inpath->in_payload && inpath->landing.length > MOST;
}

static bool ask_kernel(int fd, int bytes)
{
	return !setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

/* A kernel that is asked to wait for so many bytes makes the room for them, as far as the host lets it (tcp_rmem), and says how
 * far.  Returns the bytes of a piece, at least 1. */
static uint32_t make_buffer(struct nezha_inpath *inpath)
{
	int fd = inpath->end.fd, got = 0;
	socklen_t length = sizeof got;

	if (!ask_kernel(fd, BUFFER) || getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &got, &length) ||
	    !ask_kernel(fd, inpath->await.awaited) || got < 0)
		got = 0;
	return got < (int)(BUFFER / MOST) ? 1 : (uint32_t)got / (BUFFER / MOST);
}

bool nezha_await_is_over(const struct nezha_await *await, uint64_t now)
{
	return await->since && now >= await->since + TOO_LONG;
}

static bool set_awaited(struct nezha_inpath *inpath, int bytes)
{
	if (bytes == inpath->await.awaited)
		return true;
	inpath->await.awaited = bytes;
	return ask_kernel(inpath->end.fd, bytes);
}

/* Whether less than the long block's next piece has come. */
static bool is_short(struct nezha_inpath *inpath, size_t left, int *there)
{
	struct nezha_await *await = &inpath->await;

	if (!set_awaited(inpath, 1))
		return false;
	if (!await->late)
		await->late = make_buffer(inpath);
	return !ioctl(inpath->end.fd, SIOCINQ, there) && (size_t)*there < (left < await->late ? left : await->late);
}

bool nezha_await_leaves(struct nezha_inpath *inpath)
{
	struct nezha_await *await = &inpath->await;
	size_t left = bytes_left(inpath);
	int there = 0;

	if (!is_long(inpath) || left < LEAST || inpath->ends || nezha_await_is_over(await, nezha_now()) ||
	    !is_short(inpath, left, &there)) {
		await->since = 0;
		return false;
	}
	if (!await->since && there)
		await->since = nezha_now();
	return true;
}

int nezha_await(struct nezha_inpath *inpath)
{
	size_t left = bytes_left(inpath);

	return set_awaited(inpath, left < LEAST || is_long(inpath) ? 1 : (int)left) ? NEZHA_OK : NEZHA_ERR_CLOSED;
}
