/* SPDX-License-Identifier: BSD-3-Clause
 * Times MPI_Allreduce (float SUM, or of int) as the slowest rank sees it, one line for each call:
 *
 *   call BYTES nezha|native INDEX START END SLOWEST_US CPU_US WRONG
 *
 * START and END are rank 0's CLOCK_MONOTONIC in seconds, CPU_US the processor time of all ranks within the
 * call, WRONG how many ranks got a wrong element (-c).  Between calls there is an MPI_Barrier, as in OSU's benchmarks, and
 * once for each size, with -l after each call, with -t after each turn, an MPI_Gather of the times; Nezha leaves both to
 * the library.  The values are whole numbers, so that every order of summing gives the same bits. */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SIZES_MAX 64
#define TURN_LOOK_US 10000 /* at most, while it is another job's turn: the wakeups of sixteen ranks are felt */

struct sample {
	double slowest_us, cpu_us, wrong;
};

static struct {
	size_t sizes[SIZES_MAX];
	int calls_of[SIZES_MAX]; /* 0: `calls` */
	int size_count, calls, warm;
	int run;        /* calls in a row with Nezha on, and off */
	double seconds; /* go on for this time, even if `calls` were made */
	const char *end; /* a file: when it is there, the time is over */
	const char *turn; /* a file: see -t */
	double pause;   /* seconds between calls */
	bool both, check, live, in_place, integers;
} options = { .warm = 3, .run = 1 };

static int rank, ranks;
static void *in, *out;

/* The calls that are timed and not told yet. */
static struct {
	struct sample *samples;
	struct call {
		bool native;
		int index;
		double start, end;
	} *calls;
	int count, room;
} kept;

/* Jobs that take turns: how many calls this one may have made (mapped from options.turn, raised by whoever started the
 * jobs, once it has read of all calls before), and has. */
static struct {
	const _Atomic int32_t *allowed;
	int made;
} turns;

static void open_turn(void)
{
	int fd = open(options.turn, O_RDONLY);
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*turns.allowed), PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED) {
		perror(options.turn);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	close(fd);
	turns.allowed = map;
}

/* Sleeps, as the other job's ranks need the processors; the launcher's time limit ends it if no turn comes. */
static void await_turn(void)
{
	useconds_t wait = 50;

	while (turns.made >= atomic_load(turns.allowed)) {
		usleep(wait);
		wait = 2 * wait < TURN_LOOK_US ? 2 * wait : TURN_LOOK_US;
	}
	turns.made++;
}

/* The same on all ranks: the number is not raised before rank 0 has told of the turn's last call. */
static bool turn_is_over(void)
{
	return turns.allowed && turns.made == atomic_load(turns.allowed);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static bool wrong(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int wanted = ranks * (ranks - 1) / 2 + ranks * (int)(i % 97);

		if (options.integers ? ((int *)out)[i] != wanted : ((float *)out)[i] != (float)wanted)
			return true;
	}
	return false;
}

/* One call, as this rank sees it. */
static struct sample measure(size_t n, bool in_place, double *start, double *end)
{
	struct sample mine = { 0, 0, 0 };
	double cpu;

	if (in_place)
		memcpy(out, in, n * sizeof(float));
	else if (options.check)
		memset(out, 0xff, n * sizeof(float));
	if (options.pause > 0)
		usleep((useconds_t)(options.pause * 1e6));
	if (turns.allowed)
		await_turn();
	MPI_Barrier(MPI_COMM_WORLD);
	cpu = processor();
	*start = now();
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, (int)n, options.integers ? MPI_INT : MPI_FLOAT, MPI_SUM,
	              MPI_COMM_WORLD);
	*end = now();
	mine.slowest_us = (*end - *start) * 1e6;
	mine.cpu_us = processor() - cpu;
	mine.wrong = options.check && wrong(n);
	return mine;
}

static void keep(const struct call *call, const struct sample *sample)
{
	if (kept.count == kept.room) {
		kept.room = kept.room ? 2 * kept.room : 1024;
		kept.samples = realloc(kept.samples, (size_t)kept.room * sizeof(*kept.samples));
		kept.calls = realloc(kept.calls, (size_t)kept.room * sizeof(*kept.calls));
		if (!kept.samples || !kept.calls)
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	kept.calls[kept.count] = *call;
	kept.samples[kept.count++] = *sample;
}

/* What all ranks, of which `each` has `kept.count` samples, have seen of a call. */
static struct sample join(const struct sample *each, int call)
{
	struct sample all = { 0, 0, 0 };

	for (int r = 0; r < ranks; r++) {
		const struct sample *one = &each[(size_t)r * (size_t)kept.count + (size_t)call];

		if (one->slowest_us > all.slowest_us)
			all.slowest_us = one->slowest_us;
		all.cpu_us += one->cpu_us;
		all.wrong += one->wrong;
	}
	return all;
}

static void tell(size_t bytes)
{
	struct sample *each = NULL;

	if (rank == 0 && !(each = malloc(sizeof(*each) * (size_t)ranks * (size_t)kept.count)))
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Gather(kept.samples, 3 * kept.count, MPI_DOUBLE, each, 3 * kept.count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int k = 0; rank == 0 && k < kept.count; k++) {
		const struct call *call = &kept.calls[k];
		struct sample all = join(each, k);

		printf("call %zu %s %d %.6f %.6f %.1f %.1f %.0f\n", bytes, call->native ? "native" : "nezha", call->index,
		       call->start, call->end, all.slowest_us, all.cpu_us, all.wrong);
	}
	if (options.live || options.turn)
		fflush(stdout);
	free(each);
	kept.count = 0;
}

/* Whether to go on after `done` of `calls`; with a time limit, rank 0 decides. */
static bool more(int done, int calls, double began)
{
	bool ended = options.end && !access(options.end, F_OK);
	int yes = done < calls || (!ended && now() - began < options.seconds);

	if (options.seconds > 0)
		MPI_Bcast(&yes, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return yes;
}

static void run_size(size_t bytes, int calls)
{
	size_t n = bytes / sizeof(float);
	double start, end, began;
	int hows = options.both ? 2 : 1;

	for (int k = 0; k < options.warm * hows; k++) {
		if (options.both)
			MPI_Pcontrol(k % 2 ? 0 : 1);
		measure(n, options.in_place && k % 2, &start, &end);
	}
	began = now();
	for (int k = 0; more(k, calls, began); k += options.run)
		for (int turn = 0; turn < hows; turn++) {
			/* the first of a pair is now the one, now the other */
			int how = options.both ? turn ^ (k / options.run & 1) : 0;

			if (options.both)
				MPI_Pcontrol(how ? 0 : 1);
			for (int i = k; i < k + options.run; i++) {
				struct sample mine = measure(n, options.in_place && i % 2, &start, &end);

				keep(&(struct call){ how, i, start, end }, &mine);
				if (options.live || turn_is_over())
					tell(bytes);
			}
		}
	if (kept.count)
		tell(bytes);
	if (options.both)
		MPI_Pcontrol(1);
}

static size_t parse_size(const char *text, char **end)
{
	size_t value = strtoul(text, end, 10);

	switch (**end) {
	case 'k':
	case 'K':
		value <<= 10;
		++*end;
		break;
	case 'm':
	case 'M':
		value <<= 20;
		++*end;
		break;
	default: break;
	}
	return value;
}

static bool parse_sizes(const char *text)
{
	char *end;
	long calls;

	for (;;) {
		size_t value = parse_size(text, &end);

		if (end == text || value < 4 || value > 1u << 30 || options.size_count == SIZES_MAX)
			return false;
		if (*end == ':') {
			calls = strtol(end + 1, &end, 10);
			if (calls <= 0 || calls > INT_MAX)
				return false;
			options.calls_of[options.size_count] = (int)calls;
		}
		options.sizes[options.size_count++] = value;
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

static bool parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:n:w:T:e:t:p:r:bciIl")) != -1)
		switch (option) {
		case 's':
			if (!parse_sizes(optarg))
				return false;
			break;
		case 'n':
			options.calls = atoi(optarg);
			if (options.calls <= 0)
				return false;
			break;
		case 'w': options.warm = atoi(optarg); break;
		case 'T': options.seconds = atof(optarg); break;
		case 'e': options.end = optarg; break;
		case 't': options.turn = optarg; break;
		case 'p': options.pause = atof(optarg); break;
		case 'b': options.both = true; break;
		case 'r':
			options.run = atoi(optarg);
			if (options.run <= 0)
				return false;
			break;
		case 'c': options.check = true; break;
		case 'i': options.in_place = true; break;
		case 'I': options.integers = true; break;
		case 'l': options.live = true; break;
		default: return false;
		}
	if (!options.calls && options.seconds <= 0)
		options.calls = 10;
	return options.size_count && optind == argc && options.warm >= 0 && (options.run == 1 || options.both);
}

static void usage(void)
{
	fputs(
	    "usage: allreduce_bench -s SIZE[:CALLS],... [-n CALLS] [-T SECONDS [-e FILE]] [-t FILE] [-w WARM] [-p PAUSE]\n"
	    "                       [-b [-r RUN]] [-c] [-i] [-I] [-l]\n"
	    "  -s  sizes, bytes from 4 to 1024M, with K or M, and for each, if not as with -n, how many calls\n"
	    "  -n  calls of each size (10); -T  goes on for that time, with -n for so many calls at least, until FILE is there\n"
	    "  -t  jobs take turns: no call is begun before FILE, an int32_t, has the number of calls up to it, warm ones too\n"
	    "  -w  calls before that are not printed (3), for each size; -p  seconds between calls\n"
	    "  -b  every other call with Nezha switched off, with -r every other RUN of so many calls; -c  checks all results\n"
	    "  -i  every other call with MPI_IN_PLACE (those of odd INDEX); -I  integers; -l  each line at once\n",
	    stderr);
}

int main(int argc, char **argv)
{
	size_t largest = 0;

	if (!parse(argc, argv)) {
		usage();
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < options.size_count; i++)
		if (options.sizes[i] > largest)
			largest = options.sizes[i];
	in = malloc(largest);
	out = malloc(largest);
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (size_t i = 0; i < largest / sizeof(float); i++)
		if (options.integers)
			((int *)in)[i] = rank + (int)(i % 97);
		else
			((float *)in)[i] = (float)(rank + (int)(i % 97));
	memset(out, 0, largest);
	if (options.turn)
		open_turn();
	for (int i = 0; i < options.size_count; i++)
		run_size(options.sizes[i], options.calls_of[i] ? options.calls_of[i] : options.calls);
	free(in);
	free(out);
	free(kept.samples);
	free(kept.calls);
	if (rank == 0) {
		printf("done\n");
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
