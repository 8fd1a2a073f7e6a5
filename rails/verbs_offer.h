/* SPDX-License-Identifier: BSD-3-Clause
 * What the two ends of a verbs path tell one another before data flows, over the TCP connection that the handshake of
 * hello.h has opened:
 *
 *   connector (it will send blocks)   -> OFFER   its queue pair, which is ready to take in
 *   acceptor                          -> OFFER   its own, connected, with its buffers posted
 *   connector                         -> over the queue pair, the proof: one message as long as any may be
 *   connector                         -> GO      the proof has been acknowledged
 *   acceptor                          -> GO      it has come as it was sent: both may send
 *
 * That queue pairs could be connected means nothing: neither end has sent a
 * packet yet, and where TCP gets through RoCE need not (a filter, packets too long for some switch).
 *
 * After that the TCP connection stays open and silent: its end tells that the peer is gone. */
#ifndef NEZHA_RAILS_VERBS_OFFER_H
#define NEZHA_RAILS_VERBS_OFFER_H

#include <stdint.h>

#define NEZHA_VERBS_MAGIC 0x5a56u
#define NEZHA_VERBS_BUFFERS_MAX 4096u

enum nezha_verbs_offer_kind { NEZHA_VERBS_OFFER = 1, NEZHA_VERBS_GO };

struct nezha_verbs_offer {
	uint16_t magic;
	uint8_t kind;
	uint8_t link;                   /* enum nezha_verbs_link: ETHERNET or INFINIBAND */
	uint32_t qpn, psn;              /* 24 bits */
	uint16_t lid;                   /* 0: none */
	uint16_t mtu;                   /* bytes: 256, 512, 1024, 2048 or 4096 */
	uint32_t buffers;               /* messages that it can take in: >= 1 */
	uint32_t message;               /* bytes of one of them: NEZHA_VERBS_MESSAGE */
	uint32_t reserved;              /* 0 */
	unsigned char gid[16];
};

/* Whether it is one of the kind with values that are allowed.  Nothing of an offer may be used before this.  Returns
 * NEZHA_OK or NEZHA_ERR_PROTOCOL. */
int nezha_verbs_offer_check(const struct nezha_verbs_offer *offer, enum nezha_verbs_offer_kind kind);

#endif
