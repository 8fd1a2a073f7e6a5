/* SPDX-License-Identifier: BSD-3-Clause
 * Prints the rate of this machine's time stamp counter in kHz.  The guest has the same counter, but when it measures the
 * rate itself it is wrong by any factor if the host is busy, and all its clocks with it. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct sample {
	uint64_t ticks;
	int64_t ns;
};

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Both clocks at the same time: the least interrupted of some readings. */
static struct sample take(void)
{
	struct sample best = { 0, 0 };
	int64_t shortest = INT64_MAX;

	for (int i = 0; i < 50; i++) {
		int64_t before = now();
		uint64_t ticks = __rdtsc();
		int64_t after = now();

		if (after - before < shortest) {
			shortest = after - before;
			best = (struct sample){ ticks, before + (after - before) / 2 };
		}
	}
	return best;
}

int main(void)
{
	struct sample first = take(), second;

	nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	second = take();
	printf("%.0f\n", (double)(second.ticks - first.ticks) * 1e6 / (double)(second.ns - first.ns));
	return 0;
}
