/* SPDX-License-Identifier: BSD-3-Clause
 * The link: the logical, reliable, block-wise channel from this process to another, made of one path per rail.
 * Links belong to a pair of processes: all teams share them.  The engine's lock is held in all functions. */
#ifndef NEZHA_RAILS_LINK_H
#define NEZHA_RAILS_LINK_H

#include "rails/ack_delay.h"
#include "rails/damping.h"
#include "rails/engine.h"
#include "rails/estimator.h"
#include "rails/event.h"
#include "rails/overdue.h"
#include "rails/probe.h"
#include "rails/rail.h"
#include "rails/wire.h"

/* Bytes of blocks that may be on their way to, or stored by, a neighbour that has not entered the call. */
#define NEZHA_EAGER_BYTES (512u << 10)

/* What a path is sending: a record, then its payload.  `zeros`: the payload is no user memory (any more). */
struct nezha_outgoing {
	struct nezha_wire record;
	uint32_t record_left, payload_left;
	const char *payload;
	bool zeros;
	bool unsteady;                  /* other bytes may come to lie there before the peer has taken these in */
	uint64_t began;                 /* ns; only with a timeline */
};

/* What is held against a path over which blocks came wrong (recovery.c). */
struct nezha_suspicion {
	uint32_t wrong;                 /* blocks since `since` */
	uint64_t since;                 /* ns */
	uint64_t pause, until;          /* ns: how long, and until when, it is not connected again */
	bool alone;                     /* ... even if the link has no other path: it had none then, either */
};

/* Which backward records of a path count. */
enum nezha_hearing {
	NEZHA_HEAR_ALL,
	NEZHA_HEAR_ACKS,     /* it is being given up: up to the first AGAIN, whose block a later ACK covers; all else is said again */
	NEZHA_HEAR_NOTHING,  /* it is given up, or a record made no sense, which may have been an AGAIN */
};

struct nezha_path {
	struct nezha_endpoint end;
	struct nezha_endpoint events;   /* of a rail whose data go apart; else its fd is -1 */
	const struct nezha_rail_ops *ops;
	void *transport;                /* the rail's own state, if it has any */
	struct nezha_link *link;
	uint8_t rail;                   /* ours */
	uint8_t peer_rail;              /* the peer's number of the same rail */
	bool joined;                    /* the pair has this rail in common */
	bool up;
	bool ready;                     /* there may be room in the transport */
	bool sync;                      /* a SYNC record shall go next */
	uint32_t probe_left;            /* bytes of the opening probe still to be sent */
	uint64_t probe_since;           /* ns: when the opening probe began, 0: it is a later one */
	struct nezha_outgoing out;
	struct nezha_tx *current;       /* what `out` belongs to; NULL: to no call */
	struct nezha_tx_list sent;      /* handed to the transport, not taken in by the peer for sure */
	double share;                   /* seconds of work assigned since the link was last idle */
	uint64_t written;               /* bytes handed to the transport since it was connected */
	uint64_t base_acked;            /* the transport's counter at that time */
	uint64_t lent;                  /* tcp: up to which of these it may refer to the call's memory instead of having copied it */
	struct nezha_path_sample last;
	uint64_t rises;                 /* ns: tcp: until when it opens its window unhampered (tcp.c); 0: no more */
	double rises_to;                /* ... and to how many bytes */
	uint64_t doubted;               /* ns: when the service thread was asked to look at the carrier */
	uint64_t stalled;               /* ns for which acked has not grown, as far as we watched */
	struct nezha_estimator estimator;
	double nominal;                 /* bytes per second */
	struct nezha_probe probe;       /* when it is measured again */
	uint64_t down_before;           /* ns that the link had been down when it was connected; 0 once that has carried something */
	uint32_t lost;                  /* how often it went down */
	int error;                      /* errno of the last attempt to connect it; 0: it went well, or there was none */
	uint32_t id;                    /* the connection's, or the last one's */
	enum nezha_hearing hearing;
	bool untold;                    /* the peer has not been told that it is lost */
	struct nezha_damping damping;
	struct nezha_overdue overdue;
	struct nezha_ack_delay ack_delay;
	bool connecting;                /* the service thread is at it */
	bool renew;                     /* ... and shall begin anew */
	bool why_told;                  /* why it does not come up was told, since it was up last */
	uint64_t retry_at, pause;       /* ns: when to try again; the last pause between attempts */
	uint64_t left_at;               /* ns: when it was lost, or last tried */
	struct nezha_outage outage;
	struct nezha_suspicion suspicion;  /* that it changes what it carries */
	struct nezha_wire back;         /* a backward record that is arriving */
	uint32_t back_have;
};

struct nezha_link {
	LIST_ENTRY(nezha_link) entry;
	struct nezha_engine *engine;
	int peer;                       /* process */
	struct nezha_card card;         /* the peer's */
	struct nezha_path paths[NEZHA_RAILS_MAX];  /* by our rail; those not `joined` are unused */
	bool control[NEZHA_RAILS_MAX];  /* the service thread has, or makes, a control connection */
	struct nezha_tx_list queue;     /* blocks that wait for a path */
	uint64_t queued;                /* their bytes */
	uint64_t expected;              /* bytes that the calls in progress will still give to the link */
	struct nezha_share *share;      /* owned; NULL: the policy is another */
	uint32_t eager;                 /* bytes of the allowance in use */
	bool pumping, pump_again;       /* nezha_link_pump is at work, and has to go round again */
	bool opened;                    /* a team has waited for its paths */
	uint64_t down_since;            /* ns: since when no path is up, 0 if one is */
	uint64_t silent;                /* ns for which nothing had been heard over the last one before that */
};

/* The link to the process of `card`, made on first need.  NULL: no memory. */
struct nezha_link *nezha_link_get(struct nezha_engine *engine, const struct nezha_card *card);
void nezha_link_destroy(struct nezha_link *link);

int nezha_link_paths_up(const struct nezha_link *link);

/* Sends what can be sent. */
void nezha_link_pump(struct nezha_link *link);

/* Whether nothing is half sent. */
static inline bool nezha_path_is_free(const struct nezha_path *path)
{
	return !path->out.record_left && !path->out.payload_left;
}

/* Gives the connection up. */
void nezha_path_close(struct nezha_path *path);

/* The call is over: forget its blocks.  `finished`: all of it is where it belongs, so that a block under way is one more copy. */
void nezha_link_forget(struct nezha_link *link, struct nezha_team *team, bool finished);

/* ---- grants.c: when a block may be sent ---- */

/* Queues a block: on a path if its receiver can take it, else it is held until the grant. */
void nezha_link_send(struct nezha_link *link, struct nezha_tx *tx);

/* The right neighbour has entered `op` of team, or ended it, and takes the partials of its first `blocks` blocks (which counts in a
 * gradual call only).  Repetitions, and what is outdated, do nothing. */
void nezha_link_granted(struct nezha_team *team, uint32_t op, uint32_t blocks);

/* Whether it has entered the call that we are in. */
bool nezha_link_has_granted(const struct nezha_team *team);

/* ---- backward.c: what the neighbour says ---- */

/* A backward record has come; NEZHA_ERR_PROTOCOL if it makes no sense, NEZHA_ERR_CLOSED if none after it
 * counts. */
int nezha_link_backward(struct nezha_path *path, const struct nezha_wire *record);

/* ---- recovery.c: connections come and go ---- */

/* A new connection for path `rail`; it is the link's from now on, an older one is given up. */
void nezha_link_attach(struct nezha_link *link, int rail, const struct nezha_connection *connection);

/* Looks at what the path's transport has done, if that was not done just before. */
void nezha_path_look(struct nezha_path *path, uint64_t now);

/* Asks the neighbour to say again what it has granted, done and wants. */
void nezha_link_ask_again(struct nezha_link *link);

/* The connection is lost: its unacknowledged blocks go to the other paths, reconnection is begun. */
void nezha_link_path_fail(struct nezha_path *path, const char *cause);

/* All paths over the rail are lost; `far`: only those to other hosts. */
void nezha_rail_lost(struct nezha_engine *engine, uint32_t rail, bool far, const char *cause);

/* The path, if it is down, is connected at once, however often that has failed; an attempt that is under way begins anew.  The service
 * thread only. */
void nezha_path_retry(struct nezha_path *path);

/* So are all over the rail. */
void nezha_rail_retry(struct nezha_engine *engine, uint32_t rail);

/* Whether no path over the rail is lost, neither out nor in. */
bool nezha_rail_whole(const struct nezha_engine *engine, uint32_t rail);

/* When the path, which is down, may be connected again, in ns. */
uint64_t nezha_path_due(const struct nezha_path *path);

/* The peer says in `record` that a block came wrong over this path. */
void nezha_link_came_wrong(struct nezha_path *path, const struct nezha_wire *record);

/* Looks at timers: acknowledgements, stalls. */
void nezha_link_tick(struct nezha_link *link, uint64_t now);

#endif
