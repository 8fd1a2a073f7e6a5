/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/json_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/locate.h"
#include "tuning/status.h"
#include "tuning/text.h"

#define SHOWN_MAX 40    /* bytes of a wrong value in a message */

static int vfail_at(struct nezha_json *p, int line, const char *format, va_list args)
{
	char *message;

	if (vasprintf(&message, format, args) < 0)
		return NEZHA_ERR_NOMEM;
	if (asprintf(&p->error, "%s:%d: %s", p->name, line, message) < 0)
		p->error = NULL;
	free(message);
	if (!p->error)
		return NEZHA_ERR_NOMEM;
	nezha_text_clean(p->error, strlen(p->error));   /* the name, a key or a value may be anything */
	return NEZHA_ERR_INVALID;
}

__attribute__((format(printf, 3, 4)))
static int fail_at(struct nezha_json *p, int line, const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = vfail_at(p, line, format, args);
	va_end(args);
	return status;
}

int nezha_json_fail(struct nezha_json *p, const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = vfail_at(p, nezha_json_line(p->text, p->len, p->path, p->depth), format, args);
	va_end(args);
	return status;
}

/* "KEY" VERB VALUE: allowed is ALLOWED */
static int refuse(struct nezha_json *p, const struct nezha_json_field *field, const char *verb, const json_t *value,
                  const char *allowed)
{
	char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
	int status;

	if (!shown)
		return NEZHA_ERR_NOMEM;
	status = nezha_json_fail(p, "\"%s\" %s %.*s%s: allowed is %s", field->key, verb, SHOWN_MAX, shown,
	                         strlen(shown) > SHOWN_MAX ? "..." : "", allowed);
	free(shown);
	return status;
}

int nezha_json_wrong(struct nezha_json *p, const struct nezha_json_field *field, const json_t *value,
                     const char *allowed)
{
	return refuse(p, field, "is", value, allowed);
}

void *nezha_json_member(const struct nezha_json_field *field, void *target)
{
	return (char *)target + field->offset;
}

/* "a, b, c" out of the keys; cut to len. */
static void list_keys(const struct nezha_json_field *fields, size_t count, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < count && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? ", " : "", fields[i].key);
}

static int unknown_key(struct nezha_json *p, const char *key, const struct nezha_json_field *fields, size_t count)
{
	char allowed[256];

	list_keys(fields, count, allowed, sizeof allowed);
	return nezha_json_fail(p, "unknown key \"%.*s\"%s: allowed here is %s", SHOWN_MAX, key,
	                       strlen(key) > SHOWN_MAX ? "..." : "", allowed);
}

int nezha_json_object(struct nezha_json *p, json_t *object, const struct nezha_json_field *fields, size_t count,
                      void *target)
{
	const char *key;
	json_t *value;
	int status = NEZHA_OK;

	for (size_t i = 0; i < count; i++)
		if (fields[i].required && !json_object_get(object, fields[i].key))
			return nezha_json_fail(p, "the key \"%s\" is missing", fields[i].key);
	p->path[p->depth++] = 0;
	json_object_foreach(object, key, value) {
		size_t i = 0;

		while (i < count && strcmp(key, fields[i].key))
			i++;
		status = i == count ? unknown_key(p, key, fields, count)
		                    : fields[i].read(p, &fields[i], value, target);
		if (status != NEZHA_OK)
			return status;
		p->path[p->depth - 1]++;
	}
	p->depth--;
	return NEZHA_OK;
}

int nezha_json_array(struct nezha_json *p, const struct nezha_json_field *field, json_t *array, size_t most,
                     size_t size, nezha_json_element_fn *read, void *out, size_t *out_count)
{
	char allowed[64], *places;
	size_t i, count = json_array_size(array);
	json_t *element;
	int status;

	snprintf(allowed, sizeof allowed, "an array of at most %zu objects", most);
	if (!json_is_array(array) || count > most)
		return nezha_json_wrong(p, field, array, allowed);
	places = calloc(count ? count : 1, size);
	if (!places)
		return NEZHA_ERR_NOMEM;
	*(void **)out = places;
	*out_count = count;
	p->path[p->depth++] = 0;
	json_array_foreach(array, i, element) {
		p->path[p->depth - 1] = i;
		if (!json_is_object(element))
			return refuse(p, field, "contains", element, "objects only");
		status = read(p, element, places + i * size);
		if (status != NEZHA_OK)
			return status;
	}
	p->depth--;
	return NEZHA_OK;
}

int nezha_json_load(struct nezha_json *p, json_t **root)
{
	json_error_t e;

	if (memchr(p->text, '\0', p->len))   /* jansson takes it for the end */
		return nezha_json_fail(p, "not JSON: a NUL byte in it");
	*root = json_loadb(p->text, p->len, JSON_REJECT_DUPLICATES, &e);
	if (*root)
		return NEZHA_OK;
	if (json_error_code(&e) == json_error_out_of_memory)
		return NEZHA_ERR_NOMEM;
	return fail_at(p, e.line > 0 ? e.line : 1, "not JSON: %s", e.text);
}
