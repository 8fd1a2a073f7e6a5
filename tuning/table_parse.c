/* SPDX-License-Identifier: BSD-3-Clause
 * JSON to a table.  Every function that refuses something has said so in parser->error. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/grid.h"
#include "tuning/locate.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/text.h"

#define SHOWN_MAX 40    /* bytes of a wrong value in a message */
#define DEPTH_MAX 8
#define COUNT(array) (sizeof(array) / sizeof *(array))

#define BLOCKS_ALLOWED "a multiple of 4K from 4K to 4M"

struct parser {
	const char *text, *name;
	size_t len;
	size_t path[DEPTH_MAX];   /* ordinals from the top to what is being read */
	size_t depth;
	char *error;              /* the first one */
};

/* One key that an object may have, and what reads its value into `target`. */
struct field {
	const char *key;
	int (*read)(struct parser *p, const struct field *field, json_t *value, void *target);
	size_t offset;            /* of the member in the target */
	bool required;
};

static int vfail_at(struct parser *p, int line, const char *format, va_list args)
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
static int fail_at(struct parser *p, int line, const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = vfail_at(p, line, format, args);
	va_end(args);
	return status;
}

/* Refuses what p->path leads to. */
__attribute__((format(printf, 2, 3)))
static int fail(struct parser *p, const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = vfail_at(p, nezha_json_line(p->text, p->len, p->path, p->depth), format, args);
	va_end(args);
	return status;
}

/* "KEY" VERB VALUE: allowed is ALLOWED */
static int refuse(struct parser *p, const struct field *field, const char *verb, const json_t *value,
                  const char *allowed)
{
	char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	int status;

	if (!shown)
		return NEZHA_ERR_NOMEM;
	status = fail(p, "\"%s\" %s %.*s%s: allowed is %s", field->key, verb, SHOWN_MAX, shown,
	              strlen(shown) > SHOWN_MAX ? "..." : "", allowed);
	free(shown);
	return status;
}

static int wrong(struct parser *p, const struct field *field, const json_t *value, const char *allowed)
{
	return refuse(p, field, "is", value, allowed);
}

static void *member(const struct field *field, void *target)
{
	return (char *)target + field->offset;
}

/* "a, b, c" out of the keys; cut to len. */
static void list_keys(const struct field *fields, size_t count, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < count && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? ", " : "", fields[i].key);
}

static int unknown_key(struct parser *p, const char *key, const struct field *fields, size_t count)
{
	char allowed[256];

	list_keys(fields, count, allowed, sizeof allowed);
	return fail(p, "unknown key \"%.*s\"%s: allowed here is %s", SHOWN_MAX, key,
	            strlen(key) > SHOWN_MAX ? "..." : "", allowed);
}

/* Reads all members of `object` by `fields`; nothing else may be in it. */
static int read_object(struct parser *p, json_t *object, const struct field *fields, size_t count,
                       void *target)
{
	const char *key;
	json_t *value;
	int status = NEZHA_OK;

	for (size_t i = 0; i < count; i++)
		if (fields[i].required && !json_object_get(object, fields[i].key))
			return fail(p, "the key \"%s\" is missing", fields[i].key);
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

/* How an element of an array is read into the next free place, and how it is counted. */
typedef int element_fn(struct parser *p, json_t *element, void *place);

static int read_array(struct parser *p, const struct field *field, json_t *array, size_t most, size_t size,
                      element_fn *read, void *out, size_t *out_count)
{
	char allowed[64], *places;
	size_t i, count = json_array_size(array);
	json_t *element;
	int status;

	snprintf(allowed, sizeof allowed, "an array of at most %zu objects", most);
	if (!json_is_array(array) || count > most)
		return wrong(p, field, array, allowed);
	places = calloc(count ? count : 1, size);
	if (!places)
		return NEZHA_ERR_NOMEM;
	/* Owned by the table from here on, and freed with it whatever happens. */
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

/* A number or a text like "64K". */
static bool to_bytes(const json_t *value, uint64_t *out)
{
	if (json_is_string(value))
		return nezha_bytes_parse(json_string_value(value), out) == NEZHA_OK;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*out = (uint64_t)json_integer_value(value);
	return true;
}

static bool is_inf(const json_t *value)
{
	return json_is_string(value) && !strcmp(json_string_value(value), "inf");
}

static int read_size_min(struct parser *p, const struct field *field, json_t *value, void *target)
{
	if (!to_bytes(value, member(field, target)))
		return wrong(p, field, value, "a number of bytes, or a text like \"64K\" (K, M, G)");
	return NEZHA_OK;
}

static int read_size_max(struct parser *p, const struct field *field, json_t *value, void *target)
{
	uint64_t *out = member(field, target);

	if (is_inf(value))
		*out = UINT64_MAX;
	else if (!to_bytes(value, out))
		return wrong(p, field, value, "a number of bytes, a text like \"64K\" (K, M, G), or \"inf\"");
	return NEZHA_OK;
}

static int read_block(struct parser *p, const struct field *field, json_t *value, void *target)
{
	uint64_t bytes;

	if (!to_bytes(value, &bytes) || !nezha_block_fits(bytes))
		return wrong(p, field, value, BLOCKS_ALLOWED);
	*(uint32_t *)member(field, target) = (uint32_t)bytes;
	return NEZHA_OK;
}

static int read_rails(struct parser *p, const struct field *field, json_t *value, void *target)
{
	if (!json_is_string(value) ||
	    nezha_rail_set_parse(json_string_value(value), json_string_length(value), member(field, target)))
		return wrong(p, field, value, NEZHA_RAIL_SET_ALLOWED);
	return NEZHA_OK;
}

static int read_alg(struct parser *p, const struct field *field, json_t *value, void *target)
{
	for (int alg = 0; alg < NEZHA_ALG_MIX; alg++)
		if (json_is_string(value) && !strcmp(json_string_value(value), nezha_algorithm_name(alg))) {
			*(enum nezha_algorithm *)member(field, target) = (enum nezha_algorithm)alg;
			return NEZHA_OK;
		}
	return wrong(p, field, value, "\"native\" or \"ring\"");
}

static int read_reason(struct parser *p, const struct field *field, json_t *value, void *target)
{
	for (int reason = NEZHA_REASON_RULE; reason < NEZHA_REASON_NO_RULE; reason++)
		if (json_is_string(value) && !strcmp(json_string_value(value), nezha_reason_name(reason))) {
			*(enum nezha_reason *)member(field, target) = (enum nezha_reason)reason;
			return NEZHA_OK;
		}
	return wrong(p, field, value, "\"rule\", \"small\", \"one-node\" or \"shared-node\"");
}

static int read_min(struct parser *p, const struct field *field, json_t *value, void *target)
{
	json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;

	if (n < 1 || n > INT_MAX)
		return wrong(p, field, value, "a whole number from 1 to 2147483647");
	*(int *)member(field, target) = (int)n;
	return NEZHA_OK;
}

static int read_max(struct parser *p, const struct field *field, json_t *value, void *target)
{
	json_int_t n = is_inf(value) ? INT_MAX : json_is_integer(value) ? json_integer_value(value) : 0;

	if (n < 1 || n > INT_MAX)
		return wrong(p, field, value, "a whole number from 1 to 2147483647, or \"inf\"");
	*(int *)member(field, target) = (int)n;
	return NEZHA_OK;
}

#define RULE(member) offsetof(struct nezha_rule, member)
static const struct field rule_fields[] = {
	{ "msg_size_min", read_size_min, RULE(msg_size_min), false },
	{ "msg_size_max", read_size_max, RULE(msg_size_max), false },
	{ "alg", read_alg, RULE(alg), true },
	{ "block", read_block, RULE(block), false },
	{ "rails", read_rails, RULE(rails), false },
	{ "reason", read_reason, RULE(reason), false },
};

static int read_rule(struct parser *p, json_t *object, void *place)
{
	struct nezha_rule *rule = place;
	int status;

	*rule = (struct nezha_rule){ .msg_size_max = UINT64_MAX, .reason = NEZHA_REASON_RULE };
	status = read_object(p, object, rule_fields, COUNT(rule_fields), rule);
	if (status != NEZHA_OK)
		return status;
	if (rule->msg_size_min > rule->msg_size_max)
		return fail(p,
		            "\"msg_size_min\" is %" PRIu64 ", more than \"msg_size_max\", which is %" PRIu64,
		            rule->msg_size_min, rule->msg_size_max);
	if (rule->alg == NEZHA_ALG_NATIVE && rule->block)
		return fail(p,
		            "\"block\" is %" PRIu32 ", but \"alg\" is \"native\": allowed with \"ring\" only",
		            rule->block);
	if (rule->alg == NEZHA_ALG_NATIVE && rule->rails.count)
		return fail(p, "\"rails\" is given, but \"alg\" is \"native\": allowed with \"ring\" only");
	if (rule->alg != NEZHA_ALG_NATIVE && rule->reason != NEZHA_REASON_RULE)
		return fail(p, "\"reason\" is \"%s\", but \"alg\" is \"%s\": allowed with \"native\" only",
		            nezha_reason_name(rule->reason), nezha_algorithm_name(rule->alg));
	if (rule->alg != NEZHA_ALG_NATIVE && !rule->block)
		rule->block = NEZHA_BLOCK_DEFAULT;
	return NEZHA_OK;
}

static int read_rules(struct parser *p, const struct field *field, json_t *value, void *target)
{
	struct nezha_rule_group *group = target;

	return read_array(p, field, value, NEZHA_TABLE_RULES, sizeof *group->rules, read_rule,
	                  &group->rules, &group->rule_count);
}

#define GROUP(member) offsetof(struct nezha_rule_group, member)
static const struct field group_fields[] = {
	{ "comm_size_min", read_min, GROUP(comm_size_min), false },
	{ "comm_size_max", read_max, GROUP(comm_size_max), false },
	{ "nodes_min", read_min, GROUP(nodes_min), false },
	{ "nodes_max", read_max, GROUP(nodes_max), false },
	{ "ppn_min", read_min, GROUP(ppn_min), false },
	{ "ppn_max", read_max, GROUP(ppn_max), false },
	{ "measured", read_min, GROUP(measured), false },
	{ "measured_ppn", read_min, GROUP(measured_ppn), false },
	{ "rules", read_rules, 0, true },
};

static int check_range(struct parser *p, const char *what, int min, int max)
{
	if (min <= max)
		return NEZHA_OK;
	return fail(p, "\"%s_min\" is %d, more than \"%s_max\", which is %d", what, min, what, max);
}

static int check_measured(struct parser *p, struct nezha_rule_group *group)
{
	if (group->measured_ppn && !group->measured)
		return fail(p, "\"measured_ppn\" is %d, but \"measured\" is missing: allowed with it only",
		            group->measured_ppn);
	if (group->measured && !group->measured_ppn)
		group->measured_ppn = 1;
	return NEZHA_OK;
}

static int read_group(struct parser *p, json_t *object, void *place)
{
	struct nezha_rule_group *group = place;
	int status;

	*group = (struct nezha_rule_group){
		.comm_size_min = 1, .comm_size_max = INT_MAX,
		.nodes_min = 1, .nodes_max = INT_MAX,
		.ppn_min = 1, .ppn_max = INT_MAX,
	};
	status = read_object(p, object, group_fields, COUNT(group_fields), group);
	if (status == NEZHA_OK)
		status = check_range(p, "comm_size", group->comm_size_min, group->comm_size_max);
	if (status == NEZHA_OK)
		status = check_range(p, "nodes", group->nodes_min, group->nodes_max);
	if (status == NEZHA_OK)
		status = check_range(p, "ppn", group->ppn_min, group->ppn_max);
	if (status == NEZHA_OK)
		status = check_measured(p, group);
	return status;
}

static int read_allreduce(struct parser *p, const struct field *field, json_t *value, void *target)
{
	struct nezha_table *table = target;

	return read_array(p, field, value, NEZHA_TABLE_GROUPS, sizeof *table->groups, read_group,
	                  &table->groups, &table->group_count);
}

static int read_collectives(struct parser *p, const struct field *field, json_t *value, void *target)
{
	static const struct field fields[] = { { "allreduce", read_allreduce, 0, true } };

	if (!json_is_object(value))
		return wrong(p, field, value, "an object with the key \"allreduce\"");
	return read_object(p, value, fields, 1, target);
}

static int read_version(struct parser *p, const struct field *field, json_t *value, void *target)
{
	(void)target;
	if (!json_is_integer(value) || json_integer_value(value) != 1)
		return wrong(p, field, value, "1");
	return NEZHA_OK;
}

static int read_header(struct parser *p, const struct field *field, json_t *value, void *target)
{
	char **out = member(field, target), allowed[64];

	snprintf(allowed, sizeof allowed, "a text of at most %d bytes", NEZHA_TABLE_TEXT);
	if (!json_is_string(value) || json_string_length(value) > NEZHA_TABLE_TEXT)
		return wrong(p, field, value, allowed);
	*out = strdup(json_string_value(value));
	return *out ? NEZHA_OK : NEZHA_ERR_NOMEM;
}

#define HEADER(name) offsetof(struct nezha_table, header[NEZHA_TABLE_HEADER_##name])
static const struct field table_fields[] = {
	{ "version", read_version, 0, true },
	{ "collectives", read_collectives, 0, true },
#define X(name) { #name, read_header, HEADER(name), false },
	NEZHA_TABLE_HEADERS(X)
#undef X
};

static int load(struct parser *p, json_t **root)
{
	json_error_t e;

	if (p->len > NEZHA_TABLE_BYTES)
		return fail(p, "the table has %zu bytes: allowed are at most %u", p->len, NEZHA_TABLE_BYTES);
	if (memchr(p->text, '\0', p->len))   /* jansson takes it for the end */
		return fail(p, "not JSON: a NUL byte in it");
	*root = json_loadb(p->text, p->len, JSON_REJECT_DUPLICATES, &e);
	if (*root)
		return NEZHA_OK;
	if (json_error_code(&e) == json_error_out_of_memory)
		return NEZHA_ERR_NOMEM;
	return fail_at(p, e.line > 0 ? e.line : 1, "not JSON: %s", e.text);
}

int nezha_table_parse(const char *text, size_t len, const char *name, struct nezha_table **out, char **error)
{
	struct parser p = { .text = text, .len = len, .name = name };
	struct nezha_table *table = NULL;
	json_t *root = NULL;
	int status = load(&p, &root);

	if (status != NEZHA_OK)
		goto done;
	if (!json_is_object(root)) {
		status = fail(&p, "the table must be an object");
		goto done;
	}
	table = calloc(1, sizeof *table);
	status = table ? read_object(&p, root, table_fields, COUNT(table_fields), table) : NEZHA_ERR_NOMEM;
done:
	json_decref(root);
	if (status == NEZHA_OK) {
		*out = table;
		return NEZHA_OK;
	}
	nezha_table_free(table);
	if (status == NEZHA_ERR_INVALID)
		*error = p.error;
	return status;
}
