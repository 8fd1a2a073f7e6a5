/* SPDX-License-Identifier: BSD-3-Clause
 * Many calls over the verbs rail, each on buffers that were just mapped, most of them where others had lain before: results are
 * right, whatever a device may remember of addresses, and nothing grows, neither memory nor descriptors nor what is
 * registered.  The provider of fake_verbs.h keeps the pages of a region as a device does (fake_region.h), so a
 * registration that outlives its pages would send, or take in, the old ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/fake_region.h"
#include "tests/conformance/fake_verbs.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

#define RANKS 2
#define ROOM (512u << 10)       /* bytes of addresses for a vector */
#define GROWTH (1u << 20)       /* bytes that the process may grow by, such as pools of malloc */

/* clang tells it in another way than gcc. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CALLS 600               /* takes long, and the sanitizer's own memory grows */
#define SANITIZED true
#else
#define CALLS 10000
#define SANITIZED false
#endif

struct holdings {
	long bytes;             /* resident */
	int descriptors, regions;
	long registered;        /* regions that were ever made */
	uint64_t told;          /* registered bytes by rank 0's own account */
};

static long resident(void)
{
	long all = 0, pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &all, &pages), 2);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static bool connected(int descriptor)
{
	struct sockaddr_in peer;

	return !getpeername(descriptor, (struct sockaddr *)&peer, &(socklen_t){ sizeof peer }) && peer.sin_family == AF_INET;
}

/* All that the process has, or its connections alone. */
static int descriptors(bool connections)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.' && (!connections || connected(atoi(entry->d_name)));
	closedir(directory);
	return count;
}

/* The service thread makes a path's control connection some time after the path, which calls do not wait for. */
static bool all_connected(const struct member *member)
{
	(void)member;
	return descriptors(true) == 2 * 2 * RANKS;
}

/* All ranks, at a moment at which none is in a call. */
static void look(struct member *member, struct holdings *out)
{
	struct nezha_registered registered;

	world_barrier(member);
	if (member->rank == 0) {
		nezha_engine_registered(member->engine, &registered);
		*out = (struct holdings){
			.bytes = resident(), .descriptors = descriptors(false), .regions = fake_region_count(),
			.registered = fake_region_ever(), .told = registered.now,
		};
	}
	world_barrier(member);
}

/* New pages in the place of the old ones, shared ones (fake_region.h): laid over them, or after these were unmapped, when
 * somebody else may be quicker to map something there. */
static void remap(float **at, bool over)
{
	void *old = *at;

	if (old && !over)
		munmap(old, ROOM);
	*at = mmap(old, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | (old && over ? MAP_FIXED : 0), -1, 0);
	if (*at == MAP_FAILED)
		abort();
}

static float value(int rank, int i, uint32_t k)
{
	return (float)((i * 31 + (int)(k % 1021)) * (rank + 1));
}

static bool right(const float *sums, uint32_t count, int i)
{
	for (uint32_t k = 0; k < count; k++)
		if (sums[k] != value(0, i, k) + value(1, i, k))
			return false;
	return true;
}

struct buffers {
	float *sums, *values;
	int same;               /* how often `sums` lay where it had lain */
};

/* Call i: up to 400 KiB, with blocks of less and of more than one message. */
static bool one_call(struct member *member, struct buffers *buffers, int i)
{
	const uint32_t blocks[] = { 8192, 65536, 98304 };
	uint32_t count = 1000 + (uint32_t)i * 7919u % (i % 16 ? 12000u : 100000u);
	struct nezha_way way = { .block = blocks[i % 16 ? i % 3 : 2] };
	const float *before = buffers->sums;
	float *sums, *values;

	remap(&buffers->sums, i % 2);
	remap(&buffers->values, i / 2 % 2);
	buffers->same += buffers->sums == before;
	sums = buffers->sums;
	values = i % 3 ? buffers->values : sums;
	for (uint32_t k = 0; k < count; k++)
		values[k] = value(member->rank, i, k);
	return nezha_allreduce(member->team, values, sums, count, NEZHA_FLOAT32, NEZHA_SUM, &way) == NEZHA_OK &&
	       right(sums, count, i);
}

static void calls(struct member *member, void *argument)
{
	struct holdings *seen = argument;
	struct buffers buffers = { 0 };
	int wrong = 0;

	for (int i = 0; i < CALLS; i++) {
		if (i == CALLS / 10) {
			EXPECT(member, world_wait_until(member, all_connected));
			look(member, &seen[0]);
		}
		wrong += !one_call(member, &buffers, i);
	}
	look(member, &seen[1]);
	EXPECT(member, wrong == 0);
	EXPECT(member, buffers.same >= CALLS / 2 - 1);
	if (wrong)
		fprintf(stderr, "rank %d: %d of %d results are wrong\n", member->rank, wrong, CALLS);
	munmap(buffers.sums, ROOM);
	munmap(buffers.values, ROOM);
}

static void test_changing_buffers(void **state)
{
	struct holdings seen[2] = { 0 };

	(void)state;
	nezha_verbs_api_use(&fake_verbs);
	setenv("NEZHA_TEST_VERBS", "fake", 1);
	assert_int_equal(world_run(RANKS, 1, NEZHA_POLICY_ECF, calls, seen), 0);
	unsetenv("NEZHA_TEST_VERBS");
	assert_int_equal(fake_verbs_objects(), 0);
	assert_int_equal(fake_region_count(), 0);
	printf("%d calls: %+ld KiB resident, %+d descriptors, %d regions (%ld made), %llu bytes by rank 0\n", CALLS,
	       (seen[1].bytes - seen[0].bytes) / 1024, seen[1].descriptors - seen[0].descriptors, seen[1].regions,
	       seen[1].registered, (unsigned long long)seen[1].told);
	assert_true(SANITIZED || seen[1].bytes - seen[0].bytes < (long)GROWTH);
	assert_int_equal(seen[1].descriptors, seen[0].descriptors);
	/* One for each end of the two paths, and none for a vector. */
	assert_int_equal(seen[1].regions, 2 * RANKS);
	assert_int_equal(seen[1].registered, seen[0].registered);
	assert_true(seen[0].told > 0 && seen[1].told == seen[0].told);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_changing_buffers) };

	return cmocka_run_group_tests_name("verbs_memory", tests, NULL, NULL);
}
