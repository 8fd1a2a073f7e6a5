/* SPDX-License-Identifier: BSD-3-Clause
 * The inlink: what comes from one other process, over one receiving end per rail.  It lands blocks (landing.h), keeps what
 * came early, drops what came twice.  The engine's lock is held in all functions. */
#ifndef NEZHA_RAILS_INLINK_H
#define NEZHA_RAILS_INLINK_H

#include "rails/await.h"
#include "rails/engine.h"
#include "rails/event.h"
#include "rails/landing.h"
#include "rails/rail.h"
#include "rails/wire.h"

#define NEZHA_REPLIES 32     /* backward records that a receiving end keeps while there is no room */

struct nezha_inpath {
	struct nezha_endpoint end;
	struct nezha_endpoint events;   /* as nezha_path's */
	const struct nezha_rail_ops *ops;
	void *transport;
	struct nezha_inlink *inlink;
	uint8_t rail;                   /* ours */
	bool up;
	uint32_t id;                    /* the connection's */
	bool more;                      /* receive was left with data unread */
	bool ends;                      /* an event said that the connection ends, and there is no other: receive has still to see it */
	struct nezha_await await;       /* the tcp rail's */
	bool why_told;                  /* as nezha_path's */
	bool probed;                    /* the opening probe of this connection is over */
	struct nezha_wire record;       /* arriving */
	uint32_t record_have;
	bool in_payload;
	uint64_t taken, told;           /* bytes of this connection taken in; of these: acknowledged */
	bool lost;                      /* the connection of that id was lost; the peer may not know */
	uint64_t lost_taken;            /* ... and what had been taken in of it, bytes */
	uint64_t sure;                  /* so many were acknowledged before a block was asked for again; UINT64_MAX: none was */
	uint64_t told_at;               /* ns: when */
	struct nezha_landing landing;
	struct nezha_outage outage;
	struct nezha_wire replies[NEZHA_REPLIES];
	uint32_t reply_count, reply_sent; /* records kept; bytes of the first already sent */
	char *scratch;                  /* NEZHA_SCRATCH bytes */
	char *store;                    /* store_room bytes: a block that is folded when it was verified */
	uint32_t store_room;
};

struct nezha_inlink {
	LIST_ENTRY(nezha_inlink) entry;
	struct nezha_engine *engine;
	int peer;
	uint64_t host;                  /* the peer's (struct nezha_card), 0: not known */
	char hostname[64];              /* the peer's, and its addresses (network byte order); empty and 0: not known */
	uint32_t addresses[NEZHA_RAILS_MAX];
	uint32_t from[NEZHA_RAILS_MAX]; /* where it has come from, by our rails: on its way addresses may be changed; 0: it has not */
	struct nezha_inpath paths[NEZHA_RAILS_MAX];
	bool opened;                    /* a team has waited for its paths */
	uint32_t eager;                 /* bytes stored early */
	int latest;                     /* rail over which something came last */
	uint64_t down_since;            /* ns: since when no path is up, 0 if one is */
};

/* What comes from `peer`, made on first need.  NULL: no memory. */
struct nezha_inlink *nezha_inlink_get(struct nezha_engine *engine, int peer);

/* Whose it is; where it has come from over our rail. */
void nezha_inlink_know(struct nezha_inlink *inlink, const struct nezha_card *card);
void nezha_inlink_came_from(struct nezha_inlink *inlink, int rail, uint32_t address);
void nezha_inlink_destroy(struct nezha_inlink *inlink);

int nezha_inlink_paths_up(const struct nezha_inlink *inlink);

/* A new connection over `rail`; it is the inlink's from now on, an older one is given up. */
void nezha_inlink_attach(struct nezha_inlink *inlink, int rail, const struct nezha_connection *connection);

/* Takes in what there is, on one receiving end. */
void nezha_inlink_receive(struct nezha_inpath *inpath);

/* Takes in the next `length` bytes of the connection, records and payload, that the rail has in its memory.  Afterwards the
 * inpath may be closed.  NEZHA_ERR_PROTOCOL: they make no sense. */
int nezha_inlink_take(struct nezha_inpath *inpath, const char *data, size_t length);

/* forward.c: called by the rail when a checked forward record has come whole: sets up the landing if it has a payload.
 * NEZHA_ERR_PROTOCOL: it makes no sense here. */
int nezha_inlink_record(struct nezha_inpath *inpath);

/* ... and when the payload has come whole. */
void nezha_inlink_payload(struct nezha_inpath *inpath);

/* The peer, who may have missed something and have lost a path, which `sync` names, has asked for what is to be said again. */
void nezha_inlink_synced(struct nezha_inlink *inlink, const struct nezha_wire *sync);

void nezha_inlink_path_fail(struct nezha_inpath *inpath, const char *cause);

/* Sends a backward record over this path.  A NEZHA_ status. */
int nezha_inpath_reply(struct nezha_inpath *inpath, struct nezha_wire record);

/* Sends a backward record over a path that is up, best the one over which something came last.  It is lost if none is, or if the peer has not read for long: SYNC,
 * QUERY and nezha_call_want_again make up for that. */
void nezha_inlink_reply(struct nezha_inlink *inlink, const struct nezha_wire *record);

/* Tells the left neighbour which call of the team was entered here, and which of its blocks are taken. */
void nezha_inlink_grant(struct nezha_team *team);

/* The team has entered its call, or more of a gradual one is ready: folds what came before.  NEZHA_ERR_PROTOCOL: it does not fit the
 * call. */
int nezha_inlink_enter(struct nezha_team *team);

/* The call (or, with `all`, the team) is over: nothing may land in its memory any more. */
void nezha_inlink_forget(struct nezha_team *team, bool all);

#endif
