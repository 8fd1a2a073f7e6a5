/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune's worker: an MPI program, one for each MPI, that nezha-tune starts with Nezha preloaded once for each
 * number of ranks.  It measures the candidate plans of each size, one after the other in one process, and rank 0
 * prints lines that begin with NEZHA_TUNE_MARK (tuning/measured.h tells what they say).
 *
 *     worker PPN SECONDS BYTES:BLOCK[,BLOCK...]...          sizes in ascending order
 *
 * Only MPI_Allreduce is Nezha's; what the worker needs itself goes over other calls. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/tuner.h"
#include "tuning/measured.h"
#include "tuning/model_price.h"
#include "tuning/sweep.h"

#define SIZES_MAX 64
#define OPENING_BYTES 65536u     /* the call that opens the rails */
#define SHARE_LEAST 0.02         /* of the time, for the smallest sizes */
#define HOPELESS_TIMES 1.5       /* a size that would take so many times what is left is not begun */
#define MIX_LEAST (UINT64_C(1) << NEZHA_PRICE_MIX_LEAST) /* bytes from which on both at once are used */
#define LEARN_MOST 12            /* calls of a size, to learn its shares, */
#define LEARN_SHARE 0.5          /* in so much of its time, unless the library has a network of its own */
#define SHARED_MOST 2            /* sizes at which the library is seen to use the rails' networks: others may use them just then, too */

struct size {
	uint64_t bytes;
	struct nezha_sweep_blocks blocks;
};

static struct {
	int rank;
	int ppn;
	double seconds;
	size_t size_count;
	struct size size[SIZES_MAX];
	const struct nezha_tuner *tuner;
	struct nezha_tuner_job job;
	char rail_text[NEZHA_SWEEP_RAILS][32];
	const char *rails[NEZHA_SWEEP_RAILS];
	char *sendbuf, *recvbuf;
	int shared;                  /* sizes at which the library was seen to use the rails' networks */
} worker;

/* One line to nezha-tune. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	va_list args;

	if (worker.rank != 0)
		return;
	va_start(args, format);
	fputs(NEZHA_TUNE_MARK, stdout);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	va_end(args);
}

/* Ends the job; every rank comes here with the same. */
__attribute__((format(printf, 1, 2), noreturn)) static void give_up(const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell("failed %s", text);
	MPI_Finalize();
	exit(1);
}

/* A whole number up to ':', ',' or the end; 0: none. */
static uint64_t parse_number(const char **text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno || end == *text || **text == '-')
		return 0;
	*text = end;
	return value;
}

static void parse_size(const char *text, struct size *out)
{
	const char *at = text;

	out->bytes = parse_number(&at);
	out->blocks.count = 0;
	while (out->bytes && out->blocks.count < NEZHA_SWEEP_BLOCKS && (*at == ':' || *at == ',')) {
		at++;
		out->blocks.bytes[out->blocks.count++] = (uint32_t)parse_number(&at);
	}
	if (!out->blocks.count || *at)
		give_up("the worker does not understand \"%s\": it is of another version", text);
}

static void parse_arguments(int argc, char **argv)
{
	if (argc < 4 || argc - 3 > SIZES_MAX)
		give_up("the worker was started with %d arguments: it is nezha-tune that starts it", argc - 1);
	worker.ppn = atoi(argv[1]);
	worker.seconds = atof(argv[2]);
	worker.size_count = (size_t)argc - 3;
	for (size_t i = 0; i < worker.size_count; i++)
		parse_size(argv[i + 3], &worker.size[i]);
}

/* With the interposed MPI_Allreduce there is the function that sets rules. */
static void find_tuner(void)
{
	nezha_tuner_fn *find = (nezha_tuner_fn *)dlsym(RTLD_DEFAULT, NEZHA_TUNER_SYMBOL);
	int mine, all;

	worker.tuner = find ? find() : NULL;
	mine = worker.tuner != NULL;
	MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!all)
		give_up("Nezha is not in all ranks: LD_PRELOAD did not reach them, or libnezha_pmpi.so is of "
		        "another version or lacks the backend for this MPI");
}

static void set_rule(const char *rule)
{
	char error[400];

	if (worker.tuner->rule(rule, error, sizeof(error))) {
		fprintf(stderr, "rank %d: %s\n", worker.rank, error);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void call(uint64_t bytes)
{
	MPI_Allreduce(worker.sendbuf, worker.recvbuf, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
	              MPI_COMM_WORLD);
}

static void allocate(void)
{
	uint64_t bytes = OPENING_BYTES;
	int mine, all;

	for (size_t i = 0; i < worker.size_count; i++)
		if (worker.size[i].bytes > bytes)
			bytes = worker.size[i].bytes;
	worker.sendbuf = malloc(bytes);
	worker.recvbuf = malloc(bytes);
	mine = worker.sendbuf && worker.recvbuf;
	if (mine) {
		memset(worker.sendbuf, 0, bytes);
		memset(worker.recvbuf, 0, bytes);
	}
	MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!all)
		give_up("a rank has no memory for two vectors of %llu bytes: measure smaller sizes (--sizes)",
		        (unsigned long long)bytes);
}

/* Rank 0's word on the job is everyone's. */
static void describe(void)
{
	if (worker.tuner->describe((nezha_word)MPI_COMM_WORLD, &worker.job)) {
		fprintf(stderr, "rank %d: Nezha knows nothing of MPI_COMM_WORLD\n", worker.rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Bcast(&worker.job, sizeof(worker.job), MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void open_rails(void)
{
	const struct nezha_scale *scale = &worker.job.scale;

	describe();
	if (scale->ppn != worker.ppn || scale->ranks != scale->nodes * scale->ppn)
		give_up("%d ranks run on %d node%s, up to %d on one: wanted are %d on each (--ppn): the mpirun places "
		        "them otherwise%s", scale->ranks, scale->nodes, scale->nodes > 1 ? "s" : "", scale->ppn,
		        worker.ppn, worker.ppn == 1 ? " (one on each: Open MPI --map-by node, MPICH -ppn 1)" : "");
	set_rule("alg=ring");
	call(OPENING_BYTES);
	describe();
	tell("job %d %d %d", scale->ranks, scale->nodes, scale->ppn);
	tell("mpi %s", worker.job.here.mpi);
	tell("host %s", worker.job.here.host);
	tell("topology %s", worker.job.here.topology);
	tell("rails %s", worker.job.here.rails);
	if (!worker.job.open)
		give_up("no rail for the %d ranks: %s (nezha-info on each host shows its rails)", scale->ranks,
		        worker.job.why);
	for (uint32_t r = 0; r < worker.job.rails.count; r++) {
		struct nezha_rail_set one = { .count = 1, .subnet = { worker.job.rails.subnet[r] } };

		nezha_rail_set_print(&one, ',', worker.rail_text[r], sizeof(worker.rail_text[r]));
		worker.rails[r] = worker.rail_text[r];
	}
}

/* What rank 0 tells the others: the next step, or that this size is finished. */
struct order {
	int more, candidate, settle, calls;
};

/* ns of one call, on the slowest rank; rank 0 gets it.  Before each call the ranks meet, as in OSU's benchmarks: calls in a close row overlap
 * from rank to rank, more so the one way than the other, and with work between them programs' calls do not. */
static double measure(uint64_t bytes, const struct order *order)
{
	double begin, mine = 0, slowest = 0;

	for (int i = 0; i < order->settle + order->calls; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		call(bytes);
		if (i >= order->settle)
			mine += MPI_Wtime() - begin;
	}
	mine /= order->calls;
	MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return slowest * 1e9;
}

/* Rank 0's word on whether to go on. */
static int agree(int mine)
{
	MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return mine;
}

/* Where the library has a network of its own, both at once may be the fastest: a few calls as in a job without a table find out, and
 * with which shares, and leave the rule in `out` ("": they are not, or there was no time to see).  `end`: by rank 0's clock; where the
 * library is known to have a network of its own it is not looked at, for a table without the mix would be a slower one. */
static void learn_mix(uint64_t bytes, double end, struct nezha_tuner_learnt *out)
{
	memset(out, 0, sizeof(*out));
	if (bytes < MIX_LEAST || worker.shared == SHARED_MOST)
		return;
	set_rule(NULL);
	for (int i = 0; i < LEARN_MOST && !out->complete && agree(out->apart || MPI_Wtime() < end); i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		call(bytes);
		tell("at %llu", (unsigned long long)bytes);
		if (worker.tuner->learnt((nezha_word)MPI_COMM_WORLD, bytes, out)) {
			fprintf(stderr, "rank %d: Nezha knows nothing of MPI_COMM_WORLD\n", worker.rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	worker.shared += out->complete && !out->apart;
}

/* ns that the size took. */
static double sweep_size(struct nezha_sweep *sweep, const struct size *size, double budget)
{
	double begin = MPI_Wtime(), told = begin;
	struct nezha_tuner_learnt learnt;

	learn_mix(size->bytes, begin + LEARN_SHARE * budget * 1e-9, &learnt);
	nezha_sweep_begin(sweep, &size->blocks, worker.rails, worker.job.rails.count);
	if (*learnt.mix)
		nezha_sweep_add(sweep, learnt.mix);
	for (;;) {
		struct nezha_sweep_step step = { 0 };
		struct order order = { 0 };
		double ns;

		if (worker.rank == 0 && nezha_sweep_next(sweep, (MPI_Wtime() - begin) * 1e9, budget, &step))
			order = (struct order){ 1, (int)step.candidate, (int)step.settle, (int)step.calls };
		MPI_Bcast(&order, sizeof(order), MPI_BYTE, 0, MPI_COMM_WORLD);
		if (!order.more)
			break;
		set_rule(sweep->candidate[order.candidate].rule);
		ns = measure(size->bytes, &order);
		if (worker.rank == 0)
			nezha_sweep_record(sweep, &step, ns);
		if (MPI_Wtime() - told > 1) {
			tell("at %llu", (unsigned long long)size->bytes);
			told = MPI_Wtime();
		}
	}
	return (MPI_Wtime() - begin) * 1e9;
}

static void tell_size(const struct nezha_sweep *sweep, uint64_t bytes)
{
	for (size_t i = 0; i < sweep->count; i++) {
		const struct nezha_sweep_candidate *c = &sweep->candidate[i];

		if (c->count)
			tell("time %llu %.0f %llu %s", (unsigned long long)bytes, nezha_sweep_median(sweep, i),
			     (unsigned long long)c->calls, c->rule);
	}
	tell("size %llu", (unsigned long long)bytes);
}

static double weigh_from(size_t first)
{
	double sum = 0;

	for (size_t i = first; i < worker.size_count; i++)
		sum += nezha_sweep_weight(worker.size[i].bytes);
	return sum;
}

/* Whether, by rank 0's clock, the size is not to be begun; `last`: the one before, NULL for the first. */
static int is_too_large(const struct nezha_sweep *sweep, const struct size *size, const struct size *last,
                        double left)
{
	return agree(last && nezha_sweep_foresee(sweep, (double)size->bytes / (double)last->bytes) > HOPELESS_TIMES * left);
}

static void sweep_all(void)
{
	struct nezha_sweep *sweep = calloc(1, sizeof(*sweep));
	double left = worker.seconds * 1e9, budget;

	if (!sweep) {
		fprintf(stderr, "rank %d: no memory\n", worker.rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return;
	}
	for (size_t i = 0; i < worker.size_count; i++) {
		const struct size *size = &worker.size[i];

		if (is_too_large(sweep, size, i ? size - 1 : NULL, left)) {
			for (; i < worker.size_count; i++)
				tell("skipped %llu", (unsigned long long)worker.size[i].bytes);
			break;
		}
		tell("at %llu", (unsigned long long)size->bytes);
		budget = fmax(worker.seconds * 1e9 * SHARE_LEAST, left * nezha_sweep_weight(size->bytes) / weigh_from(i));
		left -= sweep_size(sweep, size, budget);
		tell_size(sweep, size->bytes);
	}
	free(sweep);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &worker.rank);
	parse_arguments(argc, argv);
	find_tuner();
	allocate();
	open_rails();
	sweep_all();
	tell("end");
	MPI_Finalize();
	free(worker.sendbuf);
	free(worker.recvbuf);
	return 0;
}
