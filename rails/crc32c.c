/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#ifdef NEZHA_ISAL
#include <isa-l/crc.h>
#endif

#define POLYNOMIAL 0x82f63b78u       /* bits reversed */
#define SLICES 8                     /* bytes a step: 8 tables of which no look-up waits for another one */

static uint32_t table[SLICES][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		table[0][i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[0][i] = table[0][i] >> 1 ^ (table[0][i] & 1 ? POLYNOMIAL : 0);
	}
	for (int slice = 1; slice < SLICES; slice++)
		for (uint32_t i = 0; i < 256; i++)
			table[slice][i] = table[slice - 1][i] >> 8 ^ table[0][table[slice - 1][i] & 0xff];
}

static uint32_t step(uint32_t crc, const unsigned char *at)
{
	uint64_t word;
	uint32_t next = 0;

	memcpy(&word, at, sizeof word);
	word = le64toh(word) ^ crc;
	for (int slice = 0; slice < SLICES; slice++)
		next ^= table[SLICES - 1 - slice][word >> 8 * slice & 0xff];
	return next;
}

uint32_t nezha_crc32c_tables(const void *data, size_t length)
{
	const unsigned char *at = data;
	uint32_t crc = UINT32_MAX;

	pthread_once(&made, make_tables);
	for (; length >= SLICES; length -= SLICES, at += SLICES)
		crc = step(crc, at);
	for (; length; length--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 0xff];
	return ~crc;
}

#ifdef NEZHA_ISAL

#define PIECE (1u << 30)             /* ISA-L counts in int */

uint32_t nezha_crc32c(const void *data, size_t length)
{
	unsigned char *at = (unsigned char *)data;     /* which it only reads */
	uint32_t crc = UINT32_MAX;

	for (; length > PIECE; length -= PIECE, at += PIECE)
		crc = crc32_iscsi(at, (int)PIECE, crc);
	return ~crc32_iscsi(at, (int)length, crc);
}

const char *nezha_crc32c_by(void)
{
	return "ISA-L";
}

#else

uint32_t nezha_crc32c(const void *data, size_t length)
{
	return nezha_crc32c_tables(data, length);
}

const char *nezha_crc32c_by(void)
{
	return "tables";
}

#endif
