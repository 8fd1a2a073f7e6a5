/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rails/clock.h"
#include "tuning/log.h"
#include "tuning/status.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u           /* linux/memfd.h, from 6.3 on */
#endif
#define CELL_MOST (64u << 10)
#define CELL_UNIT (4u << 10)
#define LENGTH_MOST (12u << 20)      /* bytes of cells; for NEZHA_NODE_RANKS_MAX counters take 4 MiB more */

/* The beginning of the mapping. */
struct head {
	char name[56];                   /* the offer's: this is the memory that was meant */
	uint32_t ranks, carriers, cell;
	alignas(NEZHA_NODE_LINE) _Atomic uint32_t failed;
	alignas(NEZHA_NODE_LINE) _Atomic uint64_t told;
	uint64_t note[NEZHA_NOTE_VALUES];
};

/* ---- layout ---- */

static size_t cells_of(int ranks, int carriers)
{
	return (size_t)ranks * NEZHA_NODE_IN + (size_t)carriers * NEZHA_NODE_OUT;
}

uint32_t nezha_node_cell(int ranks, int carriers)
{
	size_t cell;

	if (ranks > NEZHA_NODE_RANKS_MAX)
		return 0;
	cell = LENGTH_MOST / cells_of(ranks, carriers) / CELL_UNIT * CELL_UNIT;
	return cell > CELL_MOST ? CELL_MOST : cell < CELL_UNIT ? CELL_UNIT : (uint32_t)cell;
}

/* Sets where things lie (in numbers: there may be no base yet); returns the length. */
static size_t lay_out(struct nezha_node *node)
{
	size_t ranks = (size_t)node->ranks, carriers = (size_t)node->carriers;
	uintptr_t base = (uintptr_t)node->base, at = base;

	node->failed = (_Atomic uint32_t *)(at + offsetof(struct head, failed));
	node->told = (_Atomic uint64_t *)(at + offsetof(struct head, told));
	node->note = (uint64_t *)(at + offsetof(struct head, note));
	at += sizeof(struct head);
	node->rank = (struct nezha_node_rank *)at;
	at += ranks * sizeof *node->rank;
	node->folded = (struct nezha_node_count *)at;
	at += NEZHA_NODE_IN * sizeof *node->folded;
	node->out = (struct nezha_node_count *)at;
	at += carriers * sizeof *node->out;
	node->taken = (struct nezha_node_count *)at;
	at += ranks * carriers * sizeof *node->taken;
	at = (at + CELL_UNIT - 1) / CELL_UNIT * CELL_UNIT;
	node->in_data = (char *)at;
	node->out_data = (char *)(at + ranks * NEZHA_NODE_IN * node->cell);
	return at + cells_of(node->ranks, node->carriers) * node->cell - base;
}

size_t nezha_node_length(int ranks, int carriers, uint32_t cell)
{
	struct nezha_node node = { .ranks = ranks, .carriers = carriers, .cell = cell };

	return lay_out(&node);
}

/* ---- making and joining ---- */

static struct nezha_node *create(int ranks, int carriers, uint32_t cell, int local)
{
	struct nezha_node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	*node = (struct nezha_node){ .ranks = ranks, .carriers = carriers, .cell = cell, .local = local, .fd = -1 };
	node->length = nezha_node_length(ranks, carriers, cell);
	node->out_base = calloc((size_t)carriers, sizeof *node->out_base);
	node->collected = calloc((size_t)carriers, sizeof *node->collected);
	if (node->out_base && node->collected)
		return node;
	nezha_node_free(node);
	return NULL;
}

static int map(struct nezha_node *node, int fd)
{
	void *base = mmap(NULL, node->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED) {
		nezha_info("the ranks of a node cannot share memory: mmap: %m");
		return NEZHA_ERR_SYSTEM;
	}
	/* A forked child has no part in it, and must not keep it alive. */
	madvise(base, node->length, MADV_DONTFORK);
	node->base = base;
	lay_out(node);
	return NEZHA_OK;
}

static void come(struct nezha_node *node)
{
	atomic_store(&node->rank[node->local].pid, (int32_t)getpid());
}

static void draw_name(char *name, size_t len)
{
	unsigned char random[16];

	randombytes_buf(random, sizeof random);
	snprintf(name, len, "nezha-");
	sodium_bin2hex(name + strlen(name), len - strlen(name), random, sizeof random);
}

/* Some systems allow only what cannot be executed, older ones do not know the flag. */
static int create_memory(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd >= 0 ? fd : memfd_create(name, MFD_CLOEXEC);
}

/* Beyond the limit ftruncate would not only fail, but end the process (SIGXFSZ). */
static bool may_be_long(size_t length)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= length)
		return true;
	errno = EFBIG;
	return false;
}

/* The caller may want to say why. */
static void free_keeping_errno(struct nezha_node *node)
{
	int error = errno;

	nezha_node_free(node);
	errno = error;
}

int nezha_node_make(int ranks, int carriers, uint32_t cell, struct nezha_node_offer *offer, struct nezha_node **out)
{
	struct nezha_node *node = create(ranks, carriers, cell, 0);
	struct head *head;

	if (!node)
		return NEZHA_ERR_NOMEM;
	memset(offer, 0, sizeof *offer);
	draw_name(offer->name, sizeof offer->name);
	node->fd = create_memory(offer->name);
	if (node->fd < 0 || !may_be_long(node->length) || ftruncate(node->fd, (off_t)node->length)) {
		nezha_info("the ranks of a node cannot share memory: memfd: %m");
		goto failed;
	}
	if (map(node, node->fd) != NEZHA_OK)
		goto failed;
	head = (struct head *)node->base;
	memcpy(head->name, offer->name, sizeof head->name);
	head->ranks = (uint32_t)ranks;
	head->carriers = (uint32_t)carriers;
	head->cell = cell;
	come(node);
	offer->pid = (int32_t)getpid();
	offer->fd = node->fd;
	*out = node;
	return NEZHA_OK;

failed:
	free_keeping_errno(node);
	return NEZHA_ERR_SYSTEM;
}

/* Opens the maker's descriptor.  In another PID namespace the number may be another process's: so the name is looked at
 * before anything is opened. */
static int open_offered(const struct nezha_node_offer *offer)
{
	char path[64], target[128], wanted[80];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", offer->pid, offer->fd);
	snprintf(wanted, sizeof wanted, "/memfd:%.55s", offer->name);
	length = readlink(path, target, sizeof target - 1);
	if (length < 0) {
		nezha_info("the ranks of a node cannot share memory: %s: %m", path);
		return -1;
	}
	target[length] = '\0';
	if (strncmp(target, wanted, strlen(wanted))) {
		nezha_info("the ranks of a node cannot share memory: %s is %s, not %s (another PID namespace?)", path,
		           target, wanted);
		errno = ENOENT;
		return -1;
	}
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		nezha_info("the ranks of a node cannot share memory: %s: %m", path);
	return fd;
}

static bool is_meant(const struct nezha_node *node, const struct nezha_node_offer *offer)
{
	const struct head *head = (const struct head *)node->base;

	return !memcmp(head->name, offer->name, sizeof head->name) && head->ranks == (uint32_t)node->ranks &&
	       head->carriers == (uint32_t)node->carriers && head->cell == node->cell;
}

int nezha_node_join(const struct nezha_node_offer *offer, int ranks, int carriers, uint32_t cell, int local,
                    struct nezha_node **out)
{
	struct nezha_node *node = create(ranks, carriers, cell, local);
	int fd, status;

	if (!node)
		return NEZHA_ERR_NOMEM;
	status = NEZHA_ERR_SYSTEM;
	fd = open_offered(offer);
	/* What is shorter than it should be would be SIGBUS. */
	if (fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)node->length)
		status = map(node, fd);
	if (fd >= 0)
		close(fd);      /* errno stays */
	if (status == NEZHA_OK && !is_meant(node, offer)) {
		nezha_info("the ranks of a node cannot share memory: %.55s is another one's", offer->name);
		status = NEZHA_ERR_PROTOCOL;
	}
	if (status != NEZHA_OK) {
		free_keeping_errno(node);
		return status;
	}
	come(node);
	*out = node;
	return NEZHA_OK;
}

void nezha_node_seal(struct nezha_node *node)
{
	if (node->fd >= 0)
		close(node->fd);
	node->fd = -1;
}

void nezha_node_free(struct nezha_node *node)
{
	if (!node)
		return;
	nezha_node_seal(node);
	if (node->base)
		munmap(node->base, node->length);
	free(node->out_base);
	free(node->collected);
	free(node);
}

/* ---- sleeping and waking ---- */

/* Not the private futexes: the word is in several address spaces. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout)
{
	struct timespec t = { (time_t)(timeout / NEZHA_SEC), (long)(timeout % NEZHA_SEC) };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Both sides change `wants` by read-modify-writes, which have one order: if the waker does not see that the rank wants
 * something, the rank sees what the waker has stored before. */
void nezha_node_wake(struct nezha_node *node, int r, enum nezha_node_want what)
{
	struct nezha_node_rank *rank = &node->rank[r];

	if (!(atomic_fetch_or_explicit(&rank->wants, 0, memory_order_acq_rel) & (uint32_t)what))
		return;
	if (!atomic_exchange_explicit(&rank->wants, 0, memory_order_acq_rel))
		return;
	atomic_fetch_add_explicit(&rank->bell, 1, memory_order_release);
	futex_wake(&rank->bell);
}

void nezha_node_wake_all(struct nezha_node *node, enum nezha_node_want what)
{
	for (int r = 0; r < node->ranks; r++)
		if (r != node->local)
			nezha_node_wake(node, r, what);
}

uint32_t nezha_node_doze(struct nezha_node *node, uint32_t wants)
{
	struct nezha_node_rank *rank = &node->rank[node->local];
	uint32_t bell = atomic_load_explicit(&rank->bell, memory_order_acquire);

	atomic_exchange_explicit(&rank->wants, wants, memory_order_acq_rel);
	return bell;
}

void nezha_node_sleep(struct nezha_node *node, uint32_t bell, uint64_t timeout)
{
	struct nezha_node_rank *rank = &node->rank[node->local];

	if (timeout)
		futex_wait(&rank->bell, bell, timeout);
	atomic_exchange_explicit(&rank->wants, 0, memory_order_acq_rel);
}

/* ---- failure ---- */

void nezha_node_fail(struct nezha_node *node)
{
	atomic_store_explicit(node->failed, 1, memory_order_release);
	nezha_node_wake_all(node, NEZHA_NODE_WANT_SLOT | NEZHA_NODE_WANT_INPUT | NEZHA_NODE_WANT_RESULT |
	                    NEZHA_NODE_WANT_ROOM);
}

#ifndef SYS_pidfd_open                 /* headers older than the kernel may be */
#define SYS_pidfd_open 434
#endif

/* One that its parent has not waited for has a number still, but a pidfd tells that it has ended (from Linux 5.3 on). */
static bool has_ended(pid_t pid)
{
	struct pollfd end = { .events = POLLIN };
	bool ended;

	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (end.fd < 0)
		return errno == ESRCH || (errno != EMFILE && errno != ENFILE && kill(pid, 0) && errno == ESRCH);
	ended = poll(&end, 1, 0) == 1;
	close(end.fd);
	return ended;
}

int nezha_node_gone(const struct nezha_node *node)
{
	for (int r = 0; r < node->ranks; r++) {
		int32_t pid = atomic_load(&node->rank[r].pid);

		if (pid > 0 && has_ended(pid))
			return r;
	}
	return -1;
}
