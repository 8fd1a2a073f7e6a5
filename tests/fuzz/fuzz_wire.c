/* SPDX-License-Identifier: BSD-3-Clause
 * What a neighbour may send: the input is the byte stream of a data connection, forward into a rank that is in the
 * middle of a call, and the same bytes again as backward records. Nothing may be read or written outside the buffers.
 * Then all of it once more with NEZHA_CHECK=crc, and CRCs that hold: no mutation would ever find them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/call.h"
#include "rails/crc32c.h"
#include "rails/engine.h"
#include "rails/inlink.h"
#include "rails/link.h"
#include "rails/verbs_message.h"
#include "tests/fuzz/fuzz.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define COUNT 9000            /* elements of 4 bytes: 9 blocks of 4 KiB, the last one short */
#define UNDER_WAY 2           /* blocks that were sent and are not acknowledged */
#define PIECE 60000           /* bytes that surely fit a socket pair's buffer */

struct world {
	struct nezha_engine engine;
	struct nezha_team team;
	float send[COUNT], recv[COUNT];
	uint64_t note[NEZHA_CALL_VALUES];
};

/* Some blocks have gone over the path, as far as it knows. */
static void send_some(struct nezha_link *link)
{
	for (int i = 0; i < UNDER_WAY; i++) {
		struct nezha_tx *tx = TAILQ_FIRST(&link->queue);

		TAILQ_REMOVE(&link->queue, tx, entry);
		link->queued -= tx->length;
		tx->where = NEZHA_TX_SENT;
		tx->end = 10000;
		TAILQ_INSERT_TAIL(&link->paths[0].sent, tx, entry);
	}
}

static void begin(struct world *world, bool crc)
{
	struct nezha_engine *engine = &world->engine;
	struct nezha_team *team = &world->team;
	struct nezha_card card = { .protocol = NEZHA_PROTOCOL, .process = 2 };
	struct nezha_grid grid;

	nezha_fairlock_init(&engine->lock);
	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	engine->card.rail_count = 1;
	engine->config.crc = crc;
	team->engine = engine;
	team->id = 7;
	team->ranks = 3;
	team->rank = 1;
	team->call.team = team;
	TAILQ_INIT(&team->held);
	TAILQ_INIT(&team->eager);
	team->right = nezha_link_get(engine, &card);
	team->left = nezha_inlink_get(engine, 0);
	LIST_INSERT_HEAD(&engine->teams, team, entry);
	LIST_INSERT_HEAD(nezha_engine_bucket(engine, team->id), team, same);
	if (!team->right || !team->left || nezha_grid_make(sizeof world->send, 4096, &grid) != NEZHA_OK ||
	    nezha_call_begin(&team->call, &grid, NEZHA_FLOAT32, NEZHA_SUM, world->send, world->recv, world->note) != NEZHA_OK)
		abort();
	team->call.op = team->entered = 1;
	team->call.active = true;
	LIST_INSERT_HEAD(&engine->busy, team, busy);
	nezha_call_start(&team->call);
	send_some(team->right);
}

static void end(struct world *world)
{
	struct nezha_team *team = &world->team;

	team->call.active = false;
	nezha_link_forget(team->right, team, true);
	nezha_inlink_forget(team, true);
	nezha_inlink_destroy(team->left);
	nezha_link_destroy(team->right);
	nezha_call_free(&team->call);
	close(world->engine.epoll);
	nezha_fairlock_destroy(&world->engine.lock);
}

static void forward(struct world *world, const uint8_t *data, size_t size)
{
	struct nezha_inpath *inpath = &world->team.left->paths[0];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		abort();
	nezha_inlink_attach(world->team.left, 0,
	                    &(struct nezha_connection){ .ops = &nezha_tcp_rail, .fd = pair[0], .events = -1 });
	while (size && inpath->up) {
		size_t piece = size < PIECE ? size : PIECE;

		if (write(pair[1], data, piece) != (ssize_t)piece)
			break;
		data += piece;
		size -= piece;
		for (int turn = 0; turn < 1000 && inpath->up; turn++) {
			nezha_inlink_receive(inpath);
			if (!inpath->more)
				break;
		}
	}
	close(pair[1]);
}

static void backward(struct world *world, const uint8_t *data, size_t size)
{
	struct nezha_path *path = &world->team.right->paths[0];
	struct nezha_wire record;

	path->written = 100000;
	for (; size >= sizeof record; data += sizeof record, size -= sizeof record) {
		memcpy(&record, data, sizeof record);
		if (world->engine.config.crc)
			record.crc = 0;
		nezha_wire_seal(&record, world->engine.config.crc);
		if (nezha_link_backward(path, &record) != NEZHA_OK)
			return;
	}
}

/* Gives the records their CRCs, and the payloads theirs where the record has 0. */
static void seal(uint8_t *data, size_t size)
{
	struct nezha_wire record;

	while (size >= sizeof record) {
		size_t payload = size - sizeof record;

		memcpy(&record, data, sizeof record);
		payload = record.length < payload ? record.length : payload;
		if (!record.payload_crc)
			record.payload_crc = nezha_crc32c(data + sizeof record, payload);
		record.crc = 0;
		nezha_wire_seal(&record, true);
		memcpy(data, &record, sizeof record);
		data += sizeof record + payload;
		size -= sizeof record + payload;
	}
}

static void run(const uint8_t *data, size_t size, bool crc)
{
	struct world *world = calloc(1, sizeof *world);
	uint8_t *copy = malloc(size + 1);

	if (!world || !copy)
		abort();
	memcpy(copy, data, size);
	if (crc)
		seal(copy, size);
	begin(world, crc);
	forward(world, copy, size);
	backward(world, copy, size);
	end(world);
	free(world);
	free(copy);
}

/* The input as one message of a verbs path: if it is one, it ends with a payload, or has the first piece of one. */
static void message(const uint8_t *data, size_t size)
{
	struct nezha_wire record;

	if (!nezha_verbs_message_is_whole((const char *)data, (uint32_t)size, 0))
		return;
	while (size) {
		fuzz_assert(size >= sizeof record);
		memcpy(&record, data, sizeof record);
		size -= sizeof record;
		fuzz_assert(record.length <= size || size == NEZHA_VERBS_PIECE);
		if (record.length > size)
			return;
		data += sizeof record + record.length;
		size -= record.length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int quiet;

	if (!quiet++)
		nezha_log_open(NEZHA_LOG_ERROR, "/dev/null", -1);
	message(data, size);
	run(data, size, false);
	run(data, size, true);
	return 0;
}
