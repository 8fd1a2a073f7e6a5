/* SPDX-License-Identifier: BSD-3-Clause
 * Results of MPI_Allreduce compared with the library's own (MPI_Reduce and MPI_Bcast, which Nezha leaves
 * alone): every type and operation, awkward counts, many communicators, with and without MPI_IN_PLACE.
 * Prints digests of the results, which must not depend on rails, policies or the run. */
#include <getopt.h>
#include <limits.h>

#include "tests/mpi/common.h"
#include "tests/mpi/values.h"

#define GUARD 64 /* bytes after a result that must stay as they are */
#define PATTERN 0xa5

struct type {
	MPI_Datatype handle;
	const char *name;
	char family;
	int size;
	bool illogical; /* the standard defines no logical operations on it */
};

struct job {
	uint64_t seed;
	size_t block; /* bytes: counts around its multiples are tried */
	size_t limit; /* bytes of the largest vector of a sweep */
	size_t large; /* ... of all; 0: no large ones */
	long every;   /* one of so many cases is run */
	long turn;    /* cases counted so far */
	long calls;
	uint64_t floats, all; /* digests */
	unsigned char *in, *out, *expected;
};

static const MPI_Op op_handles[OP_COUNT] = {
	MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR,
};
static const char *const op_names[OP_COUNT] = {
	"SUM", "PROD", "MIN", "MAX", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR",
};

static const struct type types[] = {
	{ MPI_FLOAT, "FLOAT", 'f', 4, false },
	{ MPI_DOUBLE, "DOUBLE", 'f', 8, false },
	{ MPI_INT, "INT", 'i', 4, false },
	{ MPI_LONG, "LONG", 'i', sizeof(long), false },
	{ MPI_UNSIGNED, "UNSIGNED", 'u', 4, false },
	{ MPI_UNSIGNED_LONG, "UNSIGNED_LONG", 'u', sizeof(long), false },
	{ MPI_SHORT, "SHORT", 'i', 2, false },
	{ MPI_UNSIGNED_SHORT, "UNSIGNED_SHORT", 'u', 2, false },
	{ MPI_SIGNED_CHAR, "SIGNED_CHAR", 'i', 1, false },
	{ MPI_CHAR, "CHAR", CHAR_MIN < 0 ? 'i' : 'u', 1, false },
	{ MPI_UNSIGNED_CHAR, "UNSIGNED_CHAR", 'u', 1, false },
	{ MPI_LONG_LONG_INT, "LONG_LONG_INT", 'i', 8, false },
	{ MPI_UNSIGNED_LONG_LONG, "UNSIGNED_LONG_LONG", 'u', 8, false },
	{ MPI_INT8_T, "INT8_T", 'i', 1, false },
	{ MPI_INT16_T, "INT16_T", 'i', 2, false },
	{ MPI_INT32_T, "INT32_T", 'i', 4, false },
	{ MPI_INT64_T, "INT64_T", 'i', 8, false },
	{ MPI_UINT8_T, "UINT8_T", 'u', 1, false },
	{ MPI_UINT16_T, "UINT16_T", 'u', 2, false },
	{ MPI_UINT32_T, "UINT32_T", 'u', 4, false },
	{ MPI_UINT64_T, "UINT64_T", 'u', 8, false },
	{ MPI_AINT, "AINT", 'i', sizeof(MPI_Aint), true },
	{ MPI_OFFSET, "OFFSET", 'i', sizeof(MPI_Offset), true },
	{ MPI_COUNT, "COUNT", 'i', sizeof(MPI_Count), true },
	{ MPI_INTEGER, "INTEGER", 'i', 4, true },
	{ MPI_REAL, "REAL", 'f', 4, false },
	{ MPI_DOUBLE_PRECISION, "DOUBLE_PRECISION", 'f', 8, false },
	{ MPI_INTEGER1, "INTEGER1", 'i', 1, true },
	{ MPI_INTEGER2, "INTEGER2", 'i', 2, true },
	{ MPI_INTEGER4, "INTEGER4", 'i', 4, true },
	{ MPI_INTEGER8, "INTEGER8", 'i', 8, true },
	{ MPI_REAL4, "REAL4", 'f', 4, false },
	{ MPI_REAL8, "REAL8", 'f', 8, false },
};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* One Allreduce, compared. */
static void run_case(struct job *job, MPI_Comm comm, const char *where, const struct type *type,
                     enum value_op op, size_t count, bool in_place)
{
	struct value_kind kind = { type->family, type->size, type->size <= 2 };
	size_t bytes = count * (size_t)type->size, bad;
	uint64_t seed = job->seed * 1000003 + (uint64_t)job->turn, mine, root;
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	values_fill(job->in, 0, count, kind, op, seed, rank);
	if (in_place)
		memcpy(job->out, job->in, bytes);
	else
		memset(job->out, PATTERN, bytes);
	memset(job->out + bytes, PATTERN, GUARD);
	mine = values_digest(0, job->in, bytes);
	if (MPI_Allreduce(in_place ? MPI_IN_PLACE : job->in, job->out, (int)count, type->handle,
	                  op_handles[op], comm))
		fail("%s %s %s count %zu: MPI_Allreduce returned an error", where, type->name, op_names[op],
		     count);
	job->calls++;
	if (!in_place && values_digest(0, job->in, bytes) != mine)
		fail("%s %s %s count %zu: the send buffer was changed", where, type->name, op_names[op],
		     count);
	for (size_t i = 0; i < GUARD; i++)
		if (job->out[bytes + i] != PATTERN) {
			fail("%s %s %s count %zu: byte %zu after the result was written", where, type->name,
			     op_names[op], count, i);
			break;
		}
	mine = values_digest(0, job->out, bytes);
	MPI_Reduce(job->in, job->expected, (int)count, type->handle, op_handles[op], 0, comm);
	memcpy(job->expected + bytes, &mine, sizeof(mine));
	MPI_Bcast(job->expected, (int)(bytes + sizeof(mine)), MPI_BYTE, 0, comm);
	memcpy(&root, job->expected + bytes, sizeof(root));
	if (mine != root)
		fail("%s %s %s count %zu%s: rank %d of %d and rank 0 got different bits", where, type->name,
		     op_names[op], count, in_place ? " in place" : "", rank, size);
	bad = values_differ(job->out, job->expected, count, kind, op, seed, size);
	if (bad < count)
		fail("%s %s %s count %zu%s: element %zu is not what MPI_Reduce gives", where, type->name,
		     op_names[op], count, in_place ? " in place" : "", bad);
	job->all = values_digest(job->all, &mine, sizeof(mine));
	if (type->family == 'f')
		job->floats = values_digest(job->floats, &mine, sizeof(mine));
}

/* Counts whose bytes are at most the limit; returns how many there are. */
static size_t awkward_counts(const struct job *job, size_t size, size_t ranks, size_t *out)
{
	size_t block = job->block / size, small = (64 << 10) / size, n = 0;
	const size_t all[] = {
		0, 1, 2, 3, 7, ranks, 1021, block - 1, block, block + 1, 2 * block + 1,
		ranks * block - 1, ranks * block, ranks * block + 1, (2 * ranks + 1) * block + 3,
		small - 1, small, small + 1, 99991, (1 << 20) / size + 1,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] * size <= job->limit)
			out[n++] = all[i];
	return n;
}

static void sweep(struct job *job, MPI_Comm comm, const char *where)
{
	size_t counts[32];
	int ranks;

	MPI_Comm_size(comm, &ranks);
	watched = where;
	for (size_t t = 0; t < TYPES; t++) {
		size_t n = awkward_counts(job, (size_t)types[t].size, (size_t)ranks, counts);

		for (int op = 0; op < OP_COUNT; op++) {
			if (types[t].family == 'f' && op >= OP_LAND)
				continue;
			if (types[t].illogical && op >= OP_LAND && op <= OP_LXOR)
				continue;
			for (size_t c = 0; c < n; c++)
				for (int in_place = 0; in_place < 2; in_place++)
					if (job->turn++ % job->every ==
					    (long)(job->seed % (uint64_t)job->every))
						run_case(job, comm, where, &types[t], op, counts[c],
						         in_place);
		}
	}
}

static void sweep_large(struct job *job, MPI_Comm comm)
{
	static const size_t sizes[] = { (4 << 20) + 8, (16 << 20) - 8, 64 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i] > job->large)
			continue;
		watched = "large vectors";
		job->turn = (long)i * 100; /* whatever the sweeps before ran, the same values */
		run_case(job, comm, "large", &types[0], OP_SUM, sizes[i] / 4, false);
		job->turn++;
		run_case(job, comm, "large", &types[0], OP_SUM, sizes[i] / 4, true);
		job->turn++;
		run_case(job, comm, "large", &types[1], OP_SUM, sizes[i] / 8, true);
		job->turn++;
		run_case(job, comm, "large", &types[3], OP_MAX, sizes[i] / 8, false);
	}
}

static MPI_Comm reversed(void)
{
	MPI_Comm comm;

	MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &comm);
	return comm;
}

static void sweep_comms(struct job *job)
{
	MPI_Comm comm;
	char where[32];

	sweep(job, MPI_COMM_WORLD, "WORLD");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	sweep(job, comm, "dup");
	MPI_Comm_free(&comm);
	comm = reversed();
	sweep(job, comm, "reversed");
	MPI_Comm_free(&comm);
	for (int group = 1; group <= 8 && group < world_size; group++) {
		snprintf(where, sizeof(where), "groups of %d", group);
		MPI_Comm_split(MPI_COMM_WORLD, world_rank / group, 0, &comm);
		sweep(job, comm, where);
		MPI_Comm_free(&comm);
	}
	sweep(job, MPI_COMM_SELF, "SELF");
}

static void print_digests(const struct job *job)
{
	uint64_t mine[2] = { job->floats, job->all }, all[2] = { 0, 0 };
	uint64_t *of = grab(sizeof(mine) * (size_t)world_size);
	long calls = 0;

	MPI_Gather(mine, 2, MPI_UINT64_T, of, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	MPI_Reduce(&job->calls, &calls, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (world_rank == 0) {
		for (int i = 0; i < world_size; i++)
			for (int k = 0; k < 2; k++)
				all[k] = values_digest(all[k], &of[2 * i + k], sizeof(of[0]));
		printf("calls %ld digest-floats %016llx digest-all %016llx\n", calls,
		       (unsigned long long)all[0], (unsigned long long)all[1]);
	}
	free(of);
}

static void usage(void)
{
	fprintf(stderr,
	        "usage: results [-s SEED] [-e EVERY] [-b BLOCK_BYTES] [-m MAX_BYTES] [-t SECONDS] [-l BYTES]\n"
	        "  -e N      runs one case of N (which ones: SEED modulo N); 0: none\n"
	        "  -l BYTES  large vectors on MPI_COMM_WORLD, too, up to so many bytes\n");
	exit(2);
}

int main(int argc, char **argv)
{
	struct job job = { .seed = 1, .block = 4096, .limit = 2 << 20, .every = 1 };
	long seconds = 300;
	size_t room;
	int option;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	while ((option = getopt(argc, argv, "s:e:b:m:t:l:")) != -1)
		switch (option) {
		case 's': job.seed = (uint64_t)number(optarg, "-s", 0, 1L << 30); break;
		case 'e': job.every = number(optarg, "-e", 0, 100000); break;
		case 'b': job.block = (size_t)number(optarg, "-b", 4096, 4 << 20); break;
		case 'm': job.limit = (size_t)number(optarg, "-m", 0, 1 << 30); break;
		case 't': seconds = number(optarg, "-t", 1, 100000); break;
		case 'l': job.large = (size_t)number(optarg, "-l", 0, 1 << 30); break;
		default: usage();
		}
	room = (job.large > job.limit ? job.large : job.limit) + GUARD;
	job.in = grab(room);
	job.out = grab(room);
	job.expected = grab(room);
	watch((unsigned)seconds, "start");
	if (job.every)
		sweep_comms(&job);
	if (job.large)
		sweep_large(&job, MPI_COMM_WORLD);
	watched = "the digests";
	print_digests(&job);
	free(job.in);
	free(job.out);
	free(job.expected);
	return finish("results");
}
