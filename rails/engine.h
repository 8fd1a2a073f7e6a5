/* SPDX-License-Identifier: BSD-3-Clause
 * The engine: one per process, what all teams share - rails, links, the lock, the event loop.  A thread that waits
 * in nezha_allreduce drives it for all; the others sleep until their own call is over or the driver leaves.  team.h
 * is what the outside sees. */
#ifndef NEZHA_RAILS_ENGINE_H
#define NEZHA_RAILS_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rails/call.h"
#include "rails/collective.h"
#include "rails/fairlock.h"
#include "rails/lend.h"
#include "rails/pace.h"
#include "rails/team.h"
#include "rails/verbs.h"

struct nezha_link;
struct nezha_ina;
struct nezha_inlink;
struct nezha_service;
struct nezha_wire;

#define NEZHA_TEAM_BUCKETS 256
#define NEZHA_FALLS_KEPT 64

/* What epoll hands back: the first member of what it belongs to, or (.._EVENTS) its member `events`. */
struct nezha_endpoint {
	enum { NEZHA_END_WAKE, NEZHA_END_PATH, NEZHA_END_INPATH, NEZHA_END_PATH_EVENTS,
	       NEZHA_END_INPATH_EVENTS, NEZHA_END_INA } kind;
	int fd;                 /* -1: closed */
};

/* A partial that came before its call was entered, or this rank's contribution was there. */
struct nezha_eager {
	TAILQ_ENTRY(nezha_eager) entry;
	uint32_t op, block, length, have;
	bool counted;           /* it is part of the link's allowance */
	char data[];
};
TAILQ_HEAD(nezha_eager_list, nezha_eager);

/* Why a team is broken: breakdown.h. */
struct nezha_fall {
	bool known;
	uint64_t id;            /* the team's */
	uint32_t found_by, lost; /* processes; lost may be NEZHA_NOBODY */
};

struct nezha_team {
	LIST_ENTRY(nezha_team) entry;   /* engine->teams */
	LIST_ENTRY(nezha_team) same;    /* engine->table: teams of the same hash */
	LIST_ENTRY(nezha_team) busy;    /* engine->busy: while a call is in progress */
	struct nezha_engine *engine;
	uint64_t id;
	int ranks, rank;
	int common, most;               /* see nezha_team_rails_common */
	int rails[NEZHA_RAILS_MAX];     /* our numbers of the `common` ones */
	struct nezha_subnet subnet[NEZHA_RAILS_MAX];  /* theirs, as rank 0 has it */
	struct nezha_link *right;       /* shared by teams, the engine's */
	struct nezha_inlink *left;
	struct nezha_call call;
	uint32_t entered, finished;     /* our last op begun, ended */
	uint32_t granted, right_done;   /* the right neighbour's */
	uint32_t granted_blocks;        /* ... of the call `granted`: of a gradual one it takes the partials of these */
	struct nezha_tx_list held;      /* blocks that the right neighbour has not granted */
	uint64_t expected;              /* bytes that the call will still give to the link */
	double part[NEZHA_RAILS_MAX];   /* policy share: of the call, by our rails */
	uint32_t eager_sent;            /* bytes of the link's allowance in use */
	struct nezha_eager_list eager;
	bool broken;                    /* a rank is lost, or they disagree about a call: no call can be finished */
	struct nezha_fall fall;         /* ... as the left neighbour was told */
	bool told;                      /* the call's note has values of the collective rails */
	bool refused;                   /* one of these did not take its blocks of the call */
	bool wanted_early;              /* the right neighbour misses a block of the call that we enter next */
	bool query;                     /* the service thread shall ask the right neighbour */
	uint64_t queried, moved;        /* ns: when last asked, when something last happened */
	struct nezha_pace pace;         /* of MPI's progress in calls */
	uint64_t touched;               /* ns: when something was last sent to the right only to see whether it arrives */
	uint64_t attended, attended_last; /* ns: since when a thread has waited outside of a call; when it last attended */
	struct nezha_collective collective[NEZHA_COLLECTIVES_MAX];
	int collectives;                /* how many of them there are */
	struct nezha_split *split;      /* NULL: there are none */
	struct nezha_collective_account last, noted;  /* the last call, the one that the call's note tells of */
	uint64_t took[NEZHA_SIDES];     /* ns, of the last call, by side; 0: unknown */
	uint64_t last_bytes[NEZHA_STATS_MAX];  /* by our rails; from NEZHA_RAILS_MAX on: the collective ones' */
};

/* A rail that is back, of which the neighbours are told (regain.h). */
struct nezha_regain {
	uint64_t tell_at;       /* ns: when next; 0: no more */
	uint64_t pause;         /* ns: since the last time; 0: there was none */
	uint64_t called;        /* ns: when neighbours were called last; the service thread's */
};

struct nezha_engine {
	struct nezha_engine_config config;
	unsigned char key[NEZHA_KEY_BYTES];
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
	struct nezha_card card;
	struct nezha_rail_stats stats[NEZHA_STATS_MAX];   /* of the card's rails; from NEZHA_RAILS_MAX on: the aggregators' */

	struct nezha_fairlock lock;     /* of all that follows, teams, links, paths; the driver leaves it while it sleeps or is in MPI */
	pthread_cond_t changed;         /* the driver left, or a call ended */
	bool driving;
	uint32_t gathering;             /* nezha_gather_begin without its end */
	bool kept;                      /* paths may keep something for that end */
	struct nezha_lender lender;     /* of the tcp rails */
	uint32_t doubted;               /* bit r: the service thread shall ask the interface of rail r for its carrier */
	uint32_t dark;                  /* bit r: it has said that it has none, and not that it has one again */
	struct nezha_regain regain[NEZHA_RAILS_MAX];
	uint64_t dark_asked;            /* ns: when those of `dark` were last asked; this and the next one: the service thread's */
	uint32_t calls;                 /* how often neighbours were called (regain.c) */
	int epoll;
	struct nezha_endpoint wake;     /* an eventfd: the service thread has changed something */
	uint64_t ticked;                /* ns: last look at timers */
	LIST_HEAD(nezha_team_list, nezha_team) teams;
	struct nezha_team_list table[NEZHA_TEAM_BUCKETS];
	struct nezha_team_list busy;
	LIST_HEAD(, nezha_link) links;
	LIST_HEAD(, nezha_inlink) inlinks;
	uint32_t known;                 /* how often addresses of theirs became known */
	LIST_HEAD(, nezha_ina) inas, ina_spare;  /* the teams' rails of aggregators; those of teams that are gone */
	bool aggregator_told[NEZHA_INA_MAX];  /* the user knows that it is not used */
	bool aggregator_full;           /* ... that not all communicators have sessions */
	atomic_bool sharp_told;                /* the user knows that SHARP is not used */
	atomic_bool sharp_dead;                /* a call of its library has not come to its end: it is not used any more */
	struct nezha_service *service;
	struct nezha_verbs_device *verbs[NEZHA_RAILS_MAX];  /* of the card's rails; NULL: another kind */
	struct nezha_verbs_memory verbs_memory;
	uint64_t shared_memory;         /* bytes that this process has made for its nodes' ranks */
	struct nezha_fall falls[NEZHA_FALLS_KEPT];  /* of broken teams that were freed: the last ones */
	uint32_t fall_count;
};

/* The teams with this id's hash, and the one with this id (NULL: there is none, or no more). */
struct nezha_team_list *nezha_engine_bucket(struct nezha_engine *engine, uint64_t id);
struct nezha_team *nezha_engine_team(struct nezha_engine *engine, uint64_t id);

/* ---- loop.c ---- */

/* Registers or unregisters a connection for edge-triggered events (nothing is done if its fd is -1); NEZHA_ERR_SYSTEM. */
int nezha_engine_watch(struct nezha_engine *engine, struct nezha_endpoint *end);
void nezha_engine_unwatch(struct nezha_engine *engine, struct nezha_endpoint *end);

/* Registers a UDP socket, which would have an event for every packet that comes or leaves: for what comes; later for what comes (input), for
 * room to send (room), for both or none.  NEZHA_ERR_SYSTEM. */
int nezha_engine_watch_input(struct nezha_engine *engine, struct nezha_endpoint *end);
int nezha_engine_want(struct nezha_engine *engine, struct nezha_endpoint *end, bool input, bool room);

/* One turn, a millisecond long at most: events, timers.  The lock is held, and given up while it sleeps. */
void nezha_engine_step(struct nezha_engine *engine);

/* What a waiting thread does, again and again: drives the engine for a moment, or sleeps while another thread
 * does.  The lock is held. */
void nezha_engine_wait(struct nezha_engine *engine);

/* The same without sleeping, for a thread that has other work to go on with. */
void nezha_engine_poll(struct nezha_engine *engine);

/* Lets MPI progress, if it is due after `pause`; gives the lock up meanwhile. */
void nezha_engine_progress_mpi(struct nezha_engine *engine, struct nezha_pace *pace, uint64_t pause);

/* Rouses the driver from another thread. */
void nezha_engine_wake(struct nezha_engine *engine);

#endif
