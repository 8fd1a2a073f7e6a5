/* SPDX-License-Identifier: BSD-3-Clause
 * A libsharp_coll that needs no InfiniBand: the ranks reduce through a file in FAKE_SHARP_FOLDER (/dev/shm), in an order that is
 * not the ring's.  FAKE_SHARP says what becomes of it, the last two for rank 1 only unless said otherwise:
 *   good | refuses (init) | refuses-group (every rank) | hangs-init | wrong (first sum) | no-float | hangs-N (request N and later) */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rails/sharp_api.h"

#define DEPTH 16
#define RANKS 16
#define BYTES (512u << 10)

struct entry {
	_Atomic uint32_t come, gone;
	char data[RANKS][BYTES];
};

struct context {
	struct nezha_sharp_init with;
	struct entry *entries;
	uint64_t calls;
};

struct request {
	struct context *context;
	struct nezha_sharp_reduce what;
	uint64_t number;
};

const struct nezha_sharp_config sharp_coll_default_config = { .polls = 1000, .timeout_ms = -1 };

static const char *mode(void)
{
	const char *text = getenv("FAKE_SHARP");

	return text ? text : "good";
}

static int is(const char *wanted)
{
	return !strcmp(mode(), wanted);
}

int sharp_coll_init(struct nezha_sharp_init *with, void **out)
{
	struct context *context = calloc(1, sizeof *context);
	const char *folder = getenv("FAKE_SHARP_FOLDER");
	char path[4096], name[16] = "fake", *names = calloc(RANKS, sizeof name);
	int fd, rc = 0;

	if (is("refuses") && with->rank == 1)
		return -8;
	while (is("hangs-init") && with->rank == 1)
		pause();
	snprintf(path, sizeof path, "%s/fake-sharp-%016llx", folder ? folder : "/dev/shm", (unsigned long long)with->job);
	if (with->rank == 0)
		close(open(path, O_RDWR | O_CREAT | O_EXCL, 0600));
	/* All three, as the real one does. */
	rc |= with->outside.bcast(with->context, name, sizeof name, 0);
	rc |= with->outside.gather(with->context, 0, name, names, sizeof name);
	rc |= with->outside.barrier(with->context);
	if (rc)
		return -15;
	for (int k = 0; with->rank == 0 && k < with->ranks; k++)
		if (strcmp(names + k * (int)sizeof name, "fake"))
			return -15;
	fd = open(path, O_RDWR);
	if (fd < 0 || ftruncate(fd, DEPTH * (off_t)sizeof(struct entry)))
		return -9;
	context->entries = mmap(NULL, DEPTH * sizeof(struct entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (context->entries == MAP_FAILED || with->outside.barrier(with->context))
		return -15;
	if (with->rank == 0)
		unlink(path);
	context->with = *with;
	free(names);
	*out = context;
	return 0;
}

int sharp_coll_finalize(void *of)
{
	struct context *context = of;

	munmap(context->entries, DEPTH * sizeof(struct entry));
	free(context);
	return 0;
}

int sharp_coll_caps_query(void *of, struct nezha_sharp_caps *out)
{
	(void)of;
	out->version = 3;
	out->types = is("no-float") ? 0xfcf : 0xfff;
	out->operations = 0x3ff;
	return 0;
}

int sharp_coll_progress(void *of)
{
	(void)of;
	return 0;
}

int sharp_coll_comm_init(void *of, struct nezha_sharp_group *with, void **out)
{
	if (is("refuses-group"))
		return -7;
	(void)with;
	*out = of;
	return 0;
}

int sharp_coll_comm_destroy(void *group)
{
	(void)group;
	return 0;
}

int sharp_coll_reg_mr(void *of, void *at, size_t bytes, void **registration)
{
	(void)of;
	(void)bytes;
	*registration = at;
	return 0;
}

int sharp_coll_dereg_mr(void *of, void *registration)
{
	(void)of;
	(void)registration;
	return 0;
}

int sharp_coll_do_allreduce_nb(void *group, struct nezha_sharp_reduce *what, void **out)
{
	struct context *context = group;
	struct request *request = malloc(sizeof *request);
	struct entry *entry = &context->entries[context->calls % DEPTH];

	if (what->from.bytes > BYTES || !what->from.registration || !what->to.registration)
		return -10;
	*request = (struct request){ context, *what, context->calls++ };
	memcpy(entry->data[context->with.rank], what->from.at, what->from.bytes);
	atomic_fetch_add(&entry->come, 1);
	*out = request;
	return 0;
}

#define FOLD(type) do { \
	type *a = to; \
	const type *b = from; \
	for (size_t i = 0; i < n; i++) \
		a[i] = (type)(op == 0 ? (b[i] > a[i] ? b[i] : a[i]) : op == 1 ? (b[i] < a[i] ? b[i] : a[i]) : a[i] + b[i]); \
} while (0)

#define BITS(type) do { \
	type *a = to; \
	const type *b = from; \
	for (size_t i = 0; i < n; i++) \
		a[i] = (type)(op == 5 ? a[i] & b[i] : op == 7 ? a[i] | b[i] : a[i] ^ b[i]); \
} while (0)

static void fold_bits(void *to, const void *from, size_t n, int type, int op)
{
	if (type == 0 || type == 1)
		BITS(uint32_t);
	else if (type == 2 || type == 3)
		BITS(uint64_t);
	else if (type == 6 || type == 7)
		BITS(uint16_t);
	else
		BITS(uint8_t);
}

static void fold(void *to, const void *from, size_t n, int type, int op)
{
	if (op > 2) {
		fold_bits(to, from, n, type, op);
		return;
	}
	switch (type) {
	case 0: FOLD(uint32_t); break;
	case 1: if (op == 2) FOLD(uint32_t); else FOLD(int32_t); break;
	case 2: FOLD(uint64_t); break;
	case 3: if (op == 2) FOLD(uint64_t); else FOLD(int64_t); break;
	case 4: FOLD(float); break;
	case 5: FOLD(double); break;
	case 6: FOLD(uint16_t); break;
	case 7: FOLD(int16_t); break;
	case 10: FOLD(uint8_t); break;
	case 11: FOLD(int8_t); break;
	default: abort();
	}
}

int sharp_coll_req_test(void *of)
{
	struct request *request = of;
	struct context *context = request->context;
	struct entry *entry = &context->entries[request->number % DEPTH];
	uint32_t ranks = (uint32_t)context->with.ranks;
	char *to = request->what.to.at;

	if (!strncmp(mode(), "hangs-", 6) && context->with.rank == 1 && request->number >= strtoull(mode() + 6, NULL, 10))
		return 0;
	if (atomic_load(&entry->come) < ranks)
		return 0;
	memcpy(to, entry->data[ranks - 1], request->what.to.bytes);
	for (uint32_t k = ranks - 1; k-- > 0;)
		fold(to, entry->data[k], request->what.elements, request->what.type, request->what.operation);
	if (is("wrong") && context->with.rank == 1)
		to[4]++;
	if (atomic_fetch_add(&entry->gone, 1) + 1 == ranks) {
		atomic_store(&entry->gone, 0);
		atomic_store(&entry->come, 0);
	}
	return 1;
}

int sharp_coll_req_free(void *of)
{
	free(of);
	return 0;
}

const char *sharp_coll_strerror(int error)
{
	return error == -8 ? "Cannot connect to SHArPD" : error == -7 ? "Not able to join" : "Error";
}
