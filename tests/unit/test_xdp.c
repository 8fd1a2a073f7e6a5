/* SPDX-License-Identifier: BSD-3-Clause
 * The XDP program, run by the kernel on packets that are made up here (BPF_PROG_TEST_RUN): the slots under losses, doubles and
 * reordering, the results' bits and checksums, and that it lets alone what is none of its business.  It takes root. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/aggd_xdp.h"
#include "rails/reduce.h"
#include "tests/tools/xdp_here.h"
#include "tuning/status.h"

#define WINDOW 16
#define RANKS 3
#define CHUNK NEZHA_XDP_CHUNK
#define TOKEN 0x1122334455667788ull
#define AGGREGATOR 0x0a4d00feu           /* 10.77.0.254 */
#define GROUP 0xef4e8001u                /* 239.78.128.1: the MAC has its low 23 bits */

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct udphdr udp;
	struct nezha_ina_header header;
	char payload[NEZHA_XDP_CHUNK];
} __attribute__((packed));

static struct aggd_xdp *xdp;
static struct nezha_xdp_session session;
static struct nezha_xdp_counts base;
static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(seed >> 4) * below >> 28);
}

static void open_session(int ranks)
{
	session = (struct nezha_xdp_session){ .window = WINDOW, .ranks = (uint32_t)ranks, .chunk = CHUNK,
	                                      .address = htonl(AGGREGATOR), .group = htonl(GROUP), .port = htons(4790),
	                                      .group_port = htons(4791) };
	for (int r = 0; r < ranks; r++)
		session.members[r] = (struct nezha_xdp_member){ .address = htonl(AGGREGATOR - 253 + (uint32_t)r),
		                                                .port = htons((uint16_t)(40000 + r)) };
	assert_true(aggd_xdp_reserve(xdp, WINDOW, &session.base));
	assert_true(aggd_xdp_open(xdp, TOKEN, &session));
	aggd_xdp_count(xdp, &base);
}

static void close_session(void)
{
	aggd_xdp_close(xdp, TOKEN);
	aggd_xdp_release(xdp, WINDOW, session.base);
}

/* ---- packets ---- */

static uint32_t length_of(uint32_t seq)
{
	return seq % 5 == 4 ? 104 : CHUNK;
}

static void contribution(int rank, uint32_t seq, char *out)
{
	for (uint32_t i = 0; i < CHUNK / 8; i++) {
		uint64_t h = ((uint64_t)seq * 1000003 + (uint64_t)rank * 7919 + i + 1) * 0x9e3779b97f4a7c15ull;

		h ^= h >> 31;
		memcpy(out + i * 8, &h, 8);
	}
}

static uint32_t make(int rank, uint32_t seq, enum nezha_type type, enum nezha_op op, uint8_t flags, struct frame *out)
{
	uint32_t length = length_of(seq);
	uint16_t bytes = (uint16_t)(sizeof out->udp + sizeof out->header + length);
	const struct nezha_xdp_member *member = &session.members[rank];

	*out = (struct frame){
		.eth = { .ether_dhost = { 2, 0, 0, 0, 0, 254 }, .ether_shost = { 2, 0, 0, 0, 0, (uint8_t)rank },
		         .ether_type = htons(ETHERTYPE_IP) },
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .saddr = member->address,
		        .daddr = session.address, .tot_len = htons((uint16_t)(sizeof out->ip + bytes)) },
		.udp = { .source = member->port, .dest = session.port, .len = htons(bytes) },
		.header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_DATA, .flags = flags,
		            .type = (uint8_t)type, .op = (uint8_t)op, .token = TOKEN, .seq = seq, .call = seq / 100,
		            .block = seq / 5, .length = (uint16_t)length, .rank = (uint16_t)rank },
	};
	contribution(rank, seq, out->payload);
	return (uint32_t)(sizeof *out - sizeof out->payload) + length;
}

/* The program's word on the packet, which it may change. */
static uint32_t run(struct frame *frame, uint32_t size)
{
	struct frame out;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = size, .data_out = &out,
	            .data_size_out = sizeof out, .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(aggd_xdp_program(xdp), &options), 0);
	assert_int_equal(options.data_size_out, size);
	if (options.retval == XDP_PASS)
		assert_memory_equal(frame, &out, size);
	memcpy(frame, &out, size);
	return options.retval;
}

static uint32_t send_one(int rank, uint32_t seq, enum nezha_op op)
{
	struct frame frame;

	return run(&frame, make(rank, seq, NEZHA_INT32, op, 0, &frame));
}

/* ---- results ---- */

static uint32_t add(uint32_t sum, const void *data, size_t size)
{
	uint16_t word;

	for (size_t i = 0; i < size; i += 2) {
		memcpy(&word, (const char *)data + i, 2);
		sum += word;
	}
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

static void check_checksums(const struct frame *frame)
{
	size_t udp_bytes = ntohs(frame->udp.len);
	uint32_t sum = add(0, (const char *)frame + offsetof(struct frame, ip.saddr), 8);

	assert_int_equal(folded(add(0, (const char *)frame + offsetof(struct frame, ip), sizeof frame->ip)), 0xffff);
	assert_int_not_equal(frame->udp.check, 0);
	sum += htons(IPPROTO_UDP) + frame->udp.len;
	assert_int_equal(folded(add(sum, (const char *)frame + offsetof(struct frame, udp), udp_bytes)), 0xffff);
}

static void check_way(const struct frame *frame, bool to_all, int rank)
{
	static const uint8_t group[] = { 0x01, 0x00, 0x5e, 0x4e, 0x80, 0x01 };
	const uint8_t aggregator[] = { 2, 0, 0, 0, 0, 254 }, sender[] = { 2, 0, 0, 0, 0, (uint8_t)rank };

	assert_memory_equal(frame->eth.ether_shost, aggregator, 6);
	assert_memory_equal(frame->eth.ether_dhost, to_all ? group : sender, 6);
	assert_int_equal(frame->ip.saddr, session.address);
	assert_int_equal(frame->udp.source, session.port);
	assert_int_equal(frame->ip.daddr, to_all ? session.group : session.members[rank].address);
	assert_int_equal(frame->udp.dest, to_all ? session.group_port : session.members[rank].port);
}

static void check_result(const struct frame *frame, uint32_t size, uint32_t ranks)
{
	_Alignas(8) char wanted[CHUNK], own[CHUNK];
	struct nezha_ina_header header;
	size_t count;

	assert_int_equal(nezha_ina_check_downward(&frame->header, size - offsetof(struct frame, header), &header), NEZHA_OK);
	assert_int_equal(header.kind, NEZHA_INA_RESULT);
	assert_int_equal(header.token, TOKEN);
	count = header.length / nezha_type_size(header.type);
	/* in the ring's order, which must make no difference */
	for (uint32_t k = 0; k < ranks; k++) {
		contribution((int)((header.block + 1 + k) % ranks), header.seq, k ? own : wanted);
		if (k)
			nezha_reduce_kernel(header.type, header.op)(wanted, wanted, own, count);
	}
	assert_memory_equal(frame->payload, wanted, header.length);
	check_checksums(frame);
}

/* ---- tests ---- */

static void test_types(void **state)
{
	struct frame frame;
	uint32_t size = 0;

	(void)state;
	for (int type = 0; type < NEZHA_TYPE_COUNT; type++)
		for (int op = 0; op < NEZHA_OP_COUNT; op++) {
			if (!nezha_op_fits(op, type))
				continue;
			open_session(RANKS);
			for (int rank = 0; rank < RANKS; rank++) {
				uint32_t does, wanted = !nezha_xdp_folds((uint8_t)type, (uint8_t)op) ? XDP_PASS :
				                        rank < RANKS - 1 ? XDP_DROP : XDP_REDIRECT;

				size = make(rank, 7, type, op, 0, &frame);
				does = run(&frame, size);
				assert_int_equal(does, wanted);
				if (does == XDP_REDIRECT) {
					check_result(&frame, size, RANKS);
					check_way(&frame, true, rank);
				}
			}
			close_session();
		}
}

struct world {
	uint32_t sent[RANKS], chunks;
	bool *have[RANKS];
	uint32_t loss;                   /* per cent, each way */
};

static void deliver(struct world *world, int rank, uint32_t seq)
{
	struct frame frame;
	uint32_t size = make(rank, seq, NEZHA_INT32, NEZHA_SUM, (uint8_t)draw(2), &frame), does = run(&frame, size);

	bool to_all = frame.ip.daddr == session.group;

	if (does != XDP_REDIRECT)
		return;
	check_result(&frame, size, RANKS);
	check_way(&frame, to_all, rank);
	for (int r = 0; r < RANKS; r++)
		if ((to_all || r == rank) && draw(100) >= world->loss)
			world->have[r][seq] = true;
}

static bool done(const struct world *world)
{
	for (int r = 0; r < RANKS; r++)
		for (uint32_t s = 0; s < world->chunks; s++)
			if (!world->have[r][s])
				return false;
	return true;
}

static void test_losses(void **state)
{
	struct nezha_xdp_counts n;

	(void)state;
	for (uint32_t loss = 0; loss <= 60; loss += 20) {
		struct world world = { .chunks = 150, .loss = loss };

		open_session(RANKS);
		for (int r = 0; r < RANKS; r++)
			world.have[r] = calloc(world.chunks, sizeof(bool));
		for (int turn = 0; !done(&world); turn++) {
			int rank = (int)draw(RANKS);
			uint32_t next = world.sent[rank], seq = next ? next - 1 - draw(next < 2 * WINDOW ? next : 2 * WINDOW) : 0;

			assert_true(turn < 200000);      /* else it stands still */
			if (next < world.chunks && (next < WINDOW || world.have[rank][next - WINDOW]) && draw(3))
				seq = world.sent[rank]++;
			if (seq < world.sent[rank] && draw(100) >= loss)
				deliver(&world, rank, seq);
		}
		aggd_xdp_count(xdp, &n);
		assert_int_equal(n.results - base.results, world.chunks);
		assert_int_equal(n.packets - base.packets, world.chunks * RANKS);
		for (int r = 0; r < RANKS; r++)
			free(world.have[r]);
		close_session();
	}
}

/* Chunks of other types are the daemon's, so that numbers may be missing; old ones never come back. */
static void test_versions(void **state)
{
	struct nezha_xdp_version version;
	struct frame frame;
	uint32_t size;

	(void)state;
	open_session(2);
	assert_int_equal(send_one(0, WINDOW, NEZHA_SUM), XDP_DROP);
	assert_int_equal(send_one(0, 3 * WINDOW, NEZHA_SUM), XDP_DROP);          /* ahead: outside */
	assert_int_equal(send_one(1, WINDOW, NEZHA_SUM), XDP_REDIRECT);
	assert_int_equal(send_one(0, WINDOW, NEZHA_SUM), XDP_REDIRECT);          /* it may have been lost */
	assert_int_equal(send_one(0, 7 * WINDOW, NEZHA_SUM), XDP_DROP);
	assert_int_equal(send_one(1, WINDOW, NEZHA_SUM), XDP_DROP);              /* of laps ago */
	assert_true(aggd_xdp_look(xdp, &session, 7 * WINDOW, &version));
	assert_int_equal(version.header.seq, 7 * WINDOW);
	assert_int_equal(version.in[0], 1);
	assert_false(version.complete);
	size = make(0, 7 * WINDOW, NEZHA_INT32, NEZHA_SUM, NEZHA_INA_AGAIN, &frame);
	assert_int_equal(run(&frame, size), XDP_PASS);                           /* the daemon says who is missing */
	assert_int_equal(send_one(1, 7 * WINDOW, NEZHA_MAX), XDP_PASS);          /* ... and what is wrong */
	assert_int_equal(send_one(1, 7 * WINDOW, NEZHA_SUM), XDP_REDIRECT);
	close_session();
	assert_int_equal(send_one(0, 8 * WINDOW, NEZHA_SUM), XDP_PASS);          /* of no session */
}

/* What still runs with a session that is over must not touch the versions of the next one. */
static void test_owner(void **state)
{
	struct nezha_xdp_version version;
	struct nezha_xdp_counts n;

	(void)state;
	open_session(2);
	assert_true(aggd_xdp_open(xdp, TOKEN + 1, &session));
	assert_int_equal(send_one(0, 0, NEZHA_SUM), XDP_DROP);
	aggd_xdp_count(xdp, &n);
	assert_int_equal(n.outside - base.outside, 1);
	assert_true(aggd_xdp_look(xdp, &session, 0, &version));
	assert_int_equal(version.header.token, TOKEN + 1);
	assert_false(version.used);
	aggd_xdp_close(xdp, TOKEN + 1);
	close_session();
}

static void alter(struct frame *frame, uint32_t what)
{
	switch (what) {
	case 0: frame->eth.ether_type = htons(ETHERTYPE_ARP); break;
	case 1: frame->ip.ihl = 6; break;
	case 2: frame->ip.protocol = IPPROTO_TCP; break;
	case 3: frame->ip.frag_off = htons(0x2000); break;
	case 4: frame->ip.saddr ^= htonl(1); break;
	case 5: frame->ip.daddr ^= htonl(1); break;
	case 6: frame->udp.source ^= htons(1); break;
	case 7: frame->udp.dest ^= htons(1); break;
	case 8: frame->udp.len = htons(ntohs(frame->udp.len) - 8); break;
	case 9: frame->header.magic++; break;
	case 10: frame->header.version++; break;
	case 11: frame->header.kind = NEZHA_INA_RESULT; break;
	case 12: frame->header.flags = 2; break;
	case 13: frame->header.type = NEZHA_FLOAT32; break;
	case 14: frame->header.op = NEZHA_LAND; break;
	case 15: frame->header.zero = 1; break;
	case 16: frame->header.token++; break;
	case 17: frame->header.length += 4; break;
	case 18: frame->header.length = 0; break;
	case 19: frame->header.rank = RANKS; break;
	case 20: frame->header.rank = 256; break;
	case 21: frame->header.rank = 65535; break;
	case 22: frame->header.rank ^= 1; break;
	case 23: frame->header.op = 255; break;
	case 24: frame->header.type = 255; break;
	default: fail();
	}
}

/* Anything but a member's contribution passes, unchanged, and leaves no trace. */
static void test_foreign(void **state)
{
	struct nezha_xdp_counts n;
	struct frame frame;
	uint32_t size;

	(void)state;
	open_session(RANKS);
	for (uint32_t what = 0; what <= 24; what++) {
		size = make(1, 3, NEZHA_INT32, NEZHA_SUM, 0, &frame);
		alter(&frame, what);
		assert_int_equal(run(&frame, size), XDP_PASS);
	}
	for (uint32_t cut = sizeof(struct ether_header); cut < size; cut += 1 + draw(40)) {
		make(1, 3, NEZHA_INT32, NEZHA_SUM, 0, &frame);
		assert_int_equal(run(&frame, cut), XDP_PASS);
	}
	for (int i = 0; i < 2000; i++) {
		size = make(1, 3, NEZHA_INT32, NEZHA_SUM, 0, &frame);
		frame.ip.saddr = 0;              /* else some changes would be harmless */
		for (uint32_t k = draw(20); k; k--)
			((uint8_t *)&frame)[draw(74)] = (uint8_t)draw(256);
		if (frame.ip.saddr != session.members[1].address)
			assert_int_equal(run(&frame, sizeof frame - draw(CHUNK)), XDP_PASS);
	}
	aggd_xdp_count(xdp, &n);
	assert_memory_equal(&n, &base, sizeof n);
	close_session();
}

static void test_room(void **state)
{
	uint32_t a, b, c;

	(void)state;
	assert_true(aggd_xdp_reserve(xdp, 64, &a));
	assert_true(aggd_xdp_reserve(xdp, 64, &b));
	assert_int_not_equal(a, b);
	assert_false(aggd_xdp_reserve(xdp, 256, &c));
	aggd_xdp_release(xdp, 64, a);
	assert_true(aggd_xdp_reserve(xdp, 32, &c));
	aggd_xdp_release(xdp, 32, c);
	aggd_xdp_release(xdp, 64, b);
	assert_true(aggd_xdp_reserve(xdp, 128, &a));
	aggd_xdp_release(xdp, 128, a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_room),
	};
	int status;

	if (aggd_xdp_create(300 * AGGD_XDP_VERSION_BYTES, &xdp) != NEZHA_OK) {
		bool refused = xdp_is_here();

		puts(refused ? "FAILED: the kernel does not load this XDP program, but others" : "skipped: no XDP program can be loaded here");
		return refused ? 1 : 77;
	}
	status = cmocka_run_group_tests_name("xdp", tests, NULL, NULL);
	aggd_xdp_destroy(xdp);
	return status;
}
