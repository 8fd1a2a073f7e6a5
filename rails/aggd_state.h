/* SPDX-License-Identifier: BSD-3-Clause
 * What the parts of the aggregation daemon share: sessions (one for each team), and peers (one for each control
 * connection). */
#ifndef NEZHA_RAILS_AGGD_STATE_H
#define NEZHA_RAILS_AGGD_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "rails/aggd.h"
#include "rails/ina_run.h"
#include "rails/ina_slots.h"
#include "rails/ina_wire.h"

#define AGGD_BUCKETS 1024

struct aggd_session;
struct nezha_xdp_session;

/* What epoll hands back. */
struct aggd_end {
	enum { AGGD_END_ORDERS, AGGD_END_DATA, AGGD_END_LISTENER, AGGD_END_PEER, AGGD_END_SESSION } kind;
	int fd;
};

/* A control connection. */
struct aggd_peer {
	struct aggd_end end;             /* first: see above */
	LIST_ENTRY(aggd_peer) entry;
	struct sockaddr_in address;
	unsigned char nonce[NEZHA_INA_NONCE_BYTES];
	struct nezha_ina_record in;
	uint32_t have;                   /* bytes of `in` */
	struct aggd_session *session;    /* NULL: it has not joined */
	int rank;
	uint64_t deadline;               /* ns: by when it must have joined */
};

struct aggd_member {
	struct aggd_peer *peer;          /* NULL: not here yet */
	struct sockaddr_in address;      /* UDP */
	uint16_t chunk, window;          /* what it can do */
	bool answered, heard;            /* it has said whether a beacon came; it came */
	uint64_t kept;                   /* results that it asked for again, of those that are looked at now: aggd_data.c */
};

struct aggd_session {
	struct aggd_end out;             /* first: see above; its results are sent from here, nothing comes in; -1: none */
	LIST_ENTRY(aggd_session) entry;
	LIST_ENTRY(aggd_session) same;   /* of the same hash of the token; only when welcomed */
	unsigned char team[NEZHA_INA_TEAM_BYTES];
	uint64_t token;
	int ranks, joined, answered;
	bool welcomed, ready, grouped;
	uint16_t chunk, window;
	struct sockaddr_in group;        /* sin_port 0: none */
	uint64_t beacon_at, deadline;    /* ns: when the next beacon goes; by when all must have answered */
	struct nezha_ina_slots *slots;   /* NULL before the welcome */
	bool singly;                     /* the kernel refuses runs of packets on its way */
	uint64_t *owed;                  /* per receiver `owed_words`: a bit for each version that did not get into the socket */
	size_t owed_words;
	uint32_t owed_count;             /* bits; while there are any, `out` is watched for room */
	int first_debtor;                /* the receiver that is paid first */
	uint64_t results;                /* that the daemon has sent */
	/* the XDP program's part: aggd_offload.c */
	struct nezha_xdp_session *kernel; /* NULL: none */
	bool offloaded;                  /* the program serves it */
	bool unlike;                     /* some ranks have heard its beacons, others not */
	uint64_t beacons;                /* ns: when its first one was sent */
	struct aggd_member members[];
};

/* A run of results of one session that goes out with one call for each receiver. */
struct aggd_run {
	struct aggd_session *session;    /* whose; NULL: it is empty */
	struct nezha_ina_run packets;
};

struct aggd_io;
struct aggd_offload;

struct nezha_aggd {
	struct nezha_aggd_config config;
	uint64_t epoch;
	atomic_uint orders;              /* enum nezha_aggd_order bits */
	int epoll;
	struct aggd_end wake, data, listener;
	int reserve;                     /* a descriptor to turn connections away with when there is no other */
	bool draining;
	bool waiting;                    /* some session waits for its members' answers */
	uint64_t drain_until;
	uint16_t groups;                 /* the last one given out */
	uint32_t strangers;              /* peers that have not joined */
	uint32_t peer_count;
	LIST_HEAD(, aggd_peer) peers;
	LIST_HEAD(, aggd_session) sessions;
	LIST_HEAD(, aggd_session) tokens[AGGD_BUCKETS];
	struct nezha_ina_budget budget;
	struct nezha_aggd_stats stats;
	struct aggd_io *io;
	struct aggd_run run;             /* results that wait for more of their session */
	struct aggd_offload *offload;    /* NULL: no XDP */
};

/* ---- aggd.c ---- */

/* A socket bound to the daemon's address and port; all packets come to the first one of SOCK_DGRAM.  -1: errno. */
int aggd_bound(struct nezha_aggd *aggd, int type);

/* What makes sending fast is not needed to be right; false: groups cannot be sent to. */
bool aggd_tune_sender(const struct nezha_aggd *aggd, int fd);

/* ---- aggd_control.c ---- */

int aggd_reserve(void);
void aggd_accept(struct nezha_aggd *aggd);

/* The peer's connection is readable; it may be gone afterwards. */
void aggd_peer_ready(struct nezha_aggd *aggd, struct aggd_peer *peer);

/* Sends a record; false: it could not be, and the caller drops the peer. */
bool aggd_tell(struct aggd_peer *peer, const struct nezha_ina_record *record);

/* Closes the connection, without a look at its session. */
void aggd_peer_close(struct nezha_aggd *aggd, struct aggd_peer *peer);

/* Ends peers that have not joined in time. */
void aggd_peers_tick(struct nezha_aggd *aggd, uint64_t now);

/* ---- aggd_session.c ---- */

/* A peer with a proven JOIN; it may be gone afterwards. */
void aggd_join(struct nezha_aggd *aggd, struct aggd_peer *peer, const struct nezha_ina_join *join);

/* A member has said whether a beacon came. */
void aggd_answered(struct nezha_aggd *aggd, struct aggd_peer *peer, bool heard);

/* A member's connection has ended, or it leaves in good order: so does its session.  Closes the connection. */
void aggd_leave(struct nezha_aggd *aggd, struct aggd_peer *peer, bool order);

/* Ends the session: all members are told why, their connections are closed. */
void aggd_session_end(struct nezha_aggd *aggd, struct aggd_session *session, const char *why);

/* NULL: there is none. */
struct aggd_session *aggd_session_find(struct nezha_aggd *aggd, uint64_t token);

/* Beacons and time limits. */
void aggd_sessions_tick(struct nezha_aggd *aggd, uint64_t now);

/* ---- aggd_data.c ---- */

int aggd_io_create(struct nezha_aggd *aggd);
void aggd_io_destroy(struct aggd_io *io);

/* Packets have come. */
void aggd_receive(struct nezha_aggd *aggd);

/* Tells a rank that has asked whose contributions are missing. */
void aggd_answer_alive(struct aggd_session *session, const struct nezha_ina_header *asked,
                       const struct nezha_ina_missing *missing);

/* ---- aggd_send.c ---- */

/* The session's socket; its ranks and window are known.  NEZHA_ERR_SYSTEM: it has none. */
int aggd_send_open(struct nezha_aggd *aggd, struct aggd_session *session);
void aggd_send_close(struct nezha_aggd *aggd, struct aggd_session *session);

/* There is room again for what is owed. */
void aggd_send_ready(struct nezha_aggd *aggd, struct aggd_session *session);

/* A result goes to all members: with those that follow it, at the next flush at the latest. */
void aggd_queue(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_sum *sum);
void aggd_flush(struct nezha_aggd *aggd);

/* To one member, at once; lost if there is no room. */
void aggd_answer(struct aggd_session *session, const struct sockaddr_in *to, struct nezha_ina_header *header,
                 const void *payload);
void aggd_beacon(struct aggd_session *session);

/* ---- aggd_offload.c ---- */

#define AGGD_DEVICE_BYTES 16             /* of a network device's name, with its NUL */

/* Loads the XDP program and attaches it to config.devices.  NEZHA_ERR_* (one line logged). */
int aggd_offload_create(struct nezha_aggd *aggd);
void aggd_offload_destroy(struct aggd_offload *offload);         /* NULL is allowed */

/* The session is welcomed: it gets room in the kernel, if it can be the program's. */
void aggd_offload_reserve(struct nezha_aggd *aggd, struct aggd_session *session);

/* Sends a beacon by the way of the program's results; false: the session will not be the program's, send another. */
bool aggd_offload_beacon(struct nezha_aggd *aggd, struct aggd_session *session);

/* All have answered: the session is the program's now, or never. */
void aggd_offload_settle(struct nezha_aggd *aggd, struct aggd_session *session);
void aggd_offload_forget(struct nezha_aggd *aggd, struct aggd_session *session);

/* A checked packet of an offloaded session that the program folds, but has left to the daemon.  May end the session. */
void aggd_offload_passed(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_header *header);

/* Adds what the program has counted. */
void aggd_offload_count(const struct nezha_aggd *aggd, struct nezha_aggd_stats *stats);

#endif
