/* SPDX-License-Identifier: BSD-3-Clause
 * Byte counts as people write them. */
#ifndef NEZHA_TUNING_BYTES_H
#define NEZHA_TUNING_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Reads "4096", "64K", "1M" or "2G" (powers of 1024, also in lower case) and nothing else: no sign, no blank,
 * no fraction.  NEZHA_ERR_INVALID for anything else and for what does not fit 64 bits. */
int nezha_bytes_parse(const char *text, uint64_t *out);

/* Prints the shortest text that nezha_bytes_parse reads back, "64K", into buf (24 bytes suffice). */
void nezha_bytes_print(uint64_t bytes, char *buf, size_t len);

/* The size class of a byte count: k for [2^k, 2^(k+1)), 0 also for 0. */
static inline unsigned nezha_bytes_class(uint64_t bytes)
{
	return bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
}

#endif
