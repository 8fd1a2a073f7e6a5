/* SPDX-License-Identifier: BSD-3-Clause
 * The handshake that begins every connection: only processes of the job, which hold its random key, get past it.
 *
 *   acceptor  -> challenge  a nonce
 *   connector -> hello      who, what for, a nonce, MAC(key, challenge nonce + hello)
 *   acceptor  -> welcome    MAC(key, both nonces): the acceptor holds the key too
 *
 * The MAC is libsodium's crypto_auth.  A recorded hello is of no use: the acceptor's nonce is new each time. */
#ifndef NEZHA_RAILS_HELLO_H
#define NEZHA_RAILS_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#define NEZHA_HELLO_MAGIC 0x5a485a4eu
#define NEZHA_NONCE_BYTES 16
#define NEZHA_MAC_BYTES 32

enum nezha_hello_kind { NEZHA_HELLO_DATA, NEZHA_HELLO_CONTROL };

struct nezha_challenge {
	uint32_t magic, protocol;
	unsigned char nonce[NEZHA_NONCE_BYTES];
};

struct nezha_hello {
	uint32_t magic, protocol;
	int32_t from, to;            /* processes */
	uint8_t kind;                /* enum nezha_hello_kind */
	uint8_t rail;                /* the acceptor's number of the rail */
	uint16_t zero;
	unsigned char nonce[NEZHA_NONCE_BYTES];
	unsigned char mac[NEZHA_MAC_BYTES];
};

struct nezha_welcome {
	unsigned char mac[NEZHA_MAC_BYTES];
};

void nezha_challenge_make(struct nezha_challenge *out);

/* The answer to a challenge; from, to, kind and rail of *hello are the caller's.  NEZHA_ERR_PROTOCOL: it is no
 * challenge of ours. */
int nezha_hello_make(const unsigned char *key, const struct nezha_challenge *challenge, struct nezha_hello *hello);

/* Whether the hello answers the challenge, is meant for process `me` with `rails` rails, and came over its rail `rail`. */
int nezha_hello_check(const unsigned char *key, const struct nezha_challenge *challenge,
                      const struct nezha_hello *hello, int me, int rail);

void nezha_welcome_make(const unsigned char *key, const struct nezha_challenge *challenge,
                        const struct nezha_hello *hello, struct nezha_welcome *out);
int nezha_welcome_check(const unsigned char *key, const struct nezha_challenge *challenge,
                        const struct nezha_hello *hello, const struct nezha_welcome *welcome);

#endif
