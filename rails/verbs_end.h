/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a verbs path: a queue pair with its completion queues and registered buffers, in both directions.  Knows
 * nothing of links and blocks: it sends and takes in messages.  The engine's lock is held in the functions of this header. */
#ifndef NEZHA_RAILS_VERBS_END_H
#define NEZHA_RAILS_VERBS_END_H

#include <sys/queue.h>

#include "rails/verbs.h"
#include "rails/verbs_api.h"

#define NEZHA_VERBS_ARRIVALS 16

/* Buffers of one direction, used in turn. */
struct nezha_verbs_ring {
	char *memory;
	uint32_t slots, slot_bytes;
	uint32_t posted, done;          /* how many so far; modulo 2^32 */
};

struct nezha_verbs_end {
	LIST_ENTRY(nezha_verbs_end) entry;   /* of the device's retired ones */
	struct nezha_verbs_device *device;
	bool sender;                    /* it sends blocks; else it takes them in */
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	bool send_armed, recv_armed;    /* the next completion makes an event */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
	size_t bytes;
	uint32_t psn, peer_psn;
	bool proved;                    /* it is a path's, or can be */
	const char *why;                /* what has gone wrong with it, static text; NULL: nothing, or only flushed completions */
	struct nezha_verbs_ring out, in;
	uint32_t held;                  /* sender: bytes in the next buffer of `out` that wait for more to go with them */
	uint32_t may_send;              /* sender: messages that the peer has room for, since the beginning; modulo 2^32 */
	uint32_t peer_buffers;
	uint32_t told;                  /* receiver: in.posted as the peer knows it */
	uint32_t unsignalled;           /* messages since the last one that makes a completion */
	uint64_t *written;              /* bytes of the path up to and with each message of `out` */
	uint64_t *posted_at;            /* ns: when it was posted if nothing was under way, else 0 */
	uint64_t acked;                 /* bytes of which the completion has come */
	uint32_t rtt;                   /* us: the shortest time from posting to completion, 0: unknown */
	uint64_t shut_since, shut;      /* ns: since when there is no credit, 0; us: how long so far */
	struct ibv_wc arrivals[NEZHA_VERBS_ARRIVALS];
	int arrival, arrival_count;
};

struct nezha_verbs_device {
	const struct nezha_verbs_api *api;
	struct nezha_verbs_port port;
	struct nezha_verbs_options options;
	struct nezha_verbs_memory *memory;
	struct ibv_context *context;
	struct ibv_pd *pd;
	bool asked;                     /* what follows was read */
	union ibv_gid gid;
	uint16_t lid, mtu;
	char why[160];                  /* nezha_verbs_why */
	uint32_t ends;                  /* that are not destroyed; the service thread's */
	bool dead;                      /* the HCA has failed or gone; the service thread's */
	bool down;                      /* the port lets nothing through; the service thread's */
	uint64_t revive_at;             /* ns: when to try again to open it, or to ask the port */
	LIST_HEAD(, nezha_verbs_end) retired;   /* under the engine's lock */
};

/* Sets what nezha_verbs_why tells; printf-like. */
void nezha_verbs_complain(struct nezha_verbs_device *device, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes. */
uint16_t nezha_verbs_mtu(enum ibv_mtu mtu);

/* Reads what may have changed since: state, LID, MTU, and where the GID is.  The service thread's.  NEZHA_ERR_UNREACHABLE: the port
 * is down; NEZHA_ERR_SYSTEM. */
int nezha_verbs_ask_port(struct nezha_verbs_device *device);

/* A free buffer to send from, NULL: none now; see nezha_verbs_end_await. */
char *nezha_verbs_end_buffer(struct nezha_verbs_end *end);

/* Sends `length` bytes of that buffer, which bring the path to `written` bytes.  `value` goes with it if `backward`.  `last`:
 * nothing may follow for a while.  NEZHA_ERR_CLOSED. */
int nezha_verbs_end_post(struct nezha_verbs_end *end, uint32_t length, uint64_t written, const uint32_t *value, bool last);

/* Takes in completions of what was sent.  NEZHA_ERR_CLOSED: one of them is an error (told at info). */
int nezha_verbs_end_reap(struct nezha_verbs_end *end);

/* The next completion of what was sent shall make an event (and is looked for once more).  As _reap. */
int nezha_verbs_end_await(struct nezha_verbs_end *end);

/* The next message: *data and *length, in a buffer of the end until nezha_verbs_end_return, and *value if it has one, else
 * NULL.  NEZHA_INPROGRESS: there is one; NEZHA_OK: none now, an event will tell; NEZHA_ERR_CLOSED, NEZHA_ERR_PROTOCOL. */
int nezha_verbs_end_arrival(struct nezha_verbs_end *end, const char **data, uint32_t *length, uint32_t *value,
                            bool *has_value);

/* The buffer of the last arrival can take in the next message.  NEZHA_ERR_CLOSED. */
int nezha_verbs_end_return(struct nezha_verbs_end *end);

/* The end is no longer used: it will be buried. */
void nezha_verbs_end_retire(struct nezha_verbs_end *end);

#endif
