/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PIPE_MOST (1 << 20)             /* bytes that pipe-max-size allows any user, if nobody has changed it */
#define PIPE_LEAST (PIPE_MOST / 2)

void nezha_lender_close(struct nezha_lender *lender)
{
	if (!lender->open)
		return;
	close(lender->from);
	close(lender->to);
	lender->open = false;
}

/* A user may have so many large pipes (pipe-user-pages-soft), and shorter ones than the least do not pay.  Returns the pipe's bytes, or 0. */
static size_t widen(int pipe)
{
	for (int bytes = PIPE_MOST; bytes >= PIPE_LEAST; bytes /= 2)
		if (fcntl(pipe, F_SETPIPE_SZ, bytes) >= bytes)
			return (size_t)bytes;
	return 0;
}

static bool open_pipe(struct nezha_lender *lender)
{
	int ends[2];

	if (lender->refused)
		return false;
	if (lender->open)
		return true;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return false;
	lender->from = ends[0];
	lender->to = ends[1];
	lender->open = true;
	/* It holds pages, of which a piece may touch one more than it fills. */
	lender->piece = widen(lender->to) / 2;
	lender->refused = !lender->piece;
	if (lender->refused)
		nezha_lender_close(lender);
	return lender->open;
}

/* splice has no MSG_NOSIGNAL, and may have handed over some of it before it found the socket closed. */
static ssize_t splice_quietly(int from, int socket, size_t bytes, unsigned flags)
{
	static const struct timespec at_once;
	sigset_t pipe, before, pending;
	ssize_t n;
	int why;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	n = splice(from, NULL, socket, NULL, bytes, flags);
	why = errno;
	if (n < (ssize_t)bytes && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return n;
}

ssize_t nezha_lend(struct nezha_lender *lender, int socket, const void *payload, size_t bytes)
{
	struct iovec piece = { (void *)payload, bytes };
	ssize_t held, n;
	int why;

	if (!open_pipe(lender)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (bytes > lender->piece)
		piece.iov_len = lender->piece;
	held = vmsplice(lender->to, &piece, 1, SPLICE_F_NONBLOCK);
	if (held <= 0) {
		lender->refused = held < 0 && (errno == ENOSYS || errno == EPERM);
		errno = EOPNOTSUPP;
		return -1;
	}
	n = splice_quietly(lender->from, socket, (size_t)held, SPLICE_F_NONBLOCK | ((size_t)held < bytes ? SPLICE_F_MORE : 0));
	why = errno;
	/* What the socket has not taken must not lie before the next piece. */
	if (n < held)
		nezha_lender_close(lender);
	if (n == 0 || (n < 0 && (why == ENOSYS || why == EPERM || why == EINVAL))) {
		lender->refused = true;
		why = EOPNOTSUPP;
		n = -1;
	}
	errno = why;
	return n;
}
