/* SPDX-License-Identifier: BSD-3-Clause
 * What MPI's side sees of the rails: one engine per process, one team per communicator.
 *
 *   engine_create                   once per process
 *   engine_card -> exchange         every rank's card to every rank of the communicator
 *   team_create                     collective in meaning, local in work: who is my neighbour
 *   team_connect -> agree           local with a time limit; the caller ANDs the masks over the ranks
 *   team_activate                   local: the rails in common are fixed
 *   allreduce                       collective
 *   team_destroy, engine_destroy
 *
 * Thread rule: all functions may be called from any thread; calls on one team must not overlap (as MPI
 * demands of a communicator), calls on different teams may. */
#ifndef NEZHA_RAILS_TEAM_H
#define NEZHA_RAILS_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/ina_address.h"
#include "rails/lack.h"
#include "rails/nic.h"
#include "tuning/rail_set.h"
#include "tuning/settings.h"
#include "tuning/types.h"
#include "tuning/verbs_options.h"

#define NEZHA_KEY_BYTES 32
#define NEZHA_PROTOCOL 13       /* of cards and wire records, and of how calls are cut and ways chosen; differing ones do not talk */

struct nezha_engine;
struct nezha_team;
struct nezha_trace;

/* One process as the others must know it.  Plain bytes: exchanged as they are (the ranks of a job
 * run the same build on the same kind of machine; `protocol` guards against the rest). */
struct nezha_card {
	uint32_t protocol;
	int32_t process;               /* the process's rank in MPI_COMM_WORLD */
	uint64_t host;                 /* hash of the host's identity (boot id + host name) */
	char hostname[64];
	uint32_t ina_room;             /* 1: it may have one more team's sessions with aggregators (ina.h), else 0 */
	uint32_t rail_count;
	struct nezha_card_rail {
		uint32_t key_subnet;       /* see struct nezha_rail_nic */
		uint32_t address;          /* network byte order */
		uint16_t port;             /* where its service thread listens; host byte order */
		uint8_t key_prefix, key_entry, key_ordinal, prefix;
		uint16_t kind;             /* enum nezha_rail_kind */
		uint32_t speed;            /* Mbit/s, 0 unknown */
	} rails[NEZHA_RAILS_MAX];
};

/* Whether both are the same rail of their processes. */
bool nezha_card_same_rail(const struct nezha_card_rail *a, const struct nezha_card_rail *b);

/* Called now and then by a thread that waits inside nezha_allreduce (rails/pace.h): lets MPI progress.  Called without any lock of ours held. */
typedef void nezha_progress_fn(void *context);

struct nezha_engine_config {
	int process;                         /* rank in MPI_COMM_WORLD, >= 0 */
	const unsigned char *key;            /* NEZHA_KEY_BYTES, the job's */
	const struct nezha_rail_nic *rails;  /* copied */
	size_t rail_count;                   /* 0..NEZHA_RAILS_MAX; 0 is allowed: every team then lacks rails */
	enum nezha_policy_kind policy;
	struct nezha_verbs_options verbs;    /* how verbs rails connect */
	bool crc;                            /* records and blocks bear a CRC32C; alike on all processes */
	struct nezha_ina_address aggregators[NEZHA_INA_MAX];  /* that all teams use beside the links */
	uint32_t aggregator_count;           /* 0..NEZHA_INA_MAX, less by one with SHARP */
	struct {
		bool wanted;                 /* NEZHA_RAILS has it */
		bool leader;                 /* the process is its node's first one */
		char device[NEZHA_SHARP_DEVICE]; /* "mlx5_0:1"; "": the library chooses */
	} sharp;
	bool reproducible;                   /* runs shall agree bit for bit */
	struct nezha_lack *lack;             /* where to note what cannot be had; may be NULL */
	struct nezha_trace *trace;           /* gets a timeline; the caller's, who frees it after the engine.  NULL: none */
	nezha_progress_fn *progress;         /* may be NULL */
	void *progress_context;
};

/* Starts listening and the service thread (blocks all signals).  A rail that cannot listen is dropped
 * with a warning.  Errors: NEZHA_ERR_NOMEM, NEZHA_ERR_SYSTEM (both noted in config->lack). */
int nezha_engine_create(const struct nezha_engine_config *config, struct nezha_engine **out);

/* After all teams are destroyed.  Closes everything; NULL is allowed. */
void nezha_engine_destroy(struct nezha_engine *engine);

/* Around a fork: _hold before it, _release after it in the parent, _abandon in the child.  In between nothing of the engine changes,
 * so that the child can close its copies of the descriptors, without touching the parent's connections.  _hold waits 100 ms
 * at most (a signal handler may fork in the middle of a call); false: _release and _abandon must not be called. */
bool nezha_engine_hold(struct nezha_engine *engine);
void nezha_engine_release(struct nezha_engine *engine);
void nezha_engine_abandon(struct nezha_engine *engine);

void nezha_engine_card(const struct nezha_engine *engine, struct nezha_card *out);

/* `cards` of all ranks in the communicator's order (copied as far as needed), `rank` is the caller's place, `id` is
 * the same on all ranks and unique among the teams of every process in it (say leader's process << 32 | its counter).
 * nranks >= 2.  NEZHA_ERR_PROTOCOL: another protocol version (host named in the log). */
int nezha_team_create(struct nezha_engine *engine, const struct nezha_card *cards, int nranks, int rank,
                      uint64_t id, struct nezha_team **out);

/* Opens the links to the neighbours within timeout_s; *rails_ok gets bit r set if rail r of the team's common rails
 * (numbered alike on
 * all ranks) works to the right neighbour, and a bit of its own if any rail of the pair does; 0 if none does.  A link
 * uses every rail that its two processes share.  Failed pairs are logged at info.  Returns NEZHA_OK also if no rail
 * works. */
int nezha_team_connect(struct nezha_team *team, double timeout_s, uint32_t *rails_ok);

/* Fixes the rails: the AND of all ranks' masks, != 0.  Collective where SHARP is wanted: it is opened over the ring. */
void nezha_team_activate(struct nezha_team *team, uint32_t rails);

/* How many rails the team's ranks have in common, before reachability, and how many the host with the most has. */
int nezha_team_rails_common(const struct nezha_team *team, int *most);

/* In how many first calls of a large size the team's collective rails and its links share by a guess; 0 if it has no collective rail. */
uint32_t nezha_team_guesses(const struct nezha_team *team);

/* The subnet of the team's common rail c (< nezha_team_rails_common), as rank 0 has it: the same on all ranks. */
struct nezha_subnet nezha_team_rail(const struct nezha_team *team, int c);

/* The team's common rails of TCP that the set names: bit c for rail c, the same on all ranks.  0: none (or the set is empty). */
uint32_t nezha_team_rails_named(const struct nezha_team *team, const struct nezha_rail_set *set);

/* Whether no path to the right neighbour is lost. */
bool nezha_team_is_whole(const struct nezha_team *team);

/* Bytes that a rank tells its left neighbour of at a time, as it has more of a gradual call: a quarter of what it has told of, within: */
#define NEZHA_GRANT_LEAST (128u << 10)
#define NEZHA_GRANT_MOST (256u << 10)

/* How a call shall go; the same on all ranks, but for the note's values. */
struct nezha_way {
	uint32_t block;    /* bytes, as of grid.h */
	uint32_t rails;    /* the common rails that it is restricted to, bit c for rail c; 0: it may use all that the
	                    * links have.  A link that has lost all of these uses what else it has. */
	uint32_t shared;   /* so many blocks from the first on are the collective rail's, if that one has no token */
	uint64_t *note;    /* NEZHA_NOTE_VALUES numbers (tuning/model.h) that travel with the blocks, each of which
	                    * becomes the least of all ranks; NULL: none */
	bool silent;       /* the collective rails add nothing to a note, as where not all ranks may have the same ones */
	int (*work)(void *context, uint64_t final, uint64_t *ready);  /* other work of the waiting thread, done a little at a
	                    * time (some 10 us), without any lock of ours.  It may use the first `final` bytes of the receive buffer,
	                    * which are final.  NEZHA_INPROGRESS: there may be more; NEZHA_OK: not now; an error ends the call.
	                    * NULL: none */
	void *context;
	bool gradual;      /* the contribution comes to be there while the call is in progress, from its first byte on.  On all ranks
	                    * or on none, and for teams without collective rails only */
	uint64_t ready;    /* gradual: so many bytes of it are there now; `work` says how many are later.  They may wait for what is
	                    * final, but have to be a block and NEZHA_GRANT_MOST bytes ahead of it */
};

/* out[i] = fold over all ranks of in[i], in place: sendbuf may equal recvbuf (MPI_IN_PLACE), no other overlap.  Returns
 * after this rank's part in everyone's recovery is over.  Errors: NEZHA_ERR_NOMEM (before any byte moved),
 * NEZHA_ERR_UNREACHABLE (all rails to a neighbour lost; the
 * message names them), NEZHA_ERR_PROTOCOL (the ranks disagree about the call, or another one has given it up, as all do then). */
int nezha_allreduce(struct nezha_team *team, const void *sendbuf, void *recvbuf, uint64_t count,
                    enum nezha_type type, enum nezha_op op, const struct nezha_way *way);

/* This rank cannot go on with the team's calls, for a reason of the caller's: the others' calls end with an
 * error, too, instead of waiting for ever. */
void nezha_team_give_up(struct nezha_team *team);

/* For a thread that waits for the other ranks outside of nezha_allreduce, every few milliseconds: attends to the links for a moment.
 * NEZHA_ERR_UNREACHABLE: no call of the team can be finished any more, since a rank is lost (told as in a call) or has given up. */
int nezha_team_attend(struct nezha_team *team);

#define NEZHA_STATS_MAX (NEZHA_RAILS_MAX + NEZHA_INA_MAX)

/* Counters of one rail as this process sees it, since the engine's creation. */
struct nezha_rail_stats {
	char device[IF_NAMESIZE];
	char subnet[24];                     /* "10.77.0.0/24"; of an aggregator's device, "ina" or, if there are several, "ina1" and so
	                              * on: "10.77.0.254:4790"; of "sharp": its device */
	uint64_t bytes_sent;                 /* payload of blocks handed to it */
	uint64_t bytes_resent;               /* of these: again, after a failure */
	uint64_t failures, returns;          /* paths lost and regained */
	uint64_t wrong;                      /* blocks that came over it with a wrong CRC, and were sent again */
};
/* The engine's rails in their order, then its aggregators in theirs, then SHARP: NEZHA_STATS_MAX at most. */
size_t nezha_engine_rail_stats(const struct nezha_engine *engine, struct nezha_rail_stats *out, size_t max);

/* Bytes that the process has registered with RDMA devices: now, at most so far, at most allowed (NEZHA_VERBS=memory=). */
struct nezha_registered {
	uint64_t now, most, limit;
};
void nezha_engine_registered(const struct nezha_engine *engine, struct nezha_registered *out);

/* Bytes that the rails' interfaces have sent so far, whoever's: modulo 2^32, so only differences count.  0 if the kernel does
 * not tell.  Takes some 100 us. */
uint32_t nezha_engine_traffic(const struct nezha_engine *engine);

/* Payload bytes that the calling rank handed to rail r (as nezha_engine_rail_stats counts them) during its last allreduce
 * on this team. */
uint64_t nezha_team_last_bytes(const struct nezha_team *team, size_t rail);

/* Not collective; the team has no call in progress. NULL is allowed. */
void nezha_team_destroy(struct nezha_team *team);

#endif
