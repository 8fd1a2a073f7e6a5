/* SPDX-License-Identifier: BSD-3-Clause
 * How the engine attends to paths whose data go apart from their connection (rail.h), and what it leaves behind on a path, with rails
 * made up for it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/probing.h"
#include "tests/conformance/world.h"
#include "tuning/status.h"

#define MSEC 1000u          /* us */
#define PATIENCE 5000       /* ms */

/* ---- a rail that carries nothing ---- */

static int send_nothing(struct nezha_path *path)
{
	(void)path;
	return NEZHA_INPROGRESS;
}

static int hear_nothing(struct nezha_path *path)
{
	(void)path;
	return NEZHA_OK;
}

static int sample_nothing(struct nezha_path *path, struct nezha_path_sample *out)
{
	memset(out, 0, sizeof *out);
	out->acked = path->written;
	return NEZHA_OK;
}

static int receive_nothing(struct nezha_inpath *inpath)
{
	(void)inpath;
	return NEZHA_OK;
}

static int reply_nothing(struct nezha_inpath *inpath, const struct nezha_wire *record)
{
	(void)inpath, (void)record;
	return NEZHA_OK;
}

static void close_path(struct nezha_path *path)
{
	close(path->end.fd);
}

static void close_inpath(struct nezha_inpath *inpath)
{
	close(inpath->end.fd);
}

static const struct nezha_rail_ops silent_rail = {
	.name = "silent", .apart = true, .send = send_nothing, .listen = hear_nothing, .sample = sample_nothing,
	.receive = receive_nothing, .reply = reply_nothing, .close_path = close_path, .close_inpath = close_inpath,
};

/* It takes a record and half of its payload, as if the network were full then. */
static int send_half(struct nezha_path *path)
{
	path->written += path->out.record_left + path->out.payload_left / 2;
	path->out.record_left = 0;
	path->out.payload_left -= path->out.payload_left / 2;
	return path->out.payload_left ? NEZHA_INPROGRESS : NEZHA_OK;
}

static const struct nezha_rail_ops full_rail = {
	.name = "full", .apart = true, .send = send_half, .listen = hear_nothing, .sample = sample_nothing,
	.receive = receive_nothing, .reply = reply_nothing, .close_path = close_path, .close_inpath = close_inpath,
};

/* A connection of it; *peer is the other end.  No two are named alike: what the other rank says of a lost one of its own is meant for
 * none of ours. */
static struct nezha_connection connect_over(const struct nezha_rail_ops *ops, int *peer)
{
	static _Atomic uint32_t last = 0;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		abort();
	*peer = fds[1];
	return (struct nezha_connection){ .ops = ops, .id = ++last, .fd = fds[0], .events = -1 };
}

/* ---- an engine that is driven ---- */

struct driver {
	pthread_t thread;
	struct nezha_engine *engine;
	bool stop;              /* under the engine's lock */
};

static void *drive(void *argument)
{
	struct driver *driver = argument;

	nezha_fairlock_take(&driver->engine->lock);
	while (!driver->stop)
		nezha_engine_wait(driver->engine);
	nezha_fairlock_give(&driver->engine->lock);
	return NULL;
}

static void start_driver(struct driver *driver, struct nezha_engine *engine)
{
	*driver = (struct driver){ .engine = engine };
	if (pthread_create(&driver->thread, NULL, drive, driver))
		abort();
}

static void stop_driver(struct driver *driver)
{
	nezha_fairlock_take(&driver->engine->lock);
	driver->stop = true;
	nezha_fairlock_give(&driver->engine->lock);
	pthread_join(driver->thread, NULL);
}

/* A rail's two ends, as the test changes them: the path to the right neighbour, or the inpath from the left one. */
struct ends {
	struct nezha_link *link;        /* NULL: the inpath */
	struct nezha_inlink *inlink;
};

static void attach(const struct ends *ends, const struct nezha_connection *connection)
{
	if (ends->link)
		nezha_link_attach(ends->link, 0, connection);
	else
		nezha_inlink_attach(ends->inlink, 0, connection);
}

/* Whether the connection of `fd` is in use. */
static bool is_up(const struct ends *ends, int fd)
{
	const struct nezha_endpoint *end = ends->link ? &ends->link->paths[0].end : &ends->inlink->paths[0].end;

	return end->fd == fd && (ends->link ? ends->link->paths[0].up : ends->inlink->paths[0].up);
}

static bool is_up_locked(struct nezha_engine *engine, const struct ends *ends, int fd)
{
	bool up;

	nezha_fairlock_take(&engine->lock);
	up = is_up(ends, fd);
	nezha_fairlock_give(&engine->lock);
	return up;
}

/* The peer of one connection goes; before the driver, who has got the event, has the lock, there is another one. */
static void replace_in_time(struct member *member, const struct ends *ends)
{
	struct nezha_engine *engine = member->engine;
	struct nezha_connection first, second;
	int first_peer, second_peer;

	first = connect_over(&silent_rail, &first_peer);
	second = connect_over(&silent_rail, &second_peer);
	nezha_fairlock_take(&engine->lock);
	attach(ends, &first);
	nezha_fairlock_give(&engine->lock);
	usleep(5 * MSEC);
	nezha_fairlock_take(&engine->lock);
	close(first_peer);
	usleep(5 * MSEC);
	attach(ends, &second);
	nezha_fairlock_give(&engine->lock);
	usleep(10 * MSEC);
	EXPECT(member, is_up_locked(engine, ends, second.fd));
	close(second_peer);
	for (int i = 0; i < PATIENCE && is_up_locked(engine, ends, second.fd); i++)
		usleep(MSEC);
	EXPECT(member, !is_up_locked(engine, ends, second.fd));
}

/* From now on nobody connects rail 0; on all ranks. */
static void leave_rail_0(struct member *member)
{
	nezha_fairlock_take(&member->engine->lock);
	member->team->right->paths[0].joined = false;
	nezha_fairlock_give(&member->engine->lock);
	world_barrier(member);
}

static void replace(struct member *member, void *argument)
{
	struct ends path = { .link = member->team->right }, inpath = { .inlink = member->team->left };
	struct driver driver;

	(void)argument;
	leave_rail_0(member);
	start_driver(&driver, member->engine);
	for (int i = 0; i < 10; i++) {
		replace_in_time(member, &path);
		replace_in_time(member, &inpath);
	}
	stop_driver(&driver);
	world_barrier(member);
}

static void test_event_of_an_older_connection(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, replace, NULL), 0);
}

/* ---- what was taken in of a connection that is lost ---- */

#define GOOD_BYTES 100
#define MORE_BYTES 500

/* A whole record with its payload, then one that makes no sense, and more behind it. */
struct message {
	struct nezha_wire good;
	char payload[GOOD_BYTES];
	struct nezha_wire wrong;
	char more[MORE_BYTES];
} __attribute__((packed));

static void take_wrong_record(struct member *member, void *argument)
{
	struct nezha_inpath *inpath = &member->team->left->paths[0];
	struct message message = { .good = nezha_wire_make(NEZHA_WIRE_PROBE, 0, 0) };
	struct nezha_connection connection;
	int peer;

	(void)argument;
	leave_rail_0(member);
	message.good.length = GOOD_BYTES;
	connection = connect_over(&silent_rail, &peer);
	nezha_fairlock_take(&member->engine->lock);
	nezha_inlink_attach(member->team->left, 0, &connection);
	EXPECT(member, nezha_inlink_take(inpath, (const char *)&message, sizeof message) == NEZHA_ERR_PROTOCOL);
	nezha_inlink_path_fail(inpath, "it makes no sense");
	EXPECT(member, inpath->lost && inpath->lost_taken == offsetof(struct message, more));
	nezha_fairlock_give(&member->engine->lock);
	close(peer);
	world_barrier(member);
}

/* The peer does not send again what it is told was taken in; what came behind a wrong record in the same message was not. */
static void test_behind_a_wrong_record(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, take_wrong_record, NULL), 0);
}

/* ---- a path that is back ---- */

static _Atomic int returns[2];      /* by rank: how often a path of it was said to be back */

static void count_return(struct nezha_path *path)
{
	returns[path->link->engine->config.process]++;
}

static const struct nezha_rail_ops returning_rail = {
	.name = "returning", .apart = true, .send = send_nothing, .listen = hear_nothing, .sample = sample_nothing,
	.receive = receive_nothing, .reply = reply_nothing, .returned = count_return, .close_path = close_path,
	.close_inpath = close_inpath,
};

/* A path over rail 0 that was never lost, then three times one that was. */
static void come_back(struct member *member, void *argument)
{
	struct nezha_path *path = &member->team->right->paths[0];
	struct nezha_connection connection;
	int peer;

	(void)argument;
	returns[member->rank] = 0;
	leave_rail_0(member);
	nezha_fairlock_take(&member->engine->lock);
	nezha_link_path_fail(path, "the test says so");
	path->lost = 0;
	for (int i = 0; i < 4; i++) {
		connection = connect_over(&returning_rail, &peer);
		path->rises = 1;        /* as if it had been lost while it rose */
		nezha_link_attach(member->team->right, 0, &connection);
		EXPECT(member, path->up && !path->rises && returns[member->rank] == i);
		nezha_link_path_fail(path, "the test says so");
		close(peer);
	}
	nezha_fairlock_give(&member->engine->lock);
	world_barrier(member);
}

/* The rail is told of a path that is back, and of none that is new. */
static void test_told_of_a_return(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, come_back, NULL), 0);
}

/* ---- a call that is given up ---- */

static int give_up(void *context, uint64_t final, uint64_t *ready)
{
	(void)context, (void)final, (void)ready;
	return NEZHA_ERR_NOMEM;
}

/* All blocks of a call go to rail 0, which takes half of the first one; then the call ends in an error on this rank. */
static void leave_half_a_block(struct member *member, void *argument)
{
	struct nezha_path *path = &member->team->right->paths[0];
	float *vector = calloc(50000, sizeof *vector);
	struct nezha_connection connection;
	int peer;

	(void)argument;
	leave_rail_0(member);
	connection = connect_over(&full_rail, &peer);
	nezha_fairlock_take(&member->engine->lock);
	nezha_link_attach(member->team->right, 0, &connection);
	/* Nothing goes before the block. */
	path->out = (struct nezha_outgoing){ .payload = NULL };
	path->sync = false;
	path->probe_left = 0;
	path->written = 0;
	path->ready = true;
	nezha_fairlock_give(&member->engine->lock);
	EXPECT(member, nezha_allreduce(member->team, vector, vector, 50000, NEZHA_FLOAT32, NEZHA_SUM,
	                               &(struct nezha_way){ .block = 16384, .rails = 1, .work = give_up }) == NEZHA_ERR_NOMEM);
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, path->written > 0);
	/* Whatever came next on the connection would be the rest of the block. */
	EXPECT(member, !path->up && path->end.fd < 0);
	nezha_fairlock_give(&member->engine->lock);
	close(peer);
	free(vector);
	world_barrier(member);
}

static void test_half_a_block_is_left(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, leave_half_a_block, NULL), 0);
}

/* ---- probes ---- */

#define PROBES_FOR 40000000u    /* bytes after which a slow path that was not measured is probed */
#define SLOW_LINK 1e6           /* bytes per second */

/* Calls begin while a path is lost, and one in the midst of which it is: when it is back, no probe is due for them. */
static void come_back_unmeasured(struct member *member, void *argument)
{
	struct nezha_path *path = &member->team->right->paths[0];
	float *vector = calloc(PROBES_FOR / 4, sizeof *vector);
	struct nezha_connection connection;
	int peer;

	(void)argument;
	leave_rail_0(member);
	nezha_fairlock_take(&member->engine->lock);
	nezha_link_path_fail(path, "the test says so");
	nezha_fairlock_give(&member->engine->lock);
	for (int i = 0; i < 2; i++)
		EXPECT(member, nezha_allreduce(member->team, vector, vector, PROBES_FOR / 4, NEZHA_FLOAT32, NEZHA_SUM,
		                               &(struct nezha_way){ .block = 65536 }) == NEZHA_OK);
	connection = connect_over(&silent_rail, &peer);
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, !path->up && member->team->right->paths[1].up);
	nezha_link_attach(member->team->right, 0, &connection);
	EXPECT(member, path->up && !nezha_probe_is_due(&path->probe, &path->estimator, SLOW_LINK, true));
	nezha_fairlock_give(&member->engine->lock);
	close(peer);
	free(vector);
	world_barrier(member);
}

static void test_no_probe_for_what_went_while_lost(void **state)
{
	(void)state;
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, come_back_unmeasured, NULL), 0);
}

/* A path as fast as the other one, in the midst of a probe that nobody takes: blocks that waited for the end of it would never go. */
static void pass_a_probe(struct member *member, void *argument)
{
	struct nezha_path *path = &member->team->right->paths[0];
	float *vector = calloc(50000, sizeof *vector);
	struct nezha_connection connection;
	int peer;

	(void)argument;
	leave_rail_0(member);
	connection = connect_over(&silent_rail, &peer);
	nezha_fairlock_take(&member->engine->lock);
	nezha_link_attach(member->team->right, 0, &connection);
	path->estimator.rate = member->team->right->paths[1].estimator.rate;
	nezha_probing_begin(path);
	EXPECT(member, path->up && path->probe_left);
	nezha_fairlock_give(&member->engine->lock);
	EXPECT(member, nezha_allreduce(member->team, vector, vector, 50000, NEZHA_FLOAT32, NEZHA_SUM,
	                               &(struct nezha_way){ .block = 16384 }) == NEZHA_OK);
	nezha_fairlock_take(&member->engine->lock);
	EXPECT(member, path->up && path->probe_left);
	nezha_fairlock_give(&member->engine->lock);
	close(peer);
	free(vector);
	world_barrier(member);
}

static void test_blocks_pass_a_probe(void **state)
{
	(void)state;
	alarm(60);      /* of all ranks: they are threads */
	assert_int_equal(world_run(2, 2, NEZHA_POLICY_ECF, pass_a_probe, NULL), 0);
	alarm(0);
}

/* The second path has a fiftieth of the first one's rate: in a call of a block for each rank all blocks are sooner there by the first one. */
static void note_on_a_small_call(struct member *member, void *argument)
{
	float *vector = calloc(4096, sizeof *vector);
	uint64_t before, note[NEZHA_NOTE_VALUES] = { 0 };

	(void)argument;
	before = member->engine->stats[1].bytes_sent;
	for (int i = 0; i < 20; i++) {
		nezha_fairlock_take(&member->engine->lock);
		member->team->right->paths[0].estimator.rate = 1e8;
		member->team->right->paths[1].estimator.rate = 2e6;
		nezha_fairlock_give(&member->engine->lock);
		EXPECT(member, nezha_allreduce(member->team, vector, vector, 4096, NEZHA_FLOAT32, NEZHA_SUM,
		                               &(struct nezha_way){ .block = 4096, .note = note }) == NEZHA_OK);
	}
	EXPECT(member, member->engine->stats[1].bytes_sent == before);
	free(vector);
	world_barrier(member);
}

/* So the note does not wake the slow one. */
static void test_note_goes_where_blocks_go(void **state)
{
	(void)state;
	assert_int_equal(world_run(4, 2, NEZHA_POLICY_ECF, note_on_a_small_call, NULL), 0);
}

/* ---- between calls ---- */

static void hear_between_calls(struct member *member, void *argument)
{
	(void)argument;
	EXPECT(member, nezha_team_attend(member->team) == NEZHA_OK);
	world_barrier(member);
	if (member->rank == 1)
		nezha_team_give_up(member->team);
	for (int i = 0; i < PATIENCE && nezha_team_attend(member->team) == NEZHA_OK; i++)
		usleep(MSEC);
	EXPECT(member, nezha_team_attend(member->team) == NEZHA_ERR_UNREACHABLE);
	world_barrier(member);
}

/* Who waits for the other ranks outside of a call hears that one of them has given up, also of one that is no neighbour. */
static void test_given_up_between_calls(void **state)
{
	(void)state;
	assert_int_equal(world_run(5, 2, NEZHA_POLICY_ECF, hear_between_calls, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_of_an_older_connection),
		cmocka_unit_test(test_behind_a_wrong_record),
		cmocka_unit_test(test_told_of_a_return),
		cmocka_unit_test(test_half_a_block_is_left),
		cmocka_unit_test(test_no_probe_for_what_went_while_lost),
		cmocka_unit_test(test_blocks_pass_a_probe),
		cmocka_unit_test(test_note_goes_where_blocks_go),
		cmocka_unit_test(test_given_up_between_calls),
	};

	return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
