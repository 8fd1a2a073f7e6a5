/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks over one rail between two threads, each with an engine of its own, without MPI: how fast, and at what cost in
 * processor time.
 *
 *   WAY BYTES MIB_PER_S USER SYSTEM BUSY
 *
 * WAY is what was asked for (-w): "one", blocks from the first to the second engine; "both", at once in both directions, of which
 * the rates are added; "reduce", allreduces of 8 MiB (float SUM), in which each byte goes once in either direction.  In the
 * first two the blocks come out of a vector of 8 MiB and are dropped where they arrive, as by ib_write_bw.  USER and SYSTEM are the
 * processor seconds of the process for each GB (10^9 bytes) that arrived, BUSY those of the whole machine, whoever
 * used them: a software device works in the kernel, in whatever process was interrupted.
 *
 * The rail "fake" is the provider of tests/conformance/fake_verbs.h, which moves records but no payload: what is left is the
 * rail's own work, as beside a device that does the rest by itself. */
#include <arpa/inet.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "tests/conformance/fake_verbs.h"
#include "tuning/grid.h"
#include "tuning/status.h"

#define VECTOR (8u << 20)
#define NO_TEAM 0xb10cull       /* of no team: blocks of it are dropped */
#define TURN 4u                 /* blocks that are sent before one looks whether some have come */
#define SIZES_MAX 16
#define SECONDS_MOST 60.0

enum way { ONE, BOTH, REDUCE };
static const char *const ways[] = { "one", "both", "reduce" };

static struct {
	enum way way;
	uint32_t sizes[SIZES_MAX];
	int size_count;
	double seconds;
	const char *rails[2];
} options = { .seconds = 1 };

/* What the threads share. */
static struct {
	pthread_barrier_t barrier;
	struct nezha_card cards[2];
	uint64_t before[2];             /* bytes of the connection that were taken in before */
	_Atomic uint64_t sent[2];       /* bytes of the connection when the last block was sent, 0: not yet */
	struct {
		uint64_t bytes, begin, end; /* payload taken in or reduced; ns */
	} result[2];
	double user, system, idle;      /* seconds: of the process, of all processors */
} shared;

static _Thread_local int rank;
static _Thread_local char *vector;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "block_bench: %s\n", what);
	_exit(1);
}

/* ---- processor time ---- */

static void processor(double *user, double *system)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	*user = (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec * 1e-6;
	*system = (double)use.ru_stime.tv_sec + (double)use.ru_stime.tv_usec * 1e-6;
}

/* Seconds that processors were idle so far, all together. */
static double idle(void)
{
	unsigned long long ticks = 0, waiting = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (!file || fscanf(file, "cpu %*u %*u %*u %llu %llu", &ticks, &waiting) != 2)
		die("/proc/stat cannot be read");
	fclose(file);
	return (double)(ticks + waiting) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- a rail ---- */

static bool verbs_rail(const char *name, struct nezha_rail_nic *out)
{
	struct nezha_verbs_port ports[16];
	size_t n = nezha_verbs_ports(NEZHA_VERBS_SYSFS, ports, 16);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(ports[i].device, name)) {
			out->kind = NEZHA_RAIL_VERBS;
			out->port = ports[i];
			out->nic.address = ports[i].address;
			return true;
		}
	return false;
}

static struct nezha_rail_nic make_rail(const char *text)
{
	struct nezha_rail_nic rail = { .nic = { .device = "bench", .prefix = 24 }, .key_entry = 1 };

	if (!strcmp(text, "fake")) {
		rail.kind = NEZHA_RAIL_VERBS;
		rail.port = (struct nezha_verbs_port){ .device = FAKE_DEVICE, .port = 1, .gid_type = "RoCE v2" };
		inet_pton(AF_INET, "127.0.0.1", &rail.nic.address);
		return rail;
	}
	if (!strncmp(text, "verbs:", 6) ? !verbs_rail(text + 6, &rail)
	    : strncmp(text, "tcp:", 4) || inet_pton(AF_INET, text + 4, &rail.nic.address) != 1) {
		fprintf(stderr, "block_bench: rail '%s': verbs:DEVICE of this host, tcp:ADDRESS or fake is allowed\n", text);
		_exit(2);
	}
	return rail;
}

static struct nezha_team *open_team(struct nezha_engine **engine)
{
	static const unsigned char key[NEZHA_KEY_BYTES] = "the key of a benchmark";
	struct nezha_rail_nic rail = make_rail(options.rails[rank]);
	struct nezha_engine_config config = { .process = rank, .key = key, .rails = &rail, .rail_count = 1 };
	struct nezha_team *team;
	uint32_t rails = 0;

	/* A software device on a busy machine is slow to answer, which is no failure here. */
	nezha_verbs_options_parse("timeout=17", &config.verbs);
	if (nezha_engine_create(&config, engine) != NEZHA_OK)
		die("no engine");
	nezha_engine_card(*engine, &shared.cards[rank]);
	pthread_barrier_wait(&shared.barrier);
	if (nezha_team_create(*engine, shared.cards, 2, rank, 1, &team) != NEZHA_OK)
		die("no team");
	nezha_team_connect(team, 10, &rails);
	if (!rails)
		die("the rail does not reach the other process");
	pthread_barrier_wait(&shared.barrier);
	/* Opening moves and checks all that it sends. */
	fake_verbs_payload(options.way == REDUCE);
	nezha_team_activate(team, rails);
	return team;
}

/* ---- blocks ---- */

static void start_block(struct nezha_path *path, uint32_t bytes, uint32_t number)
{
	path->out = (struct nezha_outgoing){
		.record = nezha_wire_make(NEZHA_WIRE_PARTIAL, NO_TEAM, 0),
		.record_left = sizeof path->out.record,
		.payload_left = bytes,
		.payload = vector + (size_t)(number % (VECTOR / bytes)) * bytes,
	};
	path->out.record.length = bytes;
}

/* Sends `most` blocks, or until there is no room (false), or the time is up, when it tells how much that was. */
static bool send_some(struct nezha_path *path, uint32_t bytes, uint32_t most, uint64_t until)
{
	static _Thread_local uint32_t number;
	int rc = NEZHA_OK;

	for (uint32_t i = 0; i < most && rc == NEZHA_OK && path->up && !shared.sent[rank]; i++) {
		if (nezha_path_is_free(path)) {
			if (nezha_now() >= until) {
				shared.sent[rank] = path->written;
				continue;
			}
			start_block(path, bytes, number++);
		}
		rc = path->ops->send(path);
	}
	path->ready = rc != NEZHA_INPROGRESS;
	if (rc >= 0 && path->ops->flush)
		rc = path->ops->flush(path);
	if (rc < 0 || !path->up)
		die("a path was lost");
	return path->ready && !shared.sent[rank];
}

static void stream(struct nezha_engine *engine, struct nezha_team *team, uint32_t bytes)
{
	struct nezha_path *path = &team->right->paths[0];
	struct nezha_inpath *in = &team->left->paths[0];
	bool sends = options.way == BOTH || rank == 0, receives = options.way == BOTH || rank == 1;
	uint64_t begin = nezha_now(), until = begin + (uint64_t)(options.seconds * NEZHA_SEC);

	nezha_fairlock_take(&engine->lock);
	while ((sends && !shared.sent[rank]) ||
	       (receives && (!shared.sent[!rank] || in->taken < shared.sent[!rank]))) {
		bool more = sends && !shared.sent[rank] && send_some(path, bytes, receives ? TURN : UINT32_MAX, until);

		if (more)
			nezha_engine_poll(engine);
		else
			nezha_engine_step(engine);
		if (!in->up || !path->up)
			die("a path was lost");
		if (nezha_now() > until + 20 * NEZHA_SEC)
			die("what was sent does not arrive");
	}
	if (receives) {
		shared.result[rank].bytes = (in->taken - shared.before[rank]) / (bytes + sizeof(struct nezha_wire)) * bytes;
		shared.result[rank].end = nezha_now();
	}
	nezha_fairlock_give(&engine->lock);
	shared.result[rank].begin = begin;
}

static void reduce(struct nezha_team *team, uint32_t bytes)
{
	const struct nezha_way way = { .block = bytes };
	uint64_t begin = nezha_now(), until = begin + (uint64_t)(options.seconds * NEZHA_SEC), all = 0;
	uint64_t more = 1;

	while (more) {
		/* Rank 0 decides for both. */
		more = rank == 0 && nezha_now() < until;
		if (nezha_allreduce(team, vector, vector, VECTOR / sizeof(float), NEZHA_FLOAT32, NEZHA_SUM, &way) ||
		    nezha_allreduce(team, &more, &more, 1, NEZHA_UINT64, NEZHA_SUM, &way))
			die("an allreduce failed");
		all += VECTOR;
	}
	shared.result[rank].bytes = all;
	shared.result[rank].begin = begin;
	shared.result[rank].end = nezha_now();
}

/* ---- measuring ---- */

/* What the processors have done since it was last called. */
static void account(void)
{
	static double user, system, unused;
	double user_before = user, system_before = system, unused_before = unused;

	processor(&user, &system);
	unused = idle();
	shared.user = user - user_before;
	shared.system = system - system_before;
	shared.idle = unused - unused_before;
}

static void tell(uint32_t bytes)
{
	double gigabytes = (double)(shared.result[0].bytes + shared.result[1].bytes) * 1e-9, rate = 0, seconds;
	uint64_t begin = shared.result[0].begin, end = 0;

	for (int r = 0; r < 2; r++) {
		uint64_t ended = shared.result[r].end;

		if (ended)
			rate += (double)shared.result[r].bytes / (double)(ended - begin);
		end = ended > end ? ended : end;
	}
	seconds = (double)sysconf(_SC_NPROCESSORS_ONLN) * (double)(end - begin) * 1e-9;
	printf("%s %u %.2f %.3f %.3f %.3f\n", ways[options.way], bytes, rate * 1e9 / (1 << 20), shared.user / gigabytes,
	       shared.system / gigabytes, (seconds - shared.idle) / gigabytes);
	fflush(stdout);
}

static void measure(struct nezha_engine *engine, struct nezha_team *team, uint32_t bytes)
{
	memset(&shared.result[rank], 0, sizeof shared.result[rank]);
	shared.before[rank] = team->left->paths[0].taken;
	shared.sent[rank] = 0;
	if (rank == 0)
		account();
	pthread_barrier_wait(&shared.barrier);
	if (options.way == REDUCE)
		reduce(team, bytes);
	else
		stream(engine, team, bytes);
	pthread_barrier_wait(&shared.barrier);
	if (rank == 0) {
		account();
		tell(bytes);
	}
	pthread_barrier_wait(&shared.barrier);
}

static void *run(void *argument)
{
	struct nezha_engine *engine;
	struct nezha_team *team;

	rank = *(int *)argument;
	vector = aligned_alloc(4096, VECTOR);
	if (!vector)
		die("no memory");
	memset(vector, 0, VECTOR);
	team = open_team(&engine);
	for (int i = 0; i < options.size_count; i++)
		measure(engine, team, options.sizes[i]);
	pthread_barrier_wait(&shared.barrier);
	nezha_team_destroy(team);
	pthread_barrier_wait(&shared.barrier);
	nezha_engine_destroy(engine);
	free(vector);
	return NULL;
}

/* ---- options ---- */

static bool parse_sizes(char *text)
{
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		char *end;
		unsigned long value = strtoul(word, &end, 10);

		value *= *end == 'K' ? 1u << 10 : *end == 'M' ? 1u << 20 : 1;
		end += *end == 'K' || *end == 'M';
		if (*end || options.size_count == SIZES_MAX || !nezha_block_fits(value)) {
			fprintf(stderr, "block_bench: size '%s': a multiple of 4K up to 4M is allowed\n", word);
			return false;
		}
		options.sizes[options.size_count++] = (uint32_t)value;
	}
	return options.size_count;
}

static bool parse_way(const char *text)
{
	for (int way = ONE; way <= REDUCE; way++)
		if (!strcmp(text, ways[way])) {
			options.way = (enum way)way;
			return true;
		}
	fprintf(stderr, "block_bench: way '%s': one, both or reduce is allowed\n", text);
	return false;
}

static bool parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:w:t:")) != -1)
		switch (option) {
		case 's':
			if (!parse_sizes(optarg))
				return false;
			break;
		case 'w':
			if (!parse_way(optarg))
				return false;
			break;
		case 't':
			options.seconds = atof(optarg);
			if (options.seconds <= 0 || options.seconds > SECONDS_MOST) {
				fprintf(stderr, "block_bench: time '%s': more than 0 and up to 60 s is allowed\n", optarg);
				return false;
			}
			break;
		default: return false;
		}
	if (optind != argc - 2 || !options.size_count)
		return false;
	options.rails[0] = argv[optind];
	options.rails[1] = argv[optind + 1];
	return true;
}

int main(int argc, char **argv)
{
	int second = 1, first = 0;
	pthread_t thread;

	if (!parse(argc, argv)) {
		fputs("usage: block_bench -s SIZE,... [-w one|both|reduce] [-t SECONDS] RAIL RAIL\n"
		      "  RAIL  of the first and the second engine: verbs:DEVICE, tcp:ADDRESS or fake\n"
		      "  -s    bytes of a block, with K or M; -t  seconds for each (1)\n", stderr);
		return 2;
	}
	if (!strcmp(options.rails[0], "fake"))
		nezha_verbs_api_use(&fake_verbs);
	/* Should one of them fail, the other does not wait for ever. */
	alarm((unsigned)(options.size_count * (options.seconds + 25) + 30));
	pthread_barrier_init(&shared.barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run, &second))
		die("no second thread");
	run(&first);
	pthread_join(thread, NULL);
	return 0;
}
