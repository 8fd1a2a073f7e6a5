/* SPDX-License-Identifier: BSD-3-Clause
 * Texts of users and peers in our messages: whatever they contain, a line stays one line.  Not <ctype.h>,
 * which follows the application's locale. */
#ifndef NEZHA_TUNING_TEXT_H
#define NEZHA_TUNING_TEXT_H

#include <stdbool.h>
#include <stddef.h>

static inline bool nezha_is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

/* Puts '?' for control characters in text[0..len), a blank for line ends and tabs. */
static inline void nezha_text_clean(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (nezha_is_control(text[i]))
			text[i] = text[i] == '\n' || text[i] == '\t' ? ' ' : '?';
}

#endif
