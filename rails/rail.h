/* SPDX-License-Identifier: BSD-3-Clause
 * What a rail must be able to do.  Two shapes:
 *
 * - a point-to-point rail (tcp; verbs) moves records between two ranks.  A connection has two ends: the sending
 *   end is a struct nezha_path of the link to the right neighbour, the receiving end a struct nezha_inpath of
 *   the inlink from the left neighbour.  Backward records go the other way on the same connection.
 * - a collective rail (an aggregator; the MPI library) takes whole blocks of a call and makes them final by itself.
 *
 * All callbacks run with the engine's lock held, none may block. */
#ifndef NEZHA_RAILS_RAIL_H
#define NEZHA_RAILS_RAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nezha_path;
struct nezha_inpath;
struct nezha_call;
struct nezha_path_sample;
struct nezha_wire;

/* A point-to-point rail.  No callback may be NULL but `flush` and `returned`. */
struct nezha_rail_ops {
	const char *name;

	/* Data does not go over the connection's descriptor: that only tells by its end that the peer is gone.  What comes
	 * is told by path->events, inpath->events. */
	bool apart;

	/* Moves path->out (header, then payload) on as far as there is room.  NEZHA_OK: all of it was handed over (or is kept until
	 * `flush`).  NEZHA_INPROGRESS: no room, path->ready will be set when there is; an error: the connection is lost.  A payload stays
	 * as it is until the peer has taken it in, or the connection is closed. */
	int (*send)(struct nezha_path *path);

	/* Lets go what `send` keeps so that more may go with it; called when nothing more will (gather.h).  NULL: it keeps
	 * nothing.  NEZHA_OK or an error: the connection is lost. */
	int (*flush)(struct nezha_path *path);

	/* Takes in backward records and passes each to nezha_link_backward; may set path->ready.  NEZHA_OK: nothing more for
	 * now. */
	int (*listen)(struct nezha_path *path);

	/* What the estimator and the stall detection need to know. */
	int (*sample)(struct nezha_path *path, struct nezha_path_sample *out);

	/* Takes in forward records; puts payloads where inpath->landing says (landing.h).  NEZHA_OK: nothing more for
	 * now; NEZHA_INPROGRESS: there may be more, call again (bounded work per call); an error: lost. */
	int (*receive)(struct nezha_inpath *inpath);

	/* Sends one backward record, or keeps it until there is room, or drops it if too many are kept; NULL: there may
	 * be room again. */
	int (*reply)(struct nezha_inpath *inpath, const struct nezha_wire *record);

	/* A path that had been lost is back with this connection; the rate that it had is believed.  NULL: there is nothing to do. */
	void (*returned)(struct nezha_path *path);

	/* Gives the connection up at once; what was not acknowledged is lost. */
	void (*close_path)(struct nezha_path *path);
	void (*close_inpath)(struct nezha_inpath *inpath);
};

extern const struct nezha_rail_ops nezha_tcp_rail;

/* A connection that was made, as it is handed to a link or inlink. */
struct nezha_connection {
	const struct nezha_rail_ops *ops;
	int fd;                         /* its TCP connection */
	int events;                     /* readable when there may be something to do; -1 unless ops->apart; the transport's */
	void *transport;                /* the rail's own state; close_path or close_inpath ends it */
	uint32_t id;                    /* the same number at both ends, another one for each connection */
};

#define NEZHA_COLLECTIVES_MAX 4     /* of a team */

/* Values that the collective rails add to a call's note: the time of the links, and of each rail its token, that token's
 * complement and its time (collective.h). */
#define NEZHA_RAIL_VALUES (1 + 3 * NEZHA_COLLECTIVES_MAX)

/* A collective rail as a team uses it. `rail` is its own state for the team. */
struct nezha_collective_ops {
	const char *name;

	/* What this rank holds that it needs the other ranks for, such as a session that all of them have; 0: nothing.  Only
	 * while all hold the same it is given blocks.  NULL, of a team's only rail: it is given those of nezha_way.shared. */
	uint64_t (*token)(void *rail);

	/* Whether it can do the call at all, by what all ranks know alike (a call that has no blocks on it yet).  NULL: any. */
	bool (*takes)(void *rail, const struct nezha_call *call);

	/* Takes blocks [first, first + count) of the call.  For every one of them it will say, from progress or
	 * cancel, either nezha_call_final (the result lies in the receive buffer) or nezha_call_return.  The receive buffer
	 * is written only with a final result.  An error: it took none of them. */
	int (*post)(void *rail, struct nezha_call *call, uint32_t first, uint32_t count);

	/* Moves on; does not block. */
	void (*progress)(void *rail, struct nezha_call *call);

	/* Block `block` is needed now: says final or return for it before it returns, and never touches its memory again. */
	void (*cancel)(void *rail, struct nezha_call *call, uint32_t block);

	/* The call that it was given blocks of is over on this rank; unless the call has failed, no block is outstanding.
	 * Whether all of them became final by itself. */
	bool (*finish)(void *rail, struct nezha_call *call);
};

#endif
