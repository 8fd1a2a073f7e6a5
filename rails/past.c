/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/past.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define LINE 64u

static void copy_line(char *to, const char *from)
{
	for (size_t i = 0; i < LINE; i += sizeof(__m128i))
		_mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
}

void nezha_past_copy(void *to, const void *from, size_t bytes)
{
	size_t head = -(uintptr_t)to % LINE, at;

	if (head > bytes)
		head = bytes;
	memcpy(to, from, head);
	for (at = head; at + LINE <= bytes; at += LINE)
		copy_line((char *)to + at, (const char *)from + at);
	memcpy((char *)to + at, (const char *)from + at, bytes - at);
	/* Such stores are not ordered with those by which others learn of them. */
	_mm_sfence();
}
#else
void nezha_past_copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}
#endif
