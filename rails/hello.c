/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/hello.h"

#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "rails/team.h"
#include "tuning/status.h"

_Static_assert(NEZHA_MAC_BYTES == crypto_auth_BYTES, "libsodium's MAC");
_Static_assert(NEZHA_KEY_BYTES == crypto_auth_KEYBYTES, "libsodium's key");

void nezha_challenge_make(struct nezha_challenge *out)
{
	out->magic = NEZHA_HELLO_MAGIC;
	out->protocol = NEZHA_PROTOCOL;
	randombytes_buf(out->nonce, sizeof out->nonce);
}

/* What the hello's MAC covers: the acceptor's nonce and everything of the hello before the MAC. */
struct covered {
	unsigned char nonce[NEZHA_NONCE_BYTES];
	unsigned char hello[offsetof(struct nezha_hello, mac)];
};

static void cover(const struct nezha_challenge *challenge, const struct nezha_hello *hello, struct covered *out)
{
	memcpy(out->nonce, challenge->nonce, sizeof out->nonce);
	memcpy(out->hello, hello, sizeof out->hello);
}

int nezha_hello_make(const unsigned char *key, const struct nezha_challenge *challenge, struct nezha_hello *hello)
{
	struct covered text;

	if (challenge->magic != NEZHA_HELLO_MAGIC || challenge->protocol != NEZHA_PROTOCOL)
		return NEZHA_ERR_PROTOCOL;
	hello->magic = NEZHA_HELLO_MAGIC;
	hello->protocol = NEZHA_PROTOCOL;
	hello->zero = 0;
	randombytes_buf(hello->nonce, sizeof hello->nonce);
	cover(challenge, hello, &text);
	crypto_auth(hello->mac, (unsigned char *)&text, sizeof text, key);
	return NEZHA_OK;
}

int nezha_hello_check(const unsigned char *key, const struct nezha_challenge *challenge,
                      const struct nezha_hello *hello, int me, int rail)
{
	struct covered text;

	cover(challenge, hello, &text);
	if (crypto_auth_verify(hello->mac, (unsigned char *)&text, sizeof text, key))
		return NEZHA_ERR_PROTOCOL;
	if (hello->magic != NEZHA_HELLO_MAGIC || hello->protocol != NEZHA_PROTOCOL || hello->to != me ||
	    hello->from < 0 || hello->kind > NEZHA_HELLO_CONTROL || hello->rail != rail || hello->zero)
		return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}

static void join(const struct nezha_challenge *challenge, const struct nezha_hello *hello,
                 unsigned char out[2 * NEZHA_NONCE_BYTES])
{
	memcpy(out, hello->nonce, NEZHA_NONCE_BYTES);
	memcpy(out + NEZHA_NONCE_BYTES, challenge->nonce, NEZHA_NONCE_BYTES);
}

void nezha_welcome_make(const unsigned char *key, const struct nezha_challenge *challenge,
                        const struct nezha_hello *hello, struct nezha_welcome *out)
{
	unsigned char text[2 * NEZHA_NONCE_BYTES];

	join(challenge, hello, text);
	crypto_auth(out->mac, text, sizeof text, key);
}

int nezha_welcome_check(const unsigned char *key, const struct nezha_challenge *challenge,
                        const struct nezha_hello *hello, const struct nezha_welcome *welcome)
{
	unsigned char text[2 * NEZHA_NONCE_BYTES];

	join(challenge, hello, text);
	return crypto_auth_verify(welcome->mac, text, sizeof text, key) ? NEZHA_ERR_PROTOCOL : NEZHA_OK;
}
