/* SPDX-License-Identifier: BSD-3-Clause
 * nezha_rail_counters: what a program without a link to Nezha learns about its rails.
 *   counters          under Nezha, with rails: before, during and after the job
 *   counters none     under Nezha, but no call goes to the rails: no rail is counted
 *   counters absent   without Nezha: there is no such function */
#include "tests/mpi/common.h"

#include <dlfcn.h>
#include <pthread.h>

#include "pmpi/nezha.h"

#define COUNT (1 << 20) /* floats: 4 MiB */
#define RAILS 8

static float in[COUNT], out[COUNT];
static nezha_rail_counters_fn *counters;
static atomic_bool reading;

static void reduce(void)
{
	MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < COUNT; i++)
		if (out[i] != (float)(world_size * (i % 97))) {
			fail("element %d is %g", i, (double)out[i]);
			break;
		}
}

/* This rank's bytes over all rails. */
static uint64_t sent(void)
{
	struct nezha_rail_counter rail[RAILS];
	size_t count = counters(rail, RAILS);
	uint64_t bytes = 0;

	if (count > RAILS)
		fail("%zu rails, at most %d were promised", count, RAILS);
	for (size_t i = 0; i < count && i < RAILS; i++)
		bytes += rail[i].bytes;
	return bytes;
}

/* Bytes that all ranks sent for one reduction; the same on all ranks. */
static uint64_t sent_by_all(void)
{
	uint64_t before = sent(), mine, all = 0;

	reduce();
	mine = sent() - before;
	MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return all;
}

/* What the ring needs: each block goes 2(N-1) hops.  More is only sent after a failure. */
static void expect_ring(const char *when)
{
	uint64_t need = 2 * (uint64_t)(world_size - 1) * sizeof(in), got = sent_by_all();

	if (got < need || got > need + need / 4)
		fail("%s: %llu bytes were sent over all rails, needed are %llu", when,
		     (unsigned long long)got, (unsigned long long)need);
}

static void check_names(void)
{
	struct nezha_rail_counter rail[RAILS], few[2];
	size_t count = counters(rail, RAILS);

	for (size_t i = 0; i < count && i < RAILS; i++) {
		if (!memchr(rail[i].device, 0, sizeof(rail[i].device)) || !rail[i].device[0] ||
		    !memchr(rail[i].subnet, 0, sizeof(rail[i].subnet)) || !strchr(rail[i].subnet, '/'))
			fail("rail %zu has no device and subnet", i);
		else if (world_rank == 0)
			printf("rail %s %s %llu\n", rail[i].device, rail[i].subnet,
			       (unsigned long long)rail[i].bytes);
	}
	memset(few, 0x5a, sizeof(few));
	if (counters(few, 1) != count || memcmp(&few[0], &rail[0], sizeof(few[0])))
		fail("with room for one rail the first one, and the number of all, is not told");
	if (few[1].bytes != 0x5a5a5a5a5a5a5a5a)
		fail("with room for one rail more than one was written");
	if (counters(NULL, 0) != count)
		fail("without room the number of rails is not told");
}

/* Reads while others send. */
static void *read_on(void *unused)
{
	uint64_t last = 0;

	while (reading) {
		uint64_t now = sent();

		if (now < last)
			fail("the counters went back from %llu to %llu", (unsigned long long)last,
			     (unsigned long long)now);
		last = now;
		usleep(200);
	}
	return unused;
}

static void check_rails(void)
{
	pthread_t reader;

	if (counters(NULL, 0))
		fail("there are %zu rails before the first call over them", counters(NULL, 0));
	expect_ring("the first call");
	reading = true;
	if (pthread_create(&reader, NULL, read_on, NULL)) {
		fail("no thread can be made");
		return;
	}
	for (int i = 0; i < 5; i++)
		expect_ring("with a reader");
	reading = false;
	pthread_join(reader, NULL);
	MPI_Pcontrol(0);
	if (sent_by_all())
		fail("switched off by MPI_Pcontrol(0), bytes were sent");
	MPI_Pcontrol(1);
	MPI_Pcontrol(2);
	if (!sent())
		fail("MPI_Pcontrol(2) reset the counters");
	expect_ring("switched on again");
	check_names();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void *self = dlopen(NULL, RTLD_LAZY);
	int status;

	counters = self ? (nezha_rail_counters_fn *)dlsym(self, NEZHA_RAIL_COUNTERS) : NULL;
	if (counters && counters(NULL, 0)) {
		fprintf(stderr, "FAILED: there are rails before MPI_Init\n");
		return 1;
	}
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	watch(120, "the reductions");
	for (int i = 0; i < COUNT; i++)
		in[i] = (float)(i % 97);
	if (!strcmp(how, "absent")) {
		reduce();
		if (counters)
			fail("%s is there without Nezha", NEZHA_RAIL_COUNTERS);
	} else if (!counters) {
		fail("%s is not there", NEZHA_RAIL_COUNTERS);
	} else if (!strcmp(how, "none")) {
		if (sent_by_all() || counters(NULL, 0))
			fail("rails are counted though no call went to them");
	} else {
		check_rails();
	}
	status = finish("counters");
	if (counters && counters(NULL, 0)) {
		fprintf(stderr, "rank %d: FAILED: there are rails after MPI_Finalize\n", world_rank);
		status = 1;
	}
	return status;
}
