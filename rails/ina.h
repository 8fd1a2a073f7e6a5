/* SPDX-License-Identifier: BSD-3-Clause
 * The rail of an aggregator (nezha-aggd): a collective rail.  One for each team and aggregator; its control session is
 * kept by the service thread, its packets are moved by whoever drives the engine.  The engine's lock is held in all
 * functions, but where said otherwise.  Its token (collective.h) is the session's. */
#ifndef NEZHA_RAILS_INA_H
#define NEZHA_RAILS_INA_H

#include <poll.h>

#include "rails/engine.h"
#include "rails/ina_address.h"
#include "rails/ina_fixed.h"
#include "rails/ina_window.h"
#include "rails/ina_wire.h"
#include "rails/rail.h"

enum nezha_ina_state {
	NEZHA_INA_IDLE,          /* until retry_at */
	NEZHA_INA_CONNECTING,
	NEZHA_INA_CHALLENGED,    /* the challenge is awaited */
	NEZHA_INA_JOINING,       /* the other ranks are */
	NEZHA_INA_LISTENING,     /* a beacon is */
	NEZHA_INA_SETTLING,      /* ... the last word is */
	NEZHA_INA_JOINED,
};

struct nezha_ina_socket {
	struct nezha_endpoint end;       /* first: what epoll hands back */
	struct nezha_ina *ina;
	bool unread;                     /* something may wait in it */
	bool full;                       /* it has refused a packet: the event loop tells when it takes more */
	uint64_t came;                   /* bytes from the aggregator, since it was last decided which socket is hushed */
};

struct nezha_ina {
	LIST_ENTRY(nezha_ina) entry;     /* engine->inas, or engine->ina_spare: memory that epoll may still know */
	struct nezha_engine *engine;
	struct nezha_team *team;         /* NULL: spare */
	uint32_t index;                  /* of the aggregator, in the engine's configuration */
	int rail;                        /* ours, in whose subnet the aggregator is; -1: none */

	enum nezha_ina_state state;
	int control;                     /* -1: none */
	struct nezha_ina_record in;
	uint32_t have;                   /* bytes of it */
	uint64_t deadline, retry_at, pause;  /* ns */
	uint32_t attempts;               /* that have come to an end, good or bad */
	uint32_t barren;                 /* sessions in a row in which no call went well */
	struct nezha_ina_welcome welcome;
	struct nezha_ina_socket direct;  /* UDP, connected: tells when the aggregator's port is closed */
	struct nezha_ina_socket group;   /* UDP, of the multicast group; a connected one gets nothing from there */

	uint64_t used;                   /* the token that the window belongs to */
	struct nezha_ina_window window;

	/* the call in progress */
	uint32_t first, count;           /* blocks */
	uint32_t per_block;              /* chunks */
	uint32_t base;                   /* number of its first chunk */
	uint32_t open;                   /* blocks that are neither final nor returned */
	uint32_t *left;                  /* per block: chunks without a result; `room` entries */
	uint32_t room;
	bool staged;                     /* results wait in the stage until their block is complete */
	char *stage;                     /* stage_blocks * grid.block bytes of stage_room */
	uint32_t stage_blocks;
	size_t stage_room;
	struct nezha_ina_fixed fixed;
	uint64_t looked, silent;         /* ns: last look at the time; without a word from it */
	bool failed;                     /* blocks were returned */

	bool singly;                     /* the kernel refuses runs of packets on this session's way */
	struct nezha_ina_socket *hushed; /* what comes to it is no event; NULL: everything is one */
	char *scratch;                   /* NEZHA_INA_MESSAGE bytes */
};

#define NEZHA_INA_MESSAGE 65536

/* Each costs a process three descriptors, 80 KiB, and the aggregator its slots. */
#define NEZHA_INA_SESSIONS_MOST 64

/* Whether the process may have the sessions of one team more.  Another thread may take them first: the bound is then passed. */
bool nezha_ina_has_room(const struct nezha_engine *engine);

/* Some rank of the team has no room: says so, once in a process and for its first ranks. */
void nezha_ina_tell_full(struct nezha_team *team);

/* ---- ina.c ---- */

extern const struct nezha_collective_ops nezha_ina_rail;

/* One of the sockets has something, or takes something again (epoll's events). */
void nezha_ina_ready(struct nezha_ina_socket *socket, uint32_t events);

/* What all teams together have sent over aggregator `index`. */
void nezha_ina_stats(const struct nezha_engine *engine, uint32_t index, struct nezha_rail_stats *out);

/* The counters of its aggregator, of all teams and of the team's last call. */
struct nezha_rail_stats *nezha_ina_counters(const struct nezha_ina *ina);
void nezha_ina_count_sent(struct nezha_ina *ina, uint64_t bytes);

/* In a forked child: closes the sockets. */
void nezha_ina_abandon(struct nezha_engine *engine);

/* Gives the team its rails, one for each aggregator of the engine's configuration; they begin to join.  An error
 * (NEZHA_ERR_NOMEM): those that were made are there. */
int nezha_ina_attach(struct nezha_team *team);

/* Whether all of the team's have come to the end of their first attempt, good or bad. */
bool nezha_ina_attempted(const struct nezha_team *team);

/* Takes them all away again. */
void nezha_ina_detach(struct nezha_team *team);

/* Frees what the detached ones have left. */
void nezha_ina_free_spare(struct nezha_engine *engine);

/* Nothing more comes of the session: what a call still waits for goes back to the links; it is joined anew. */
void nezha_ina_fail(struct nezha_ina *ina, const char *cause);

/* Where it is. */
const struct nezha_ina_address *nezha_ina_where(const struct nezha_ina *ina);

/* ---- ina_io.c: packets ---- */

/* Opens the sockets: the direct one before joining, the group's when it is known.  NEZHA_ERR_SYSTEM (errno). */
int nezha_ina_open_direct(struct nezha_ina *ina, uint16_t *port, uint16_t *chunk);
int nezha_ina_open_group(struct nezha_ina *ina);
void nezha_ina_close_sockets(struct nezha_ina *ina);

/* How many slots of `chunk` bytes, as many as its direct socket's buffer holds results for. */
uint16_t nezha_ina_window_wanted(const struct nezha_ina *ina, uint16_t chunk);

/* The sockets are watched by the engine's event loop from now on. */
int nezha_ina_watch(struct nezha_ina *ina);

/* The socket takes packets again. */
void nezha_ina_unblock(struct nezha_ina_socket *socket);

/* What comes to the socket by which most came of late shall rouse nobody: whoever looks reads.  Or, again, it shall. */
void nezha_ina_hush(struct nezha_ina *ina, bool hushed);

/* Whether a beacon of the session has come. */
bool nezha_ina_heard_beacon(struct nezha_ina *ina);

/* Sends what the window allows.  An error: the aggregator is gone. */
int nezha_ina_send(struct nezha_ina *ina, uint64_t now);
int nezha_ina_send_again(struct nezha_ina *ina, uint32_t seq, bool answer, uint64_t now);  /* an answer is wanted */

/* Takes in what has come: passes chunks to nezha_ina_result.  An error: the aggregator is gone. */
int nezha_ina_receive(struct nezha_ina *ina, uint64_t now);

/* Where chunk `seq` of the call lies. */
struct nezha_ina_place nezha_ina_place(const struct nezha_ina *ina, uint32_t seq);

/* The result of a chunk that was awaited (in ina.c). */
void nezha_ina_result(struct nezha_ina *ina, uint32_t seq, const char *data);

/* ---- ina_session.c: the service thread's part; takes the engine's lock itself where it is not said to be held ---- */

/* How many entries of a poll array the sessions need at most; fills them.  The lock is held. */
uint32_t nezha_ina_poll_room(const struct nezha_engine *engine);
uint32_t nezha_ina_poll(struct nezha_engine *engine, struct pollfd *out, uint64_t *next);

/* Moves all sessions on.  The lock is held. */
void nezha_ina_turn(struct nezha_engine *engine, uint64_t now);

/* Ends the session in good order, as the communicator is freed.  The lock is held. */
void nezha_ina_leave(struct nezha_ina *ina);

/* Ends the session; it is begun anew after a pause.  The lock is held. */
void nezha_ina_session_end(struct nezha_ina *ina);

#endif
