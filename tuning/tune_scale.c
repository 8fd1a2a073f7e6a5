/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune: one number of ranks is measured: jobs, what their workers say, and the journal that keeps it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tuning/bytes.h"
#include "tuning/status.h"
#include "tuning/tune.h"

#define FIRST_SHARE 0.8         /* of a scale's time, for the job that measures all sizes */

/* All that the table and the journal have must be of where the job runs now. */
static int check_where(struct nezha_tune_state *run)
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
static int check_scale(const struct nezha_tune_state *run)
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
static void keep(struct nezha_tune_state *run, const char *line)
{
	int len = snprintf(run->lines + run->len, sizeof run->lines - run->len, "%s\n", line);

	if (run->len + (size_t)len < sizeof run->lines)
		run->len += (size_t)len;
	run->lines[run->len] = '\0';
}

/* The sizes at which the library and the rails are so close that one more job should measure them. */
static void list_close(const struct nezha_tune_state *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->sizes;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++) {
		const struct nezha_measured_size *size = nezha_measured_find(run->measured, all->value[i]);

		if (size && nezha_choice_is_close(size))
			out->value[out->count++] = all->value[i];
	}
}

/* Whether one more job will follow is known with the last size. */
static void foresee_end(struct nezha_tune_state *run)
{
	struct nezha_tune_list close;

	list_close(run, &close);
	if (!close.count && run->progress.done == run->progress.sizes->count)
		run->progress.after_seconds = 0;
}

static int finish_size(struct nezha_tune_state *run, uint64_t bytes)
{
	const struct nezha_measured_size *size = nezha_measured_find(run->measured, bytes);
	int status = nezha_tune_journal_add(&run->journal, run->lines);

	run->len = 0;
	run->progress.done++;
	foresee_end(run);
	if (size)
		nezha_tune_show_size(&run->progress, size);
	return status;
}

/* A line of the worker. */
static int take_line(const char *line, void *context)
{
	struct nezha_tune_state *run = context;
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
static void list_missing(const struct nezha_tune_state *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->sizes;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (!nezha_measured_find(run->measured, all->value[i]))
			out->value[out->count++] = all->value[i];
}

/* One job, which should take so many seconds; `after`: those that further ones should, if there are any. */
static int measure(struct nezha_tune_state *run, const struct nezha_tune_list *sizes, double seconds, double after)
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
	run->progress.after_seconds = after;
	run->progress.done = 0;
	nezha_tune_show_at(&run->progress, sizes->value[0]);
	status = nezha_tune_run(command, what, take_line, run, run->stop);
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
static int measure_again(struct nezha_tune_state *run, double spent)
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
		status = measure(run, &close, seconds, job + 1 < NEZHA_MEASURED_JOBS ? left : 0);
	}
	return status;
}

int nezha_tune_scale(struct nezha_tune_state *run, int ranks)
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
		status = measure(run, &missing, FIRST_SHARE * run->options->seconds, (1 - FIRST_SHARE) * run->options->seconds);
	if (status == NEZHA_OK)
		status = measure_again(run, now() - begun);
	return status;
}
