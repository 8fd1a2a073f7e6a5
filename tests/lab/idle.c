// SPDX-License-Identifier: BSD-3-Clause
/*
 * idle.c - preload for a lab with more ranks than cores: a rank that polls in vain lets go of its core.
 *
 * MPI ranks poll their sockets with a zero time limit for ever.  Where they share cores, a rank's wait then
 * lasts another's scheduler slice, and what is measured is the scheduler.  Here a thread whose last
 * LAB_IDLE_SPIN polls (default 20 for each set of descriptors that it polls) all found nothing sleeps until
 * one of these sets has something, for LAB_IDLE_MS milliseconds at most (default 1).  The limit bounds the
 * harm of what is not seen here; still, it is only for ranks to which all comes through sockets: one rank on
 * each node.
 *
 * Every set that was polled lately counts, not only the one polled last: a rank may wait for several
 * libraries' sockets.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum {
	MAX_SETS = 16,
	MAX_WATCHED = 256,	/* descriptors in all sets together */
	RECENT = 4,		/* polled lately: within this many rounds over all sets */
	TIGHT_NS = 200000,	/* polls further apart are not waiting in vain, but a look now and then */
};

/* What a thread polls: an epoll descriptor, or an array of poll(), which is known by its address. */
struct set {
	const void *array;	/* NULL: epoll */
	int epoll;
	unsigned round;		/* number of the vain poll that saw it last */
	nfds_t count;
	struct pollfd fds[MAX_WATCHED];
};

struct idler {
	unsigned vain;		/* polls in a row that found nothing */
	struct timespec last;	/* when the last one did */
	int sets;
	struct set set[MAX_SETS];
};

static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static unsigned spin = 20;
static int limit_ms = 1;
static __thread struct idler *idler;

static int number(const char *name, int fallback)
{
	const char *text = getenv(name);
	int value = text ? atoi(text) : 0;

	return value > 0 ? value : fallback;
}

__attribute__((constructor)) static void find_real(void)
{
	if (real_epoll_wait)
		return;
	spin = number("LAB_IDLE_SPIN", 20);
	limit_ms = number("LAB_IDLE_MS", 1);
	*(void **)&real_poll = dlsym(RTLD_NEXT, "poll");
	*(void **)&real_epoll_wait = dlsym(RTLD_NEXT, "epoll_wait");
}

/* The set that is polled now, or NULL where there are too many. */
static struct set *set_find(const void *array, int epoll)
{
	struct set *set, *oldest = NULL;
	int i;

	for (i = 0; i < idler->sets; i++) {
		set = &idler->set[i];
		if (set->array == array && set->epoll == epoll)
			return set;
		if (!oldest || set->round < oldest->round)
			oldest = set;
	}
	if (idler->sets < MAX_SETS)
		oldest = &idler->set[idler->sets++];
	oldest->array = array;
	oldest->epoll = epoll;
	return oldest;
}

static int set_is_recent(const struct set *set)
{
	return idler->vain - set->round <= RECENT * (unsigned)idler->sets;
}

static void something_came(void)
{
	if (idler) {
		idler->vain = 0;
		idler->sets = 0;
	}
}

static void sleep_on_sets(void)
{
	struct pollfd fds[MAX_WATCHED];
	nfds_t n = 0;
	int i;

	for (i = 0; i < idler->sets; i++) {
		const struct set *set = &idler->set[i];

		if (!set_is_recent(set) || n + set->count > MAX_WATCHED)
			continue;
		memcpy(fds + n, set->fds, set->count * sizeof(*fds));
		n += set->count;
	}
	/* or a descriptor was closed, which poll() reports at once: the sets are learnt anew */
	if (real_poll(fds, n, limit_ms) != 0)
		something_came();
}

/* Whether this poll comes right after the last one: a thread that does other work in between is not idle. */
static int is_tight(void)
{
	struct timespec now, last = idler->last;

	clock_gettime(CLOCK_MONOTONIC, &now);
	idler->last = now;
	return (now.tv_sec - last.tv_sec) * 1000000000L + now.tv_nsec - last.tv_nsec < TIGHT_NS;
}

/* One more poll found nothing; returns whether the thread slept, so that a look is worth while. */
static int in_vain(const void *array, int epoll, const struct pollfd *fds, nfds_t n)
{
	struct set *set;

	if (n > MAX_WATCHED || (!idler && !(idler = calloc(1, sizeof(*idler)))))
		return 0;
	if (!is_tight())
		something_came();
	idler->vain++;
	set = set_find(array, epoll);
	set->round = idler->vain;
	set->count = n;
	memcpy(set->fds, fds, n * sizeof(*fds));
	if (idler->vain < spin * idler->sets)
		return 0;
	sleep_on_sets();
	return 1;
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	int found;

	find_real();
	found = real_poll(fds, n, timeout);
	if (timeout != 0 || n == 0 || found < 0)
		return found;
	if (found == 0 && in_vain(fds, -1, fds, n))
		found = real_poll(fds, n, 0);
	if (found > 0)
		something_came();
	return found;
}

int epoll_wait(int epoll, struct epoll_event *events, int n, int timeout)
{
	struct pollfd self = { .fd = epoll, .events = POLLIN };
	int found;

	find_real();
	found = real_epoll_wait(epoll, events, n, timeout);
	if (timeout != 0 || found < 0)
		return found;
	if (found == 0 && in_vain(NULL, epoll, &self, 1))
		found = real_epoll_wait(epoll, events, n, 0);
	if (found > 0)
		something_came();
	return found;
}
