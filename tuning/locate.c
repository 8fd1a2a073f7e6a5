/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/locate.h"

#include <stdbool.h>
#include <string.h>

struct cursor {
	const char *at, *end;
};

static char peek(const struct cursor *c)
{
	return c->at < c->end ? *c->at : '\0';
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && memchr(" \t\r\n", *c->at, 4))
		c->at++;
}

static void skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
		if (*c->at == '\\')
			c->at++;
	if (c->at < c->end)
		c->at++;
	else
		c->at = c->end;
}

/* Past one string, number, word or bracket. */
static void skip_token(struct cursor *c)
{
	if (peek(c) == '"') {
		skip_string(c);
	} else if (c->at < c->end && strchr("{}[],:", *c->at)) {
		c->at++;
	} else {
		while (c->at < c->end && !strchr("{}[],: \t\r\n\"", *c->at))
			c->at++;
	}
	skip_blanks(c);
}

/* Past a value, however deep it nests. */
static void skip_value(struct cursor *c)
{
	size_t depth = 0;

	do {
		char first = peek(c);

		if (first == '{' || first == '[')
			depth++;
		else if ((first == '}' || first == ']') && depth > 0)
			depth--;
		skip_token(c);
	} while (depth > 0 && c->at < c->end);
}

/* From the opening bracket of an object or array to its member or element `ordinal`. */
static bool enter(struct cursor *c, size_t ordinal)
{
	bool object = peek(c) == '{';

	if (!object && peek(c) != '[')
		return false;
	skip_token(c);
	for (size_t i = 0; i < ordinal; i++) {
		if (object) {
			skip_token(c);   /* the key */
			skip_token(c);   /* ':' */
		}
		skip_value(c);
		if (peek(c) != ',')
			return false;
		skip_token(c);
	}
	return peek(c) != '}' && peek(c) != ']' && c->at < c->end;
}

int nezha_json_line(const char *text, size_t len, const size_t *path, size_t depth)
{
	struct cursor c = { text, text + len };
	const char *found;
	int line = 1;

	skip_blanks(&c);
	found = c.at;
	for (size_t i = 0; i < depth && enter(&c, path[i]); i++) {
		found = c.at;
		if (peek(&c) == '"') {
			/* A key, if ':' follows; else an element that is a string, where the path ends. */
			skip_token(&c);
			if (peek(&c) != ':')
				break;
			skip_token(&c);
		}
	}
	for (const char *p = text; p < found; p++)
		line += *p == '\n';
	return line;
}
