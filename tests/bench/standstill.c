/* SPDX-License-Identifier: BSD-3-Clause
 * When the machine stands still: a virtual one that its host does not run, for one.
 *
 *   standstill
 *
 * On each processor that this process may use a thread of real-time priority wants to run every millisecond, ahead of all programs of
 * the usual kind.  Where it did not run for 5 ms or more, a line is printed when it runs again:
 *
 *   PROCESSOR BEGIN END
 *
 * in seconds of CLOCK_MONOTONIC.  "ready" is printed first.  Ends when its standard input does; exit status 1 where real-time
 * priority is not to be had (message on standard error). */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 1000000          /* ns */
#define STILL 5e-3              /* s: less may be the kernel's own work on the processor */
#define PRIORITY 50

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *watch(void *argument)
{
	int processor = (int)(intptr_t)argument;
	double last = now();

	for (;;) {
		double then;

		nanosleep(&(struct timespec){ .tv_nsec = PERIOD }, NULL);
		then = last;
		last = now();
		if (last - then >= STILL)
			printf("%d %.6f %.6f\n", processor, then, last);
	}
	return NULL;
}

/* 0, or an error number. */
static int watch_one(int processor)
{
	struct sched_param priority = { .sched_priority = PRIORITY };
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &priority);
	rc = pthread_create(&thread, &attributes, watch, (void *)(intptr_t)processor);
	pthread_attr_destroy(&attributes);
	return rc;
}

int main(void)
{
	cpu_set_t set;
	char byte;
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (sched_getaffinity(0, sizeof set, &set)) {
		perror("standstill: sched_getaffinity");
		return 1;
	}
	for (int i = 0; i < CPU_SETSIZE && !rc; i++)
		if (CPU_ISSET(i, &set))
			rc = watch_one(i);
	if (rc) {
		fprintf(stderr, "standstill: threads of real-time priority: %s\n", strerror(rc));
		return 1;
	}
	puts("ready");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
