/* SPDX-License-Identifier: BSD-3-Clause
 * osu-patches/osu_nezha.h without OSU: a benchmark of our own that calls it where the patched ones do.
 *   osu_hooks [--nezha] [-h] [-c] [-f] [-t char] [-w WAY] [-n CALL] LOW HIGH
 * measures the sizes LOW, 4 LOW, ... HIGH.  -h helps, -c validates; -w: results of that way (0 native, 1 nezha) are
 * spoilt before they are validated; -f: an option that cannot go together; -n, -t: the header
 * is told this call and type, floats are reduced by MPI_Allreduce all the same. */
#include "tests/mpi/common.h"

#include "osu-patches/osu_nezha.h"

static size_t skip = 2, iterations = 4, skip_large = 1, iterations_large = 3;
static int validate, spoilt = -1, others, made[2];
static const char *call = "MPI_Allreduce";
static MPI_Datatype told;
static char *in, *out;

static int differs(long size)
{
	for (long i = 0; i < size; i++)
		if (out[i] != in[i])
			return 1;
	return 0;
}

/* 1 if the result is not as it should be. */
static int measure(int i, long size)
{
	osu_nezha_turn(i);
	made[osu_nezha.way] += osu_nezha_wanted();
	osu_nezha_before();
	MPI_Allreduce(in, out, (int)(size / 4), MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
	if (spoilt == osu_nezha.way && world_rank == 1)
		out[size / 2] = (char)~out[size / 2];
	return validate && differs(size);
}

static void arguments(int argc, char **argv, long *low, long *high)
{
	int option;

	while ((option = getopt(argc, argv, "hcft:w:n:")) != -1) {
		switch (option) {
		case 'h': osu_nezha_help(world_rank); break;
		case 'c': validate = 1; break;
		case 'f': others = 1; break;
		case 't': told = strcmp(optarg, "char") ? MPI_FLOAT : MPI_CHAR; break;
		case 'w': spoilt = (int)number(optarg, "-w", 0, 1); break;
		case 'n': call = optarg; break;
		default: exit(2);
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "osu_hooks: LOW and HIGH are wanted\n");
		exit(2);
	}
	*low = number(argv[optind], "LOW", 4, 1L << 30);
	*high = number(argv[optind + 1], "HIGH", *low, 1L << 30);
}

/* One size; the validation errors of all ranks. */
static int run(long size)
{
	static int errors; /* counted on over the sizes, as OSU does */
	double begun;

	for (int i = 0; i < (int)(iterations + skip); i++) {
		begun = MPI_Wtime();
		errors += measure(i, size);
		osu_nezha_after(i >= (int)skip, MPI_Wtime() - begun, errors);
	}
	if (osu_nezha_wanted())
		return osu_nezha_print(world_rank, (int)size, validate, MPI_COMM_WORLD);
	if (world_rank == 0)
		printf("%ld ours\n", size);
	return 0;
}

int main(int argc, char **argv)
{
	long low, high;

	told = MPI_FLOAT;
	osu_nezha_take(&argc, argv);
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	arguments(argc, argv, &low, &high);
	watch(120, "the calls");
	if (osu_nezha_begin(world_rank, MPI_COMM_WORLD, call, others, &skip, &iterations, &skip_large,
	                    &iterations_large)) {
		MPI_Finalize();
		return 1;
	}
	in = grab((size_t)high);
	out = grab((size_t)high);
	memset(in, 1, (size_t)high);
	if (!osu_nezha_header(world_rank, validate, told) && world_rank == 0)
		printf("# ours\n");
	for (long size = low; size <= high; size *= 4) {
		memset(out, 0, (size_t)high);
		if (run(size))
			break;
	}
	if (made[0] != made[1])
		fail("%d calls were native, %d Nezha's", made[0], made[1]);
	if (osu_nezha_wanted() && (iterations != 8 || skip != 4 || iterations_large != 6 || skip_large != 2))
		fail("the numbers of calls were not doubled");
	free(in);
	free(out);
	return finish("hooks");
}
