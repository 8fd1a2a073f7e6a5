/* SPDX-License-Identifier: BSD-3-Clause
 * Reads JSON (untrusted) into structs by lists of the keys that an object may have.  What refuses something says so in
 * json->error, with name and line, and returns NEZHA_ERR_INVALID; NEZHA_ERR_NOMEM comes without a message. */
#ifndef NEZHA_TUNING_JSON_OBJECT_H
#define NEZHA_TUNING_JSON_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define NEZHA_JSON_DEPTH 8   /* levels that the lists of keys may lead down */

struct nezha_json {
	const char *text, *name;
	size_t len;
	size_t path[NEZHA_JSON_DEPTH];   /* ordinals from the top to what is being read */
	size_t depth;
	char *error;              /* the first one */
};

/* One key that an object may have, and what reads its value into `target`. */
struct nezha_json_field {
	const char *key;
	int (*read)(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target);
	size_t offset;            /* of the member in the target */
	bool required;
};

/* The text as a tree, *root, which the caller releases. */
int nezha_json_load(struct nezha_json *p, json_t **root);

/* Refuses what p->path leads to. */
int nezha_json_fail(struct nezha_json *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refuses the field's value: "KEY" is VALUE: allowed is ALLOWED. */
int nezha_json_wrong(struct nezha_json *p, const struct nezha_json_field *field, const json_t *value,
                     const char *allowed);

/* Where the field's value goes. */
void *nezha_json_member(const struct nezha_json_field *field, void *target);

/* Reads all members of `object` by `fields`; nothing else may be in it. */
int nezha_json_object(struct nezha_json *p, json_t *object, const struct nezha_json_field *fields, size_t count,
                      void *target);

/* Reads an element of an array into its place, which is zeroed. */
typedef int nezha_json_element_fn(struct nezha_json *p, json_t *element, void *place);

/* Reads an array of up to `most` objects into places of `size` bytes.  *out (a pointer) and *out_count are set before
 * the first element is read, and the caller's to free also if one is refused. */
int nezha_json_array(struct nezha_json *p, const struct nezha_json_field *field, json_t *array, size_t most,
                     size_t size, nezha_json_element_fn *read, void *out, size_t *out_count);

#endif
