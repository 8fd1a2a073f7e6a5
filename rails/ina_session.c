/* SPDX-License-Identifier: BSD-3-Clause
 * A rank's control session with its aggregator. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rails/ina.h"
#include "rails/service.h"
#include "tuning/log.h"
#include "tuning/pause.h"
#include "tuning/status.h"

#define CONNECT_LIMIT NEZHA_SEC
#define CHALLENGE_LIMIT NEZHA_SEC
#define JOIN_LIMIT (5 * NEZHA_SEC)       /* the other ranks' */
#define SETTLE_LIMIT (3 * NEZHA_SEC)
#define PAUSE_LEAST (20 * NEZHA_MSEC)
#define PAUSE_MOST (640 * NEZHA_MSEC)
#define BARREN_MOST 3                    /* after so many sessions that were opened for nothing, */
#define PAUSE_BARREN (10 * NEZHA_SEC)    /* ... the most: its packets do not get through, and each costs a call 90 ms */
#define PAUSE_REFUSED (2 * NEZHA_SEC)
#define PAUSE_LEFT (2 * NEZHA_SEC)       /* another rank has freed the communicator: this one will, too */

static struct sockaddr_in address_of(const struct nezha_ina *ina)
{
	const struct nezha_ina_address *where = nezha_ina_where(ina);

	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = where->address, .sin_port = htons(where->port) };
}

/* One line for the job, by a communicator's first rank; what comes later, and others', is for those who look. */
static void tell(struct nezha_ina *ina, const char *what, const char *why)
{
	const struct nezha_ina_address *where = nezha_ina_where(ina);
	bool first = ina->team->rank == 0 && !ina->engine->aggregator_told[ina->index];
	char address[INET_ADDRSTRLEN];

	nezha_log(first ? NEZHA_LOG_WARN : NEZHA_LOG_INFO, "the aggregator ina:%s:%u %s: %s; the other rails do its work",
	          inet_ntop(AF_INET, &where->address, address, sizeof address), where->port, what, why);
	if (first)
		ina->engine->aggregator_told[ina->index] = true;
}

void nezha_ina_leave(struct nezha_ina *ina)
{
	struct nezha_ina_record record;

	nezha_ina_record_make(NEZHA_INA_LEAVE, &record);
	if (ina->state == NEZHA_INA_JOINED)
		(void)!send(ina->control, &record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT);
	nezha_ina_session_end(ina);
}

void nezha_ina_session_end(struct nezha_ina *ina)
{
	if (ina->control >= 0)
		close(ina->control);
	ina->control = -1;
	nezha_ina_close_sockets(ina);
	ina->state = NEZHA_INA_IDLE;
	ina->have = 0;
	ina->attempts++;
	ina->pause = nezha_pause_longer(ina->pause, PAUSE_LEAST, ina->barren > BARREN_MOST ? PAUSE_BARREN : PAUSE_MOST);
	ina->retry_at = nezha_now() + ina->pause;
}

static void give_up(struct nezha_ina *ina, const char *what, const char *why)
{
	tell(ina, what, why);
	/* A call may be under way. */
	if (ina->state == NEZHA_INA_JOINED)
		nezha_ina_fail(ina, why);
	else
		nezha_ina_session_end(ina);
	nezha_engine_wake(ina->engine);
}

static void wait_for(struct nezha_ina *ina, enum nezha_ina_state state, uint64_t limit)
{
	ina->state = state;
	ina->deadline = nezha_now() + limit;
}

static void begin(struct nezha_ina *ina)
{
	struct sockaddr_in to = address_of(ina), from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (ina->rail >= 0)
		from.sin_addr = ina->engine->rails[ina->rail].nic.address;
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from)) {
		if (fd >= 0)
			close(fd);
		give_up(ina, "is not reached", strerror(errno));
		return;
	}
	nezha_ina_keep_alive(fd);
	ina->control = fd;
	wait_for(ina, NEZHA_INA_CONNECTING, CONNECT_LIMIT);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS)
		give_up(ina, "is not reached", strerror(errno));
}

static void connected(struct nezha_ina *ina)
{
	int error = 0;
	socklen_t length = sizeof error;
	struct pollfd poll_out = { ina->control, POLLOUT, 0 };

	if (poll(&poll_out, 1, 0) != 1)
		return;
	getsockopt(ina->control, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error)
		give_up(ina, "is not reached", strerror(error));
	else
		wait_for(ina, NEZHA_INA_CHALLENGED, CHALLENGE_LIMIT);
}

static bool say(struct nezha_ina *ina, const struct nezha_ina_record *record)
{
	if (send(ina->control, record, sizeof *record, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *record)
		return true;
	give_up(ina, "does not listen", strerror(errno));
	return false;
}

static void join(struct nezha_ina *ina, const unsigned char *nonce)
{
	struct nezha_ina_record record;
	uint16_t port, chunk;

	if (nezha_ina_open_direct(ina, &port, &chunk) != NEZHA_OK) {
		give_up(ina, "is not reached by UDP", strerror(errno));
		return;
	}
	nezha_ina_record_make(NEZHA_INA_JOIN, &record);
	record.join = (struct nezha_ina_join){ .ranks = (uint16_t)ina->team->ranks, .rank = (uint16_t)ina->team->rank,
	                                       .port = port, .chunk = chunk, .window = nezha_ina_window_wanted(ina, chunk) };
	nezha_ina_prove(ina->engine->key, ina->team->id, nonce, &record.join);
	if (say(ina, &record))
		wait_for(ina, NEZHA_INA_JOINING, JOIN_LIMIT);
}

static void answer(struct nezha_ina *ina, bool heard)
{
	struct nezha_ina_record record;

	nezha_ina_record_make(NEZHA_INA_HEARD, &record);
	record.yes = heard;
	if (say(ina, &record))
		wait_for(ina, NEZHA_INA_SETTLING, SETTLE_LIMIT);
}

static void welcomed(struct nezha_ina *ina, const struct nezha_ina_welcome *welcome)
{
	ina->welcome = *welcome;
	if (welcome->group && nezha_ina_open_group(ina) == NEZHA_OK)
		wait_for(ina, NEZHA_INA_LISTENING, welcome->listen * NEZHA_MSEC);
	else
		answer(ina, false);
}

/* It answers, and yet no call goes well: as where a firewall lets TCP through alone, or the aggregator's port takes shorter packets
 * than ours. */
static void tell_barren(struct nezha_ina *ina)
{
	char why[160];

	snprintf(why, sizeof why, "it answers, but none of %u sessions was of use, as if UDP packets of %u bytes did not get through",
	         ina->barren - 1, ina->welcome.chunk);
	tell(ina, "is hardly used", why);
}

static void settled(struct nezha_ina *ina, bool grouped)
{
	if (nezha_ina_watch(ina) != NEZHA_OK) {
		give_up(ina, "cannot be used", "its sockets cannot be watched");
		return;
	}
	ina->state = NEZHA_INA_JOINED;
	ina->deadline = 0;
	if (ina->barren++ < BARREN_MOST)
		ina->pause = 0;
	else
		tell_barren(ina);
	if (ina->attempts)
		nezha_ina_counters(ina)->returns++;
	ina->attempts++;
	nezha_info("aggregator %u has all %d ranks: %u slots of %u bytes, results %s", ina->index + 1, ina->team->ranks,
	           ina->welcome.window, ina->welcome.chunk, grouped ? "by multicast" : "to each rank");
	nezha_engine_wake(ina->engine);
}

static void serve(struct nezha_ina *ina, const struct nezha_ina_record *record)
{
	if (nezha_ina_record_check_downward(record) != NEZHA_OK) {
		give_up(ina, "makes no sense", "it is another program, or another version");
	} else if (record->kind == NEZHA_INA_CHALLENGE && ina->state == NEZHA_INA_CHALLENGED) {
		join(ina, record->nonce);
	} else if (record->kind == NEZHA_INA_WELCOME && ina->state == NEZHA_INA_JOINING) {
		welcomed(ina, &record->welcome);
	} else if (record->kind == NEZHA_INA_READY && ina->state == NEZHA_INA_SETTLING) {
		settled(ina, record->yes);
	} else if (record->kind == NEZHA_INA_REFUSED) {
		give_up(ina, "refuses", record->text);
		ina->retry_at = nezha_now() + PAUSE_REFUSED;
	} else if (record->kind == NEZHA_INA_LEAVE && !ina->open) {
		nezha_ina_session_end(ina);
		ina->retry_at = nezha_now() + PAUSE_LEFT;
	} else if (record->kind == NEZHA_INA_LEAVE) {
		nezha_ina_fail(ina, "a rank has left it");
		nezha_engine_wake(ina->engine);
	} else if (record->kind == NEZHA_INA_OVER && ina->state == NEZHA_INA_JOINED) {
		nezha_ina_fail(ina, record->text);
		nezha_engine_wake(ina->engine);
	} else if (record->kind == NEZHA_INA_OVER) {
		nezha_info("aggregator %u begins anew: %s", ina->index + 1, record->text);
		nezha_ina_session_end(ina);
	} else {
		give_up(ina, "makes no sense", "a record out of turn");
	}
}

/* false: there is nothing more for now. */
static bool read_some(struct nezha_ina *ina)
{
	ssize_t n = recv(ina->control, (char *)&ina->in + ina->have, sizeof ina->in - ina->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0 && ina->state == NEZHA_INA_JOINED) {
		nezha_ina_fail(ina, "it has closed the connection");
		nezha_engine_wake(ina->engine);
		return false;
	}
	if (n <= 0) {
		give_up(ina, "is not reached", n ? strerror(errno) : "it has closed the connection");
		return false;
	}
	ina->have += (uint32_t)n;
	if (ina->have == sizeof ina->in) {
		struct nezha_ina_record record = ina->in;

		ina->have = 0;
		serve(ina, &record);
	}
	return ina->control >= 0;
}

static void timed_out(struct nezha_ina *ina)
{
	switch (ina->state) {
	case NEZHA_INA_LISTENING:
		answer(ina, false);
		break;
	case NEZHA_INA_JOINING:
		give_up(ina, "is not used", "not all ranks reach it");
		break;
	default:
		give_up(ina, "is not reached", "no answer in time");
	}
}

static void turn_one(struct nezha_ina *ina, uint64_t now)
{
	if (ina->state == NEZHA_INA_IDLE) {
		if (now >= ina->retry_at)
			begin(ina);
		return;
	}
	if (ina->state == NEZHA_INA_CONNECTING)
		connected(ina);
	if (ina->state > NEZHA_INA_CONNECTING)
		while (read_some(ina))
			;
	if (ina->state == NEZHA_INA_LISTENING && nezha_ina_heard_beacon(ina))
		answer(ina, true);
	if (ina->state != NEZHA_INA_IDLE && ina->deadline && now >= ina->deadline)
		timed_out(ina);
}

void nezha_ina_turn(struct nezha_engine *engine, uint64_t now)
{
	struct nezha_ina *ina;

	LIST_FOREACH(ina, &engine->inas, entry)
		turn_one(ina, now);
}

uint32_t nezha_ina_poll_room(const struct nezha_engine *engine)
{
	const struct nezha_ina *ina;
	uint32_t count = 0;

	LIST_FOREACH(ina, &engine->inas, entry)
		count += 2;
	return count;
}

uint32_t nezha_ina_poll(struct nezha_engine *engine, struct pollfd *out, uint64_t *next)
{
	struct nezha_ina *ina;
	uint32_t count = 0;

	LIST_FOREACH(ina, &engine->inas, entry) {
		uint64_t due = ina->state == NEZHA_INA_IDLE ? ina->retry_at : ina->deadline;

		if (due && due < *next)
			*next = due;
		if (ina->control >= 0)
			out[count++] = (struct pollfd){ ina->control,
			                                ina->state == NEZHA_INA_CONNECTING ? POLLOUT : POLLIN, 0 };
		if (ina->state == NEZHA_INA_LISTENING)
			out[count++] = (struct pollfd){ ina->group.end.fd, POLLIN, 0 };
	}
	return count;
}
