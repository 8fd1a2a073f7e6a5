/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune: measures the plans that are worth trying on the user's cluster and writes a tuning table. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning/bytes.h"
#include "tuning/file.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/text.h"
#include "tuning/tune.h"

/* One run of the tool. */
struct run {
	const struct nezha_tune_options *options;
	struct nezha_table *table, *builtin;
	struct nezha_tune_journal journal;
	struct nezha_tune_progress progress;
	/* of the scale that is being measured */
	struct nezha_measured *measured;
	struct nezha_fingerprint before;   /* where the journal has what it had of it; its own is then the job's */
	bool told_where;               /* that was looked at */
	bool apart;                    /* --extend names another file than the output */
	bool written;                  /* the table at the output has something of this run */
	char lines[16384];             /* of the size that is being measured, for the journal */
	size_t len;
};

static volatile sig_atomic_t stop_signal;
static volatile int stop;

static void on_signal(int number)
{
	stop_signal = number;
	stop = 1;
}

void nezha_tune_problem(const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return;
	nezha_text_clean(text, (size_t)len);
	fflush(stdout);
	fprintf(stderr, "%snezha-tune: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", text);
	free(text);
}

/* ---- one number of ranks ---- */

static int check_table(const struct run *run)
{
	char differences[800];

	if (!nezha_fingerprint_differs(run->table, &run->measured->where, differences, sizeof differences))
		return NEZHA_OK;
	nezha_tune_problem("the table was measured elsewhere (%s): give another file with -o", differences);
	return NEZHA_ERR_INVALID;
}

/* All that the table and the journal have must be of where the job runs now. */
static int check_where(struct run *run)
{
	struct nezha_fingerprint *here = &run->measured->where;

	run->told_where = true;
	if (check_table(run) != NEZHA_OK)
		return NEZHA_ERR_INVALID;
	for (size_t i = 0; i < run->journal.count; i++) {
		const struct nezha_measured *scale = &run->journal.scale[i];

		if (!nezha_measured_any(scale) ||
		    nezha_fingerprint_equal(scale == run->measured ? &run->before : &scale->where, here))
			continue;
		nezha_tune_problem("%s was measured elsewhere, or with other rails: remove it, or give another file "
		                   "with -o", run->journal.path);
		return NEZHA_ERR_INVALID;
	}
	return NEZHA_OK;
}

/* Keeps a line for the journal until its size is finished. */
static void keep(struct run *run, const char *line)
{
	int len = snprintf(run->lines + run->len, sizeof run->lines - run->len, "%s\n", line);

	if (run->len + (size_t)len < sizeof run->lines)
		run->len += (size_t)len;
	run->lines[run->len] = '\0';
}

static int finish_size(struct run *run, uint64_t bytes)
{
	const struct nezha_measured_size *size = nezha_measured_find(run->measured, bytes);
	int status = nezha_tune_journal_add(&run->journal, run->lines);

	run->len = 0;
	run->progress.done++;
	if (size)
		nezha_tune_show_size(&run->progress, size);
	return status;
}

/* A line of the worker. */
static int take_line(const char *line, void *context)
{
	struct run *run = context;
	enum nezha_measured_kind kind;
	uint64_t bytes;
	char size[24];

	if (nezha_measured_take(run->measured, line, &kind, &bytes) != NEZHA_OK) {
		nezha_tune_problem("the worker says \"%.60s\", which nezha-tune %s does not understand: it is of "
		                   "another version", line, PACKAGE_VERSION);
		return NEZHA_ERR_PROTOCOL;
	}
	nezha_bytes_print(bytes, size, sizeof size);
	switch (kind) {
	case NEZHA_MEASURED_AT:
		nezha_tune_show_at(&run->progress, bytes);
		return run->told_where ? NEZHA_OK : check_where(run);
	case NEZHA_MEASURED_SIZE:
		keep(run, line);
		return finish_size(run, bytes);
	case NEZHA_MEASURED_SKIPPED:
		run->progress.done++;
		nezha_tune_show(&run->progress, "%5d %6s  left out for lack of time (--seconds gives more)",
		                run->progress.ranks, size);
		return NEZHA_OK;
	case NEZHA_MEASURED_FAILED:
		nezha_tune_problem("%d ranks: %s", run->progress.ranks, line + strlen("failed "));
		return NEZHA_OK;
	case NEZHA_MEASURED_END:
		return NEZHA_OK;
	default:
		keep(run, line);
		return NEZHA_OK;
	}
}

/* The sizes that are asked for and not in the journal. */
static void list_missing(const struct run *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->sizes;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (!nezha_measured_find(run->measured, all->value[i]))
			out->value[out->count++] = all->value[i];
}

static int measure(struct run *run, const struct nezha_tune_list *sizes)
{
	const struct nezha_tune_options *options = run->options;
	struct nezha_tune_job job = {
		.words = options->words, .word_count = options->word_count, .mpi = options->mpi,
		.library = options->library, .worker = options->worker, .seconds = options->seconds,
		.ranks = run->progress.ranks, .ppn = options->ppn, .sizes = sizes, .builtin = run->builtin,
	};
	char what[32], **command = nezha_tune_command(&job, environ);
	int status;

	if (!command)
		return NEZHA_ERR_NOMEM;
	snprintf(what, sizeof what, "%d ranks", job.ranks);
	run->told_where = false;
	run->before = run->measured->where;
	run->len = 0;
	run->progress.sizes = sizes;
	run->progress.done = 0;
	nezha_tune_show_at(&run->progress, sizes->value[0]);
	status = nezha_tune_run(command, what, take_line, run, &stop);
	free(command);
	return status;
}

/* What jobs with NEZHA_LEARNED have put into the output since it was read stays there.  Where --extend names another file, the
 * output's own beginning is not wanted before it has something of ours; and if it is gone, what was read of it holds. */
static int read_again(struct run *run)
{
	struct nezha_table *table;
	bool is_new;
	int status;

	if (run->apart && !run->written)
		return NEZHA_OK;
	status = nezha_tune_load(run->options->output, &table, &is_new);
	if (status != NEZHA_OK)
		return status;
	if (is_new) {
		nezha_table_free(table);
		return NEZHA_OK;
	}
	nezha_table_free(run->table);
	run->table = table;
	return check_table(run);
}

/* Puts what was measured into the table. */
static int put(struct run *run)
{
	struct nezha_rule_group group;
	int status = nezha_choose_rules(run->measured, &group);

	if (status == NEZHA_OK)
		status = nezha_scales_put(run->table, &group);
	if (status == NEZHA_OK)
		status = nezha_scales_sign(run->table, &run->measured->where, "measured by nezha-tune " PACKAGE_VERSION);
	if (status != NEZHA_OK)
		nezha_tune_problem("%d ranks: %s", run->progress.ranks,
		                   status == NEZHA_ERR_NOMEM ? "no memory" : "the table has no room for more groups");
	return status;
}

/* ... and writes it. */
static int conclude(struct run *run)
{
	const char *output = run->options->output;
	int reserved = nezha_tune_reserve(output), status;

	if (reserved < 0)
		return NEZHA_ERR_SYSTEM;
	status = read_again(run);
	if (status == NEZHA_OK)
		status = put(run);
	if (status == NEZHA_OK)
		status = nezha_tune_save(run->table, output);
	nezha_file_release(output, reserved);
	run->written |= status == NEZHA_OK;
	return status == NEZHA_OK ? nezha_tune_journal_conclude(&run->journal, run->measured) : status;
}

static int tune_scale(struct run *run, int ranks)
{
	struct nezha_tune_list missing;
	int status = NEZHA_OK;

	run->progress.ranks = ranks;
	run->measured = nezha_tune_journal_scale(&run->journal, ranks, run->options->ppn);
	if (!run->measured) {
		nezha_tune_problem("the journal \"%s\" has more than %d scales: remove it", run->journal.path,
		                   NEZHA_TUNE_SCALES);
		return NEZHA_ERR_INVALID;
	}
	list_missing(run, &missing);
	if (missing.count < run->options->sizes.count)
		nezha_tune_show(&run->progress, "%5d         %zu of %zu sizes are known from the journal", ranks,
		                run->options->sizes.count - missing.count, run->options->sizes.count);
	if (missing.count)
		status = measure(run, &missing);
	return status == NEZHA_OK ? conclude(run) : status;
}

/* The numbers of ranks that are still to be measured. */
static void list_scales(const struct run *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->ranks;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++) {
		if (run->options->again || !nezha_scales_has(run->table, (int)all->value[i], run->options->ppn))
			out->value[out->count++] = all->value[i];
		else
			printf("%5d         is in the table already (--again measures it anew)\n",
			       (int)all->value[i]);
	}
}

/* All that is asked for is in the table that was given with --extend, and is another file. */
static int copy(const struct run *run)
{
	const char *output = run->options->output;
	int reserved = nezha_tune_reserve(output), status;

	if (reserved < 0)
		return NEZHA_ERR_SYSTEM;
	status = nezha_tune_save(run->table, output);
	nezha_file_release(output, reserved);
	return status;
}

static int tune(struct run *run)
{
	struct nezha_tune_list scales;
	int status = NEZHA_OK;

	list_scales(run, &scales);
	if (scales.count)
		nezha_tune_show_head();
	for (size_t i = 0; i < scales.count && status == NEZHA_OK; i++) {
		run->progress.scales_left = scales.count - i - 1;
		status = tune_scale(run, (int)scales.value[i]);
	}
	if (status == NEZHA_OK && !scales.count && run->apart)
		status = copy(run);
	return status;
}

static int tell_end(const struct run *run, int status)
{
	const char *output = run->options->output;
	bool kept = nezha_tune_journal_holds(&run->journal);

	if (status == NEZHA_OK) {
		nezha_tune_show(&run->progress, "%s is complete: use it with NEZHA_TABLE=%s", output, output);
		if (kept)
			nezha_tune_show(&run->progress, "%s keeps what is measured of other scales, which are not finished",
			                run->journal.path);
		return NEZHA_TUNE_GOOD;
	}
	if (kept)
		nezha_tune_problem("%swhat is measured is kept in %s: the same command goes on from there",
		                   status == NEZHA_INPROGRESS ? "stopped; " : "", run->journal.path);
	else if (status == NEZHA_INPROGRESS)
		nezha_tune_problem("stopped before anything was measured");
	return status == NEZHA_INPROGRESS ? NEZHA_TUNE_STOPPED + stop_signal : NEZHA_TUNE_BAD;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static int begin(struct run *run, struct nezha_tune_options *options)
{
	bool is_new;
	int status = nezha_table_builtin(&run->builtin);

	if (status == NEZHA_OK)
		status = nezha_tune_find_parts(options);
	/* The journal's lock is the output's, too: the table is read under it. */
	if (status == NEZHA_OK)
		status = nezha_tune_journal_open(options->output, &run->journal);
	if (status == NEZHA_OK)
		status = nezha_tune_load(options->extend ? options->extend : options->output, &run->table, &is_new);
	if (status == NEZHA_OK && is_new && options->extend) {
		nezha_tune_problem("--extend \"%s\": there is no such table", options->extend);
		status = NEZHA_ERR_INVALID;
	}
	run->apart = options->extend && !is_same_file(options->extend, options->output);
	return status;
}

int main(int argc, char **argv)
{
	struct nezha_tune_options options = { .output = NULL };
	struct run run = {
		.options = &options,
		.journal = { .fd = -1 },
		.progress = { .terminal = isatty(STDOUT_FILENO), .sizes = &options.sizes },
	};
	const struct sigaction action = { .sa_handler = on_signal };
	int exit_status = nezha_tune_options_read(argc, argv, &options), status;

	if (exit_status >= 0)
		goto done;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	run.progress.seconds = options.seconds;
	status = begin(&run, &options);
	if (status != NEZHA_OK) {
		exit_status = NEZHA_TUNE_BAD;
	} else {
		status = tune(&run);
		exit_status = tell_end(&run, status);
	}
	nezha_tune_journal_close(&run.journal);
done:
	nezha_table_free(run.table);
	nezha_table_free(run.builtin);
	free(options.words);
	return exit_status;
}
