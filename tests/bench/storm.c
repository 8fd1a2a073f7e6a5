/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of MPI_Allreduce while rails fail: storm FILE.  FILE has one line, read again before each call:
 *
 *   EPISODE TYPE OP COMM COUNT IN_PLACE PAUSE_US    or    end
 *
 * TYPE, OP and COMM are numbers of the tables below.  Whoever writes the file (by renaming another one to it) so says what is
 * called next.  Each rank compares each element with what must come out, bit for bit, and looks at what it must not have
 * touched.  Rank 0 prints
 *
 *   use EPISODE RANK RSS_KB DESCRIPTORS              of each rank, when an episode begins, and with EPISODE -1 at the end
 *   call BYTES EPISODE INDEX START END SLOWEST_US 0 WRONG
 *
 * as allreduce_bench does (START, END: its CLOCK_MONOTONIC; WRONG: how many ranks found something wrong).  A rank that has
 * found something says what on stderr. */
#include <dirent.h>
#include <limits.h>
#include <time.h>

#include "tests/mpi/common.h"

#define LARGEST (64u << 20)
#define PERIOD 16381    /* elements, a prime: no block that came to lie elsewhere looks right */
#define GUARD 64        /* bytes after the result */
#define POISON 0xa5
#define LIMIT 100       /* s for a call; who drives us looks earlier */

enum op { SUM, PROD, MIN, MAX, BAND, BXOR, OPS };
enum type { FLOAT, DOUBLE, INT, LONG, SHORT, TYPES };
enum comm { WORLD, DUP, REVERSED, PAIRS, COMMS };

struct plan {
	long episode, type, op, comm, count, in_place, pause;
};
#define PLAN_WORDS 7
#define END_OF_PLANS LONG_MIN

static const int size_of[TYPES] = { sizeof(float), sizeof(double), sizeof(int), sizeof(long), sizeof(short) };
static MPI_Datatype type_handle[TYPES];
static MPI_Op op_handle[OPS];
static MPI_Comm comm_handle[COMMS];
static char *in, *out;
static char mine[PERIOD * sizeof(double)], expected[PERIOD * sizeof(double)];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- what is contributed, and what must come out ---- */

/* Small whole numbers: every order of folding gives the same bits, in every type. */
static long value(const struct plan *plan, int rank, long i)
{
	uint64_t h = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)rank + 1) * 0xc2b2ae3d27d4eb4fu ^
	             (uint64_t)plan->episode << 32;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	h >>= 40;
	return plan->op == PROD ? (h & 1 ? 1 : -1) : (long)(h % 1021) - 510;
}

static long fold(enum op op, long a, long b)
{
	switch (op) {
	case SUM: return a + b;
	case PROD: return a * b;
	case MIN: return a < b ? a : b;
	case MAX: return a > b ? a : b;
	case BAND: return a & b;
	default: return a ^ b;
	}
}

static void put(char *pattern, enum type type, long i, long x)
{
	switch (type) {
	case FLOAT: ((float *)pattern)[i] = (float)x; break;
	case DOUBLE: ((double *)pattern)[i] = (double)x; break;
	case INT: ((int *)pattern)[i] = (int)x; break;
	case LONG: ((long *)pattern)[i] = x; break;
	default: ((short *)pattern)[i] = (short)x; break;
	}
}

/* Which ranks of the world are in this rank's communicator. */
static bool joins(enum comm comm, int rank)
{
	return comm != PAIRS || rank / 2 == world_rank / 2;
}

static void make_patterns(const struct plan *plan)
{
	for (long i = 0; i < PERIOD; i++) {
		long sum = 0;
		bool any = false;

		for (int rank = 0; rank < world_size; rank++) {
			if (!joins(plan->comm, rank))
				continue;
			sum = any ? fold(plan->op, sum, value(plan, rank, i)) : value(plan, rank, i);
			any = true;
		}
		put(mine, plan->type, i, value(plan, world_rank, i));
		put(expected, plan->type, i, sum);
	}
}

/* Element i of call `call` is element (i + call) mod PERIOD of the pattern: no result of the call before looks right. */
static void spread(char *to, const char *pattern, const struct plan *plan, long call)
{
	size_t size = (size_t)size_of[plan->type], at = (size_t)(call % PERIOD), left = (size_t)plan->count;

	while (left) {
		size_t n = PERIOD - at < left ? PERIOD - at : left;

		memcpy(to, pattern + at * size, n * size);
		to += n * size;
		left -= n;
		at = 0;
	}
}

/* The index of the first element that is not the pattern's; -1: all are. */
static long differs(const char *got, const char *pattern, const struct plan *plan, long call)
{
	size_t size = (size_t)size_of[plan->type], at = (size_t)(call % PERIOD), done = 0, count = (size_t)plan->count;

	while (done < count) {
		size_t n = PERIOD - at < count - done ? PERIOD - at : count - done;

		if (memcmp(got, pattern + at * size, n * size))
			for (size_t i = 0; i < n; i++)
				if (memcmp(got + i * size, pattern + (at + i) * size, size))
					return (long)(done + i);
		got += n * size;
		done += n;
		at = 0;
	}
	return -1;
}

/* ---- calls ---- */

static bool wrong(const struct plan *plan, long call)
{
	long bad = differs(out, expected, plan, call);
	size_t bytes = (size_t)plan->count * (size_t)size_of[plan->type];
	const char *what = NULL;

	if (!plan->in_place && differs(in, mine, plan, call) >= 0)
		what = "the send buffer was changed";
	for (size_t i = 0; i < GUARD; i++)
		if ((unsigned char)out[bytes + i] != POISON)
			what = "bytes after the result were written";
	if (what || bad >= 0)
		fail("episode %ld call %ld type %ld op %ld comm %ld count %ld in place %ld: %s, element %ld", plan->episode, call,
		     plan->type, plan->op, plan->comm, plan->count, plan->in_place, what ? what : "wrong result", bad);
	return what || bad >= 0;
}

static void call_once(const struct plan *plan, long call)
{
	double sample[2], *each = world_rank ? NULL : grab(sizeof sample * (size_t)world_size), start, end, slowest = 0;
	size_t bytes = (size_t)plan->count * (size_t)size_of[plan->type];
	int bad = 0;

	spread(plan->in_place ? out : in, mine, plan, call);
	if (!plan->in_place)
		memset(out, POISON, bytes);
	memset(out + bytes, POISON, GUARD);
	/* The ranks come at different times, as after different computations. */
	if (plan->pause)
		usleep((useconds_t)(plan->pause * ((world_rank + call) % world_size)));
	else
		MPI_Barrier(MPI_COMM_WORLD);
	start = now();
	MPI_Allreduce(plan->in_place ? MPI_IN_PLACE : in, out, (int)plan->count, type_handle[plan->type],
	              op_handle[plan->op], comm_handle[plan->comm]);
	end = now();
	sample[0] = (end - start) * 1e6;
	sample[1] = wrong(plan, call);
	MPI_Gather(sample, 2, MPI_DOUBLE, each, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int rank = 0; !world_rank && rank < world_size; rank++) {
		slowest = each[2 * rank] > slowest ? each[2 * rank] : slowest;
		bad += each[2 * rank + 1] > 0;
	}
	if (!world_rank)
		printf("call %zu %ld %ld %.6f %.6f %.1f 0 %d\n", bytes, plan->episode, call, start, end, slowest, bad);
	free(each);
}

/* ---- what a rank holds ---- */

static long resident_kb(void)
{
	long pages = 0, all;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

static long descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	long count = -3;        /* ".", "..", and the folder's own */

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static void tell_use(long episode)
{
	long use[2] = { resident_kb(), descriptors() }, *each = world_rank ? NULL : grab(sizeof use * (size_t)world_size);

	MPI_Gather(use, 2, MPI_LONG, each, 2, MPI_LONG, 0, MPI_COMM_WORLD);
	for (int rank = 0; !world_rank && rank < world_size; rank++)
		printf("use %ld %d %ld %ld\n", episode, rank, each[2 * rank], each[2 * rank + 1]);
	free(each);
}

/* ---- plans ---- */

static bool makes_sense(const struct plan *p)
{
	bool bits = p->op == BAND || p->op == BXOR, floating = p->type == FLOAT || p->type == DOUBLE;

	return p->type >= 0 && p->type < TYPES && p->op >= 0 && p->op < OPS && p->comm >= 0 && p->comm < COMMS &&
	       p->count > 0 && p->count <= (long)LARGEST / size_of[p->type] && p->pause >= 0 && p->pause <= 1000000 &&
	       !(bits && floating);
}

static void read_plan(const char *path, struct plan *plan)
{
	char line[200] = "";
	FILE *file = fopen(path, "r");

	if (!file || !fgets(line, sizeof line, file)) {
		fprintf(stderr, "storm: %s cannot be read: %s\n", path, strerror(errno));
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	fclose(file);
	if (!strcmp(line, "end\n")) {
		plan->episode = END_OF_PLANS;
		return;
	}
	if (sscanf(line, "%ld %ld %ld %ld %ld %ld %ld", &plan->episode, &plan->type, &plan->op, &plan->comm, &plan->count,
	           &plan->in_place, &plan->pause) != PLAN_WORDS || !makes_sense(plan)) {
		fprintf(stderr, "storm: %s: \"%s\" is no plan\n", path, line);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

static void set_up(void)
{
	MPI_Datatype types[TYPES] = { MPI_FLOAT, MPI_DOUBLE, MPI_INT, MPI_LONG, MPI_SHORT };
	MPI_Op ops[OPS] = { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BXOR };

	memcpy(type_handle, types, sizeof types);
	memcpy(op_handle, ops, sizeof ops);
	comm_handle[WORLD] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm_handle[DUP]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &comm_handle[REVERSED]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank / 2, 0, &comm_handle[PAIRS]);
	in = grab(LARGEST + GUARD);
	out = grab(LARGEST + GUARD);
	/* All pages are there from the beginning: what grows later is a leak. */
	memset(in, 0, LARGEST + GUARD);
	memset(out, 0, LARGEST + GUARD);
}

int main(int argc, char **argv)
{
	struct plan plan = { .episode = END_OF_PLANS };

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc != 2) {
		fprintf(stderr, "usage: storm FILE\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	watch(LIMIT, "the beginning");
	set_up();
	for (long call = 0, before = END_OF_PLANS;; call++) {
		watch(LIMIT, "a call");
		if (!world_rank)
			read_plan(argv[1], &plan);
		MPI_Bcast(&plan, PLAN_WORDS, MPI_LONG, 0, MPI_COMM_WORLD);
		if (plan.episode == END_OF_PLANS)
			break;
		if (plan.episode != before) {
			make_patterns(&plan);
			tell_use(plan.episode);
		}
		before = plan.episode;
		call_once(&plan, call);
	}
	tell_use(-1);
	free(in);
	free(out);
	if (!world_rank)
		printf("done\n");
	return finish("storm");
}
