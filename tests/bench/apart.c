/* SPDX-License-Identifier: BSD-3-Clause
 * How far two processors are apart: the time that a cache line takes from one to the other.
 *
 *   apart
 *
 * Prints it in ns, the median of several series of there and back, for the first two processors that this process may use.
 * Of a virtual machine it changes when the host moves one of them to a core that has another last-level cache, and what ranks of a
 * node share costs more from then on.  Exit status 77 where there is one processor only (message on standard error). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERIES 21
#define ROUNDS 4000             /* of a series: 0.3 to 2 ms, so that one in which something else ran is the exception */

static _Alignas(128) atomic_int line;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Waits for each odd number, answers with the next even one. */
static void *answer(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < SERIES * ROUNDS; i++) {
		while (atomic_load(&line) != 2 * i + 1)
			;
		atomic_store(&line, 2 * i + 2);
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int pin(pthread_t thread, int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return pthread_setaffinity_np(thread, sizeof set, &set);
}

static int two_processors(int found[2])
{
	cpu_set_t set;
	int i, n = 0;

	if (sched_getaffinity(0, sizeof set, &set))
		return -1;
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			found[n++] = i;
	return n == 2 ? 0 : -1;
}

int main(void)
{
	double took[SERIES];
	int processors[2], i, k, rc;
	pthread_t other;

	if (two_processors(processors)) {
		fprintf(stderr, "apart: there is one processor only\n");
		return 77;
	}
	rc = pthread_create(&other, NULL, answer, NULL);
	if (!rc && !(rc = pin(pthread_self(), processors[0])))
		rc = pin(other, processors[1]);
	if (rc) {
		fprintf(stderr, "apart: no thread on each of processors %d and %d: %s\n", processors[0], processors[1], strerror(rc));
		return 1;
	}
	for (k = 0; k < SERIES; k++) {
		double begin = now();

		for (i = k * ROUNDS; i < (k + 1) * ROUNDS; i++) {
			atomic_store(&line, 2 * i + 1);
			while (atomic_load(&line) != 2 * i + 2)
				;
		}
		took[k] = (now() - begin) / ROUNDS / 2;
	}
	pthread_join(other, NULL);
	qsort(took, SERIES, sizeof *took, ascending);
	printf("%.0f\n", took[SERIES / 2]);
	return 0;
}
