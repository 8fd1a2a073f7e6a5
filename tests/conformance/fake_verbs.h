/* SPDX-License-Identifier: BSD-3-Clause
 * A provider of verbs within one process, behind the table of rails/verbs_api.h: RC queue pairs with sends, immediate data,
 * completion queues and event channels, as the standard has them.  What a device cannot be made to do is done on request. */
#ifndef NEZHA_TESTS_FAKE_VERBS_H
#define NEZHA_TESTS_FAKE_VERBS_H

#include <stdbool.h>

#include "rails/verbs_api.h"

#define FAKE_DEVICE "fake0"

extern const struct nezha_verbs_api fake_verbs;

enum fake_fault {
	FAKE_COMPLETION,        /* a send completes with an error, its queue pair breaks */
	FAKE_SILENCE,           /* a send goes nowhere, and is never completed */
	FAKE_POST,              /* a send is not taken */
	FAKE_CREDITS,           /* a message with immediate data tells too high a value */
	FAKE_NO_VALUE,          /* ... has lost it */
	FAKE_VALUE,             /* a message without immediate data has got some */
	FAKE_EMPTY,             /* a message arrives without its bytes */
	FAKE_MISSING,           /* a message is cut by some bytes */
	FAKE_BIT,               /* a bit of a message's payload is changed */
	FAKE_RECORD,            /* ... of its record, behind which payload comes in the same message */
	FAKE_REGISTER,          /* memory cannot be registered */
	FAKE_CREATE,            /* no queue pair can be made */
	FAKE_CONNECT,           /* one cannot be connected */
	FAKE_FAULTS
};

/* From the `after`-th time on (1: the next) it happens `times` times. */
void fake_verbs_fault(enum fake_fault fault, int after, int times);

/* How often it has happened since. */
int fake_verbs_happened(enum fake_fault fault);

/* Without it (false) only the records of a message are moved, as if the rest were no work. */
void fake_verbs_payload(bool moved);

/* Sends are completed only when the receiver has taken them out of their buffers (but the first one of a queue pair). */
void fake_verbs_late(bool late);

/* Tells all that have the device open.  IBV_EVENT_DEVICE_FATAL: it makes no more queue pairs until it is opened anew. */
void fake_verbs_event(enum ibv_event_type type);

/* All connected queue pairs go into the error state, as by ibv_modify_qp: what they have to do is flushed. */
void fake_verbs_break_pairs(void);

/* How often it was opened so far. */
int fake_verbs_opened(void);

/* Objects that were made and not destroyed: devices, queue pairs, regions, ...; and messages delivered so far. */
int fake_verbs_objects(void);
long fake_verbs_messages(void);

/* Queue pairs that were made so far. */
long fake_verbs_pairs_made(void);

#endif
