/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/await.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "rails/clock.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "tuning/status.h"

#define MOST NEZHA_PIECE_MOST   /* bytes: no more than the cache takes well */
#define LEAST 40960u            /* bytes: less comes in a packet or two, and is better copied as it comes */
#define PIECE_LEAST 20480u      /* bytes: a shorter piece saves nothing */
#define PIECE_TIME 2e-3         /* s: a path on which nothing is acknowledged for longer is looked at for other reasons */
#define TOO_LONG (3 * NEZHA_MSEC)
#define MUCH_TOO_LONG (20 * NEZHA_MSEC)  /* where the kernel waits: it need not be watched, but where it forgets to wake us up */
#define FRESH (100 * NEZHA_MSEC) /* the kernel makes a path's window smaller when it has sent nothing for a timeout, 200 ms at least */
#define BUFFERED 4              /* pieces that the receive buffer shall hold */
#define WITHOUT_MOST 64         /* blocks */

/* ---- the sender ---- */

uint32_t nezha_await_piece(const struct nezha_path *path, uint32_t length, uint64_t now)
{
	const struct nezha_path_sample *last = &path->last;
	double piece = path->estimator.rate * PIECE_TIME;

	if (length <= MOST || last->recovering || now - last->time > FRESH)
		return 0;
	if (piece > last->window / 2)
		piece = last->window / 2;
	return piece < PIECE_LEAST ? 0 : piece > MOST ? MOST : (uint32_t)piece;
}

/* ---- the receiver ---- */

void nezha_await_begin(struct nezha_await *await)
{
	*await = (struct nezha_await){ .awaited = 1 };
}

static size_t bytes_left(const struct nezha_inpath *inpath)
{
	return inpath->in_payload ? inpath->landing.length - inpath->landing.done : 0;
}

static bool ask_kernel(int fd, int bytes)
{
	return !setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static bool set_awaited(struct nezha_inpath *inpath, int bytes)
{
	if (bytes == inpath->await.awaited)
		return true;
	if (!ask_kernel(inpath->end.fd, bytes))
		return false;
	inpath->await.awaited = bytes;
	return true;
}

/* A kernel that is asked to wait for so many bytes makes the room for them, as far as the host lets it (tcp_rmem), and says how
 * far.  Returns the bytes of a piece, at least 1. */
static uint32_t make_buffer(struct nezha_inpath *inpath)
{
	int got = 0;
	socklen_t length = sizeof got;

	if (!set_awaited(inpath, BUFFERED * MOST) || getsockopt(inpath->end.fd, SOL_SOCKET, SO_RCVLOWAT, &got, &length) ||
	    got < BUFFERED)
		return 1;
	return (uint32_t)got / BUFFERED;
}

void nezha_await_block(struct nezha_inpath *inpath)
{
	struct nezha_await *await = &inpath->await;

	if (!inpath->record.piece)
		return;
	if (!await->room)
		await->room = make_buffer(inpath);
	if (await->without || await->room < PIECE_LEAST) {
		inpath->record.piece = 0;
		await->without -= await->without > 0;
	} else if (inpath->record.piece > await->room) {
		inpath->record.piece = await->room;
	}
}

bool nezha_await_is_over(const struct nezha_await *await, uint64_t now)
{
	return await->until && now >= await->until;
}

/* The rest of the block, and some after it, are read without pieces: the sender may not be able to have so much
 * unacknowledged. */
static void give_up(struct nezha_inpath *inpath)
{
	struct nezha_await *await = &inpath->await;

	inpath->record.piece = 0;
	await->without = 1u << await->failed;
	if (await->without < WITHOUT_MOST)
		await->failed++;
}

bool nezha_await_leaves(struct nezha_inpath *inpath)
{
	struct nezha_await *await = &inpath->await;
	size_t left = bytes_left(inpath), piece = inpath->in_payload ? inpath->record.piece : 0;
	int there = 0;

	if (!piece || inpath->ends || !set_awaited(inpath, 1) || ioctl(inpath->end.fd, SIOCINQ, &there) ||
	    (size_t)there >= (left < piece ? left : piece)) {
		if (piece && left <= piece)
			await->failed = 0;
		await->until = 0;
		return false;
	}
	if (nezha_await_is_over(await, nezha_now())) {
		give_up(inpath);
		await->until = 0;
		return false;
	}
	if (!await->until && there)
		await->until = nezha_now() + TOO_LONG;
	return true;
}

int nezha_await(struct nezha_inpath *inpath)
{
	size_t left = bytes_left(inpath);
	int awaited = left < LEAST || inpath->record.piece ? 1 : left < MOST ? (int)left : (int)MOST;

	inpath->await.until = awaited > 1 ? nezha_now() + MUCH_TOO_LONG : 0;
	return set_awaited(inpath, awaited) ? NEZHA_OK : NEZHA_ERR_CLOSED;
}
