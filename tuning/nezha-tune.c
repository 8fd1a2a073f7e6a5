/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune: measures the plans that are worth trying on the user's cluster and writes a tuning table. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tuning/bytes.h"
#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/text.h"
#include "tuning/tune.h"

#define FIRST_SHARE 0.8         /* of a scale's time, for the job that measures all sizes */

/* One run of the tool. */
struct run {
	const struct nezha_tune_options *options;
	struct nezha_table *builtin;
	struct nezha_tune_output output;
	struct nezha_tune_journal journal;
	struct nezha_tune_progress progress;
	/* of the scale that is being measured */
	struct nezha_measured *measured;
	struct nezha_fingerprint before;   /* where the journal has what it had of it; its own is then the job's */
	bool told_where;               /* that was looked at */
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

/* All that the table and the journal have must be of where the job runs now. */
static int check_where(struct run *run)
{
	struct nezha_fingerprint *here = &run->measured->where;

	run->told_where = true;
	if (nezha_tune_output_check(&run->output, here) != NEZHA_OK)
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

/* A launcher that starts what it likes would have another scale's rules replaced. */
static int check_scale(const struct run *run)
{
	const struct nezha_scale *scale = &run->measured->scale;
	int ranks = run->progress.ranks, ppn = run->options->ppn;

	if (scale->ranks == ranks && scale->ppn == ppn)
		return NEZHA_OK;
	nezha_tune_problem("--mpirun started %d ranks, %d on a node, where %d were wanted, %d on a node: it must take the number that "
	                   "nezha-tune gives it", scale->ranks, scale->ppn, ranks, ppn);
	return NEZHA_ERR_INVALID;
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
		if (nezha_measured_find(run->measured, bytes))
			return NEZHA_OK;
		nezha_tune_show(&run->progress, "%5d %6s  left out for lack of time (--seconds gives more)",
		                run->progress.ranks, size);
		return NEZHA_OK;
	case NEZHA_MEASURED_FAILED:
		nezha_tune_problem("%d ranks: %s", run->progress.ranks, line + strlen("failed "));
		return NEZHA_OK;
	case NEZHA_MEASURED_END:
		return NEZHA_OK;
	case NEZHA_MEASURED_JOB:
		keep(run, line);
		return check_scale(run);
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

/* The sizes at which the library and the rails are so close that one more job should measure them. */
static void list_close(const struct run *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->sizes;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++) {
		const struct nezha_measured_size *size = nezha_measured_find(run->measured, all->value[i]);

		if (size && nezha_choice_is_close(size))
			out->value[out->count++] = all->value[i];
	}
}

/* One job, which should take so many seconds. */
static int measure(struct run *run, const struct nezha_tune_list *sizes, double seconds)
{
	const struct nezha_tune_options *options = run->options;
	struct nezha_tune_job job = {
		.words = options->words, .word_count = options->word_count, .mpi = options->mpi,
		.library = options->library, .worker = options->worker, .seconds = seconds,
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
	run->progress.job_seconds = seconds;
	run->progress.done = 0;
	nezha_tune_show_at(&run->progress, sizes->value[0]);
	status = nezha_tune_run(command, what, take_line, run, &stop);
	free(command);
	return status;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* More jobs for what is close, in the time that is left: `spent` seconds are gone. */
static int measure_again(struct run *run, double spent)
{
	double left = fmax((1 - FIRST_SHARE) * run->options->seconds, run->options->seconds - spent);
	struct nezha_tune_list close;
	int status = NEZHA_OK;

	for (int job = 1; job < NEZHA_MEASURED_JOBS && status == NEZHA_OK; job++) {
		double seconds;

		list_close(run, &close);
		if (!close.count)
			break;
		seconds = left / (NEZHA_MEASURED_JOBS - job);
		left -= seconds;
		status = measure(run, &close, seconds);
	}
	return status;
}

/* Whether the same command, given again, would measure what the table has: the journal must keep it until all scales are through. */
static bool begins_anew(const struct run *run)
{
	return run->options->again || run->output.apart;
}

/* All is measured of the scale: it goes into the table. */
static int finish_scale(struct run *run)
{
	int status = nezha_tune_output_put(&run->output, run->measured);

	return status == NEZHA_OK && !begins_anew(run) ? nezha_tune_journal_conclude(&run->journal, run->measured) : status;
}

static int conclude_all(struct run *run, const struct nezha_tune_list *scales)
{
	int status = NEZHA_OK;

	for (size_t i = 0; i < scales->count && status == NEZHA_OK; i++)
		status = nezha_tune_journal_conclude(
			&run->journal, nezha_tune_journal_scale(&run->journal, (int)scales->value[i], run->options->ppn));
	return status;
}

static int tune_scale(struct run *run, int ranks)
{
	struct nezha_tune_list missing;
	double begun = now();
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
	if (run->measured->count + missing.count > NEZHA_MEASURED_SIZES) {
		nezha_tune_problem("the journal \"%s\" has %zu sizes of %d ranks, %zu more are one too many or more: up to %d may be measured; "
		                   "ask for fewer (--sizes), or remove it", run->journal.path, run->measured->count, ranks, missing.count,
		                   NEZHA_MEASURED_SIZES);
		return NEZHA_ERR_INVALID;
	}
	if (missing.count)
		status = measure(run, &missing, FIRST_SHARE * run->options->seconds);
	if (status == NEZHA_OK)
		status = measure_again(run, now() - begun);
	return status == NEZHA_OK ? finish_scale(run) : status;
}

/* The numbers of ranks that are still to be measured. */
static void list_scales(const struct run *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->ranks;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++) {
		if (run->options->again || !nezha_scales_has(run->output.table, (int)all->value[i], run->options->ppn))
			out->value[out->count++] = all->value[i];
		else
			printf("%5d         is in the table already (--again measures it anew)\n",
			       (int)all->value[i]);
	}
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
	if (status == NEZHA_OK && begins_anew(run))
		status = conclude_all(run, &scales);
	/* All that is asked for may be in the table that was given with --extend, and is another file. */
	if (status == NEZHA_OK && !scales.count && run->output.apart)
		status = nezha_tune_output_copy(&run->output);
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
	else if (status == NEZHA_INPROGRESS && run->output.written)
		nezha_tune_problem("stopped; %s has what is finished: the same command goes on from there", output);
	else if (status == NEZHA_INPROGRESS)
		nezha_tune_problem("stopped before anything was measured");
	return status == NEZHA_INPROGRESS ? NEZHA_TUNE_STOPPED + stop_signal : NEZHA_TUNE_BAD;
}

static int begin(struct run *run, struct nezha_tune_options *options)
{
	int status = nezha_table_builtin(&run->builtin);

	if (status == NEZHA_OK)
		status = nezha_tune_find_parts(options);
	/* The journal's lock is the output's, too: the table is read under it. */
	if (status == NEZHA_OK)
		status = nezha_tune_journal_open(options->output, &run->journal);
	if (status == NEZHA_OK)
		status = nezha_tune_output_open(options->output, options->extend, &run->output);
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
	struct sigaction hangup;
	int exit_status = nezha_tune_options_read(argc, argv, &options), status;

	if (exit_status >= 0)
		goto done;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)  /* or it was started by nohup */
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
	nezha_tune_output_close(&run.output);
	nezha_table_free(run.builtin);
	free(options.words);
	return exit_status;
}
