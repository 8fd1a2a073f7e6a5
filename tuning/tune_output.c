/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune's output: the table, to which other programs may write meanwhile. */
#include <sys/stat.h>

#include "tuning/file.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/tune.h"

static bool is_same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

int nezha_tune_output_open(const char *path, const char *extend, struct nezha_tune_output *out)
{
	bool is_new;
	int status;

	*out = (struct nezha_tune_output){ .path = path, .apart = extend && !is_same_file(extend, path) };
	status = nezha_tune_load(extend ? extend : path, &out->table, &is_new);
	if (status == NEZHA_OK && is_new && extend) {
		nezha_tune_problem("--extend \"%s\": there is no such table", extend);
		status = NEZHA_ERR_INVALID;
	}
	return status;
}

void nezha_tune_output_close(struct nezha_tune_output *output)
{
	nezha_table_free(output->table);
	output->table = NULL;
}

int nezha_tune_output_check(const struct nezha_tune_output *output, const struct nezha_fingerprint *here)
{
	char differences[800];

	if (!nezha_fingerprint_differs(output->table, here, differences, sizeof differences))
		return NEZHA_OK;
	nezha_tune_problem("the table was measured elsewhere (%s): give another file with -o", differences);
	return NEZHA_ERR_INVALID;
}

/* What jobs with NEZHA_LEARNED have put into the output since it was read stays there.  Where --extend names another file, the
 * output's own beginning is not wanted before it has something of ours; and if it is gone, what was read of it holds. */
static int read_again(struct nezha_tune_output *output, const struct nezha_fingerprint *here)
{
	struct nezha_table *table;
	bool is_new;
	int status;

	if (output->apart && !output->written)
		return nezha_tune_output_check(output, here);
	status = nezha_tune_load(output->path, &table, &is_new);
	if (status != NEZHA_OK)
		return status;
	if (is_new) {
		nezha_table_free(table);
		return NEZHA_OK;
	}
	nezha_table_free(output->table);
	output->table = table;
	return nezha_tune_output_check(output, here);
}

static int put(struct nezha_tune_output *output, const struct nezha_measured *measured)
{
	struct nezha_rule_group group;
	int status = nezha_choose_rules(measured, &group);

	if (status == NEZHA_OK)
		status = nezha_scales_put(output->table, &group);
	if (status == NEZHA_OK)
		status = nezha_scales_sign(output->table, &measured->where, "measured by nezha-tune " PACKAGE_VERSION);
	if (status != NEZHA_OK)
		nezha_tune_problem("%d ranks: %s", measured->scale.ranks,
		                   status == NEZHA_ERR_NOMEM ? "no memory" : "the table has no room for more groups");
	return status;
}

int nezha_tune_output_put(struct nezha_tune_output *output, const struct nezha_measured *measured)
{
	int reserved = nezha_tune_reserve(output->path), status;

	if (reserved < 0)
		return NEZHA_ERR_SYSTEM;
	status = read_again(output, &measured->where);
	if (status == NEZHA_OK)
		status = put(output, measured);
	if (status == NEZHA_OK)
		status = nezha_tune_save(output->table, output->path);
	nezha_file_release(output->path, reserved);
	output->written |= status == NEZHA_OK;
	return status;
}

int nezha_tune_output_copy(const struct nezha_tune_output *output)
{
	int reserved = nezha_tune_reserve(output->path), status;

	if (reserved < 0)
		return NEZHA_ERR_SYSTEM;
	status = nezha_tune_save(output->table, output->path);
	nezha_file_release(output->path, reserved);
	return status;
}
