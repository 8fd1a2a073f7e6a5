/* SPDX-License-Identifier: BSD-3-Clause
 * The verbs rail: one RC queue pair per path.  What the engine and the service thread see of it; no header of libibverbs.
 *
 * Blocks are copied into registered buffers of the path and sent from there, into registered buffers of the receiving
 * end, where they land by the same code as TCP's.  The memory of the program is never registered, and no memory is open to
 * the peer (plain sends, no remote access).  What a message may be: verbs_message.h; the receiver takes the messages for a stream
 * of bytes, as TCP's.
 *
 * Credits: the sending end may have as many messages under way as the receiving end has said that it has posted buffers for.
 * Backward messages carry the count, alone or with a backward record.
 *
 * Built without libibverbs (configure), nezha_verbs_open fails with NEZHA_ERR_UNSUPPORTED and nothing else is called. */
#ifndef NEZHA_RAILS_VERBS_H
#define NEZHA_RAILS_VERBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rails/rail.h"
#include "rails/verbs_offer.h"
#include "rails/verbs_port.h"
#include "tuning/verbs_options.h"

struct nezha_verbs_device;
struct nezha_verbs_end;

extern const struct nezha_rail_ops nezha_verbs_rail;

/* Whether this build has verbs rails. */
bool nezha_verbs_built(void);

/* Registered memory of a process, bytes. */
struct nezha_verbs_memory {
	uint64_t limit;
	atomic_uint_fast64_t now, most;
};

/* Opens the port's device; `memory` is the caller's and outlives it.  NEZHA_ERR_UNSUPPORTED (no library, no such device),
 * NEZHA_ERR_SYSTEM: warned of, with the cause. */
int nezha_verbs_open(const struct nezha_verbs_port *port, const struct nezha_verbs_options *options,
                     struct nezha_verbs_memory *memory, struct nezha_verbs_device **out);

/* Destroys what was retired, too.  No end is in use any more.  NULL is allowed. */
void nezha_verbs_close(struct nezha_verbs_device *device);

/* What all the functions of an end here have in common: they are the service thread's, before the end is a path's, and called
 * without a lock, since some take milliseconds.  Why one has failed is told by nezha_verbs_why. */

/* Text of the device's, until its next failure. */
const char *nezha_verbs_why(const struct nezha_verbs_device *device);

/* A queue pair and its buffers, not yet connected: `sender` for a path, else for an inpath.  Asks the port anew for what may have
 * changed.  NEZHA_ERR_NOMEM (the limit, or the kernel's), NEZHA_ERR_UNREACHABLE (the port is down), NEZHA_ERR_CLOSED,
 * NEZHA_ERR_SYSTEM. */
int nezha_verbs_end_create(struct nezha_verbs_device *device, bool sender, struct nezha_verbs_end **out);

/* What its peer must know of it. */
void nezha_verbs_end_offer(const struct nezha_verbs_end *end, struct nezha_verbs_offer *out);

/* Connects it to the peer of the (checked) offer: it can then take in and send.  NEZHA_ERR_SYSTEM, NEZHA_ERR_PROTOCOL. */
int nezha_verbs_end_connect(struct nezha_verbs_end *end, const struct nezha_verbs_offer *peer);

/* The proof that the queue pair carries what it shall (verbs_offer.h).  The sender posts it, and asks whether it has been
 * acknowledged, the other end asks whether it has come: NEZHA_INPROGRESS, not yet, _events will tell; NEZHA_OK, from now on the end
 * may be a path's; an error. */
int nezha_verbs_end_prove(struct nezha_verbs_end *end);
int nezha_verbs_end_proved(struct nezha_verbs_end *end);
int nezha_verbs_end_take_proof(struct nezha_verbs_end *end);

/* Becomes readable when there may be something to do. */
int nezha_verbs_end_events(const struct nezha_verbs_end *end);

/* Frees it; NULL is allowed. */
void nezha_verbs_end_destroy(struct nezha_verbs_end *end);

/* Destroys the ends of paths that were closed: called by the service thread without the lock, which it takes for a moment
 * (`lock` is the engine's).  An HCA may take long for that, and calls must not wait for it. */
struct nezha_engine;
void nezha_verbs_bury(struct nezha_verbs_device *device, struct nezha_engine *engine);

/* What happens to the device; all of it the service thread's.  _watch: readable if there is an event, -1: there is nothing to
 * watch.  _event takes in what there is: LOST, no path over the port works any more (it is down, or has another address); BACK,
 * it may work again.  _usable: the port is up, as far as is known. */
enum nezha_verbs_event { NEZHA_VERBS_NOTHING, NEZHA_VERBS_LOST, NEZHA_VERBS_BACK };
int nezha_verbs_watch(const struct nezha_verbs_device *device);
enum nezha_verbs_event nezha_verbs_event(struct nezha_verbs_device *device);
bool nezha_verbs_usable(const struct nezha_verbs_device *device);

/* Opens a device anew that has failed, once all its ends are buried, and asks a port that is down, whose event may have been
 * missed.  *back: it is usable again.  Returns when (ns) to call it again, UINT64_MAX: not before something happens. */
uint64_t nezha_verbs_revive(struct nezha_verbs_device *device, uint64_t now, bool *back);

#endif
