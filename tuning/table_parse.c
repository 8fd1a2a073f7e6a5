/* SPDX-License-Identifier: BSD-3-Clause
 * JSON to a table.  Every function that refuses something has said so (json_object.h). */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/grid.h"
#include "tuning/json_object.h"
#include "tuning/rules.h"
#include "tuning/status.h"
#include "tuning/table.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define BLOCKS_ALLOWED "a multiple of 4K from 4K to 4M"

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

static int read_size_min(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	if (!to_bytes(value, nezha_json_member(field, target)))
		return nezha_json_wrong(p, field, value, "a number of bytes, or a text like \"64K\" (K, M, G)");
	return NEZHA_OK;
}

static int read_size_max(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	uint64_t *out = nezha_json_member(field, target);

	if (is_inf(value))
		*out = UINT64_MAX;
	else if (!to_bytes(value, out))
		return nezha_json_wrong(p, field, value, "a number of bytes, a text like \"64K\" (K, M, G), or \"inf\"");
	return NEZHA_OK;
}

static int read_block(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	uint64_t bytes;

	if (!to_bytes(value, &bytes) || !nezha_block_fits(bytes))
		return nezha_json_wrong(p, field, value, BLOCKS_ALLOWED);
	*(uint32_t *)nezha_json_member(field, target) = (uint32_t)bytes;
	return NEZHA_OK;
}

static int read_rails(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	if (!json_is_string(value) ||
	    nezha_rail_set_parse(json_string_value(value), json_string_length(value), nezha_json_member(field, target)))
		return nezha_json_wrong(p, field, value, NEZHA_RAIL_SET_ALLOWED);
	return NEZHA_OK;
}

static int read_alg(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	for (int alg = 0; alg < NEZHA_ALG_COUNT; alg++)
		if (json_is_string(value) && !strcmp(json_string_value(value), nezha_algorithm_name(alg))) {
			*(enum nezha_algorithm *)nezha_json_member(field, target) = (enum nezha_algorithm)alg;
			return NEZHA_OK;
		}
	return nezha_json_wrong(p, field, value, "\"native\", \"ring\" or \"mix\"");
}

static int read_share(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	double parts = round(json_number_value(value) * NEZHA_SHARE_WHOLE);   /* 0 if it is no number */

	if (!(parts >= 1 && parts < NEZHA_SHARE_WHOLE))
		return nezha_json_wrong(p, field, value, "a number from 0.001 to 0.999");
	*(uint16_t *)nezha_json_member(field, target) = (uint16_t)parts;
	return NEZHA_OK;
}

static int read_call(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	const char *text = json_is_string(value) ? json_string_value(value) : "";

	if (strcmp(text, "blocking") && strcmp(text, "nonblocking"))
		return nezha_json_wrong(p, field, value, "\"nonblocking\" or \"blocking\"");
	*(bool *)nezha_json_member(field, target) = !strcmp(text, "blocking");
	return NEZHA_OK;
}

static int read_reason(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	for (int reason = NEZHA_REASON_RULE; reason < NEZHA_REASON_NO_RULE; reason++)
		if (json_is_string(value) && !strcmp(json_string_value(value), nezha_reason_name(reason))) {
			*(enum nezha_reason *)nezha_json_member(field, target) = (enum nezha_reason)reason;
			return NEZHA_OK;
		}
	return nezha_json_wrong(p, field, value, "\"rule\", \"tune\", \"small\", \"one-node\" or \"shared-node\"");
}

static int read_min(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;

	if (n < 1 || n > INT_MAX)
		return nezha_json_wrong(p, field, value, "a whole number from 1 to 2147483647");
	*(int *)nezha_json_member(field, target) = (int)n;
	return NEZHA_OK;
}

static int read_max(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	json_int_t n = is_inf(value) ? INT_MAX : json_is_integer(value) ? json_integer_value(value) : 0;

	if (n < 1 || n > INT_MAX)
		return nezha_json_wrong(p, field, value, "a whole number from 1 to 2147483647, or \"inf\"");
	*(int *)nezha_json_member(field, target) = (int)n;
	return NEZHA_OK;
}

#define RULE(member) offsetof(struct nezha_rule, member)
static const struct nezha_json_field rule_fields[] = {
	{ "msg_size_min", read_size_min, RULE(msg_size_min), false },
	{ "msg_size_max", read_size_max, RULE(msg_size_max), false },
	{ "alg", read_alg, RULE(alg), true },
	{ "block", read_block, RULE(block), false },
	{ "native_share", read_share, RULE(share), false },
	{ "native_call", read_call, RULE(blocking), false },
	{ "rails", read_rails, RULE(rails), false },
	{ "reason", read_reason, RULE(reason), false },
};

/* What belongs to one algorithm and not to another. */
static int check_fit(struct nezha_json *p, const struct nezha_rule *rule)
{
	const char *alg = nezha_algorithm_name(rule->alg);

	if (rule->alg == NEZHA_ALG_NATIVE && rule->block)
		return nezha_json_fail(p, "\"block\" is %" PRIu32 ", but \"alg\" is \"native\": allowed with \"ring\" and \"mix\" only",
		                       rule->block);
	if (rule->alg == NEZHA_ALG_NATIVE && rule->rails.count)
		return nezha_json_fail(p, "\"rails\" is given, but \"alg\" is \"native\": allowed with \"ring\" and \"mix\" only");
	if (rule->alg != NEZHA_ALG_NATIVE && rule->reason > NEZHA_REASON_TUNE)
		return nezha_json_fail(p, "\"reason\" is \"%s\", but \"alg\" is \"%s\": allowed with \"native\" only",
		                       nezha_reason_name(rule->reason), alg);
	if (rule->alg == NEZHA_ALG_MIX && !rule->share)
		return nezha_json_fail(p, "\"native_share\" is missing: \"alg\" is \"mix\", which needs it, a number from 0.001 to 0.999");
	if (rule->alg != NEZHA_ALG_MIX && rule->share)
		return nezha_json_fail(p, "\"native_share\" is 0.%03u, but \"alg\" is \"%s\": allowed with \"mix\" only", rule->share, alg);
	if (rule->alg != NEZHA_ALG_MIX && rule->blocking)
		return nezha_json_fail(p, "\"native_call\" is \"blocking\", but \"alg\" is \"%s\": allowed with \"mix\" only", alg);
	return NEZHA_OK;
}

static int read_rule(struct nezha_json *p, json_t *object, void *place)
{
	struct nezha_rule *rule = place;
	int status;

	*rule = (struct nezha_rule){ .msg_size_max = UINT64_MAX, .reason = NEZHA_REASON_RULE };
	status = nezha_json_object(p, object, rule_fields, COUNT(rule_fields), rule);
	if (status != NEZHA_OK)
		return status;
	if (rule->msg_size_min > rule->msg_size_max)
		return nezha_json_fail(p,
		                       "\"msg_size_min\" is %" PRIu64 ", more than \"msg_size_max\", which is %" PRIu64,
		                       rule->msg_size_min, rule->msg_size_max);
	status = check_fit(p, rule);
	if (status != NEZHA_OK)
		return status;
	if (rule->alg != NEZHA_ALG_NATIVE && !rule->block)
		rule->block = NEZHA_BLOCK_DEFAULT;
	return NEZHA_OK;
}

static int read_rules(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	struct nezha_rule_group *group = target;

	return nezha_json_array(p, field, value, NEZHA_TABLE_RULES, sizeof *group->rules, read_rule,
	                  &group->rules, &group->rule_count);
}

#define GROUP(member) offsetof(struct nezha_rule_group, member)
static const struct nezha_json_field group_fields[] = {
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

static int check_range(struct nezha_json *p, const char *what, int min, int max)
{
	if (min <= max)
		return NEZHA_OK;
	return nezha_json_fail(p, "\"%s_min\" is %d, more than \"%s_max\", which is %d", what, min, what, max);
}

static int check_measured(struct nezha_json *p, struct nezha_rule_group *group)
{
	if (group->measured_ppn && !group->measured)
		return nezha_json_fail(p, "\"measured_ppn\" is %d, but \"measured\" is missing: allowed with it only",
		                       group->measured_ppn);
	if (group->measured && !group->measured_ppn)
		group->measured_ppn = 1;
	return NEZHA_OK;
}

static int read_group(struct nezha_json *p, json_t *object, void *place)
{
	struct nezha_rule_group *group = place;
	int status;

	*group = (struct nezha_rule_group){
		.comm_size_min = 1, .comm_size_max = INT_MAX,
		.nodes_min = 1, .nodes_max = INT_MAX,
		.ppn_min = 1, .ppn_max = INT_MAX,
	};
	status = nezha_json_object(p, object, group_fields, COUNT(group_fields), group);
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

static int read_allreduce(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	struct nezha_table *table = target;

	return nezha_json_array(p, field, value, NEZHA_TABLE_GROUPS, sizeof *table->groups, read_group,
	                  &table->groups, &table->group_count);
}

static int read_collectives(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	static const struct nezha_json_field fields[] = { { "allreduce", read_allreduce, 0, true } };

	if (!json_is_object(value))
		return nezha_json_wrong(p, field, value, "an object with the key \"allreduce\"");
	return nezha_json_object(p, value, fields, 1, target);
}

static int read_version(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	(void)target;
	if (!json_is_integer(value) || json_integer_value(value) != 1)
		return nezha_json_wrong(p, field, value, "1");
	return NEZHA_OK;
}

static int read_header(struct nezha_json *p, const struct nezha_json_field *field, json_t *value, void *target)
{
	char **out = nezha_json_member(field, target), allowed[64];

	snprintf(allowed, sizeof allowed, "a text of at most %d bytes", NEZHA_TABLE_TEXT);
	if (!json_is_string(value) || json_string_length(value) > NEZHA_TABLE_TEXT)
		return nezha_json_wrong(p, field, value, allowed);
	*out = strdup(json_string_value(value));
	return *out ? NEZHA_OK : NEZHA_ERR_NOMEM;
}

#define HEADER(name) offsetof(struct nezha_table, header[NEZHA_TABLE_HEADER_##name])
static const struct nezha_json_field table_fields[] = {
	{ "version", read_version, 0, true },
	{ "collectives", read_collectives, 0, true },
#define X(name) { #name, read_header, HEADER(name), false },
	NEZHA_TABLE_HEADERS(X)
#undef X
};

static int load(struct nezha_json *p, json_t **root)
{
	if (p->len > NEZHA_TABLE_BYTES)
		return nezha_json_fail(p, "the table has %zu bytes: allowed are at most %u", p->len, NEZHA_TABLE_BYTES);
	return nezha_json_load(p, root);
}

int nezha_table_parse(const char *text, size_t len, const char *name, struct nezha_table **out, char **error)
{
	struct nezha_json p = { .text = text, .len = len, .name = name };
	struct nezha_table *table = NULL;
	json_t *root = NULL;
	int status = load(&p, &root);

	if (status != NEZHA_OK)
		goto done;
	if (!json_is_object(root)) {
		status = nezha_json_fail(&p, "the table must be an object");
		goto done;
	}
	table = calloc(1, sizeof *table);
	status = table ? nezha_json_object(&p, root, table_fields, COUNT(table_fields), table) : NEZHA_ERR_NOMEM;
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
