/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded into a daemon: the signal of the number AT_ONCE comes as soon as it listens, as from a script that waited for no more. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>

int listen(int fd, int backlog)
{
	int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
	int rc = next(fd, backlog);

	raise(atoi(getenv("AT_ONCE")));
	return rc;
}
