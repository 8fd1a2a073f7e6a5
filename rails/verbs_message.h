/* SPDX-License-Identifier: BSD-3-Clause
 * What one forward message of a verbs path may be.  A path carries a stream of records with their payloads, as a TCP connection
 * does; it is cut into messages like this:
 *
 *   whole records with their payloads, one or several, as many as fit
 *   a record with the first NEZHA_VERBS_PIECE bytes of a longer payload
 *   a further piece of that, as long as it may be: NEZHA_VERBS_PIECE bytes, or what is left */
#ifndef NEZHA_RAILS_VERBS_MESSAGE_H
#define NEZHA_RAILS_VERBS_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "rails/wire.h"

#define NEZHA_VERBS_PIECE 65536u        /* bytes of one payload that one message carries at most */
#define NEZHA_VERBS_RECORDS 16u         /* with payloads of 4 KiB, the least that a grid has, as many fit */
#define NEZHA_VERBS_MESSAGE (NEZHA_VERBS_PIECE + NEZHA_VERBS_RECORDS * (uint32_t)sizeof(struct nezha_wire))

/* Whether the `length` bytes are one; `left` is how much of a payload has not come yet, 0: a record is next.  Nothing else is
 * known of the records by this. */
bool nezha_verbs_message_is_whole(const char *data, uint32_t length, uint32_t left);

#endif
