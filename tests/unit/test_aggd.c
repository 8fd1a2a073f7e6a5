/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation daemon's protocol: full ports, refused runs of packets, forged packets and joins, ranks that never
 * come. */
#include "tests/unit/aggd_bed.h"

#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tuning/log.h"

static void test_full_port(void **state)
{
	struct bed_rank slow[BED_RANKS], other[BED_RANKS];

	(void)state;
	bed_open_session(0, slow);
	bed_open_session(1, other);
	bed_exchange(slow, 0, 2);
	atomic_store(&bed_network.full, 1);
	bed_contribute(&slow[0], 2, 10);
	bed_contribute(&slow[1], 2, 10);
	for (uint32_t seq = 0; seq < 8; seq++)
		bed_exchange(other, seq, seq + 1);
	for (int r = 0; r < BED_RANKS; r++)
		bed_expect_nothing(&slow[r]);
	atomic_store(&bed_network.full, 0);
	for (int r = 0; r < BED_RANKS; r++)
		bed_expect(&slow[r], 2, 10);         /* though nobody has asked again */
	bed_exchange(slow, 10, 12);
	bed_leave(slow);
	bed_leave(other);
	bed_stop();
	assert_int_equal(bed_stats.deferred, 8 * BED_RANKS);
	assert_int_equal(bed_stats.again, 0);
	assert_false(atomic_load(&bed_network.polled));      /* it waits nowhere but in its loop */
}

static void test_ends_in_debt(void **state)
{
	struct bed_rank ranks[BED_RANKS];

	(void)state;
	bed_open_session(0, ranks);
	atomic_store(&bed_network.full, 1);
	bed_contribute(&ranks[0], 0, 8);
	bed_contribute(&ranks[1], 0, 8);
	bed_leave(ranks);
	atomic_store(&bed_network.full, 0);
	bed_open_session(0, ranks);
	bed_exchange(ranks, 0, 8);
	bed_leave(ranks);
	bed_stop();
}

static void test_refused_runs(void **state)
{
	struct bed_rank narrow[BED_RANKS], other[BED_RANKS];
	int before;

	(void)state;
	bed_open_session(0, narrow);
	bed_open_session(1, other);
	atomic_store(&bed_network.refused, 1);
	bed_exchange(narrow, 0, 8);
	bed_exchange(narrow, 8, 16);
	before = atomic_load(&bed_network.runs[1]);
	bed_exchange(other, 0, 8);
	assert_true(atomic_load(&bed_network.runs[1]) > before);      /* the other session's still go in runs */
	/* a new session begins anew */
	bed_leave(narrow);
	atomic_store(&bed_network.refused, 0);
	bed_open_session(0, narrow);
	before = atomic_load(&bed_network.runs[0]);
	bed_exchange(narrow, 0, 8);
	assert_true(atomic_load(&bed_network.runs[0]) > before);
	bed_leave(narrow);
	bed_leave(other);
	bed_stop();
	assert_int_equal(bed_stats.again, 0);
}

static void forge(int fd, struct bed_packet packet)
{
	memset(packet.data, 0x7f, sizeof packet.data);
	assert_int_equal(send(fd, &packet, sizeof packet, 0), sizeof packet);
}

/* Packets of the right form, wrong in one thing each. */
static void test_forged_packets(void **state)
{
	struct bed_rank ranks[BED_RANKS], other[BED_RANKS];
	struct bed_packet packet;
	int stranger;

	(void)state;
	bed_open_session(0, ranks);
	bed_open_session(1, other);
	stranger = bed_connected(SOCK_DGRAM);
	forge(stranger, bed_contribution(&ranks[0], 0));      /* the token, but another port */
	packet = bed_contribution(&ranks[0], 0);
	packet.header.token ^= 1;
	forge(ranks[0].udp, packet);                      /* no such token */
	packet = bed_contribution(&ranks[0], 0);
	packet.header.token = other[0].token;
	forge(ranks[0].udp, packet);                      /* another job's */
	forge(ranks[0].udp, bed_contribution(&ranks[1], 0));  /* another rank's place */
	packet = bed_contribution(&ranks[0], 0);
	packet.header.rank = NEZHA_INA_RANKS_MAX - 1;
	forge(ranks[0].udp, packet);                      /* a rank that there is not */
	packet = bed_contribution(&ranks[0], 0);
	packet.header.kind = NEZHA_INA_RESULT;
	forge(ranks[0].udp, packet);                      /* no rank says that */
	packet = bed_contribution(&ranks[0], 100);
	forge(ranks[0].udp, packet);                      /* a chunk far ahead */
	bed_exchange(ranks, 0, 8);
	bed_exchange(other, 0, 8);
	bed_expect_nothing(&ranks[0]);
	bed_expect_nothing(&other[0]);
	close(stranger);
	bed_leave(ranks);
	bed_leave(other);
	bed_stop();
	assert_int_equal(bed_stats.foreign, 5);
	assert_int_equal(bed_stats.garbage, 1);
	assert_int_equal(bed_stats.outside, 1);
	assert_int_equal(bed_stats.results, 16);
}

/* A join without the team's key, or with the proof of another nonce, neither enters a session nor ends one. */
static void test_forged_joins(void **state)
{
	static const unsigned char other_key[NEZHA_KEY_BYTES] = "another job's key";
	struct bed_rank ranks[BED_RANKS], stranger;
	struct nezha_ina_record record;
	char byte;

	(void)state;
	bed_open_session(0, ranks);
	for (int k = 0; k < 2; k++) {
		unsigned char nonce[NEZHA_INA_NONCE_BYTES] = { 0 };

		stranger = (struct bed_rank){ 0, 0, bed_connected(SOCK_STREAM), -1, 0 };
		bed_hear(&stranger, NEZHA_INA_CHALLENGE, &record);
		memcpy(nonce, record.nonce, k ? sizeof nonce : 0);
		nezha_ina_record_make(NEZHA_INA_JOIN, &record);
		record.join = (struct nezha_ina_join){ .ranks = BED_RANKS, .rank = 0, .port = 4791, .chunk = BED_CHUNK, .window = 16 };
		nezha_ina_prove(k ? other_key : bed_key, bed_name(0), nonce, &record.join);
		if (k) {
			/* the team's public key with another one's signature */
			struct nezha_ina_join right = record.join;

			nezha_ina_prove(bed_key, bed_name(0), nonce, &right);
			memcpy(record.join.team, right.team, sizeof right.team);
		}
		assert_int_equal(send(stranger.control, &record, sizeof record, 0), sizeof record);
		assert_int_equal(recv(stranger.control, &byte, 1, 0), 0);
		close(stranger.control);
	}
	bed_exchange(ranks, 0, 4);
	bed_leave(ranks);
	bed_stop();
	assert_int_equal(bed_stats.garbage, 2);
	assert_int_equal(bed_stats.sessions, 1);
}

/* Ranks wait for each other, but not for ever: those that are there are told, and may come again. */
static void test_forming_limit(void **state)
{
	struct bed_rank before, alone, ranks[BED_RANKS];
	struct nezha_ina_record record;

	(void)state;
	/* It joins twice: the daemon closes the first connection when it takes the second one's place.  A clock that goes on
	 * earlier would be that of the session's beginning, too. */
	before = bed_join(0, 0, bed_key);
	alone = bed_join(0, 0, bed_key);
	assert_int_equal(recv(before.control, &record, 1, 0), 0);
	close(before.control);
	close(before.udp);
	atomic_fetch_add(&bed_network.ahead, 11);
	bed_hear(&alone, NEZHA_INA_OVER, &record);
	assert_string_equal(record.text, "not all ranks have come in time");
	assert_int_equal(recv(alone.control, &record, 1, 0), 0);
	close(alone.control);
	close(alone.udp);
	bed_open_session(0, ranks);
	bed_exchange(ranks, 0, 2);
	bed_leave(ranks);
	bed_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_full_port, bed_start),
		cmocka_unit_test_setup(test_ends_in_debt, bed_start),
		cmocka_unit_test_setup(test_refused_runs, bed_start),
		cmocka_unit_test_setup(test_forged_packets, bed_start),
		cmocka_unit_test_setup(test_forged_joins, bed_start),
		cmocka_unit_test_setup(test_forming_limit, bed_start),
	};

	if (sodium_init() < 0)
		return 1;
	nezha_log_open(NEZHA_LOG_ERROR, NULL, -1);
	return cmocka_run_group_tests_name("aggd", tests, NULL, NULL);
}
