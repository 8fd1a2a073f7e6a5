/* SPDX-License-Identifier: BSD-3-Clause
 * nezha-tune: measures the plans that are worth trying on the user's cluster and writes a tuning table. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/scales.h"
#include "tuning/status.h"
#include "tuning/table.h"
#include "tuning/text.h"
#include "tuning/tune.h"

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

/* Whether the same command, given again, would measure what the table has: the journal must keep it until all scales are through. */
static bool begins_anew(const struct nezha_tune_state *run)
{
	return run->options->again || run->output.apart;
}

/* All is measured of the scale: it goes into the table. */
static int finish_scale(struct nezha_tune_state *run)
{
	int status = nezha_tune_output_put(&run->output, run->measured);

	return status == NEZHA_OK && !begins_anew(run) ? nezha_tune_journal_conclude(&run->journal, run->measured) : status;
}

static int conclude_all(struct nezha_tune_state *run, const struct nezha_tune_list *scales)
{
	int status = NEZHA_OK;

	for (size_t i = 0; i < scales->count && status == NEZHA_OK; i++)
		status = nezha_tune_journal_conclude(
			&run->journal, nezha_tune_journal_scale(&run->journal, (int)scales->value[i], run->options->ppn));
	return status;
}

/* The numbers of ranks that are still to be measured.  What a job has put into the table meanwhile does not end what was begun. */
static void list_scales(const struct nezha_tune_state *run, struct nezha_tune_list *out)
{
	const struct nezha_tune_list *all = &run->options->ranks;

	out->count = 0;
	for (size_t i = 0; i < all->count; i++) {
		if (run->options->again || !nezha_scales_find(run->output.table, (int)all->value[i], run->options->ppn) ||
		    nezha_tune_journal_has(&run->journal, (int)all->value[i], run->options->ppn))
			out->value[out->count++] = all->value[i];
		else
			printf("%5d         is in the table already (--again measures it anew)\n",
			       (int)all->value[i]);
	}
}

static int tune(struct nezha_tune_state *run)
{
	struct nezha_tune_list scales;
	int status = NEZHA_OK;

	list_scales(run, &scales);
	if (scales.count)
		nezha_tune_show_head();
	for (size_t i = 0; i < scales.count && status == NEZHA_OK; i++) {
		run->progress.scales_left = scales.count - i - 1;
		status = nezha_tune_scale(run, (int)scales.value[i]);
		if (status == NEZHA_OK)
			status = finish_scale(run);
	}
	if (status == NEZHA_OK && begins_anew(run))
		status = conclude_all(run, &scales);
	/* All that is asked for may be in the table that was given with --extend, and is another file. */
	if (status == NEZHA_OK && !scales.count && run->output.apart)
		status = nezha_tune_output_copy(&run->output);
	return status;
}

static int tell_end(const struct nezha_tune_state *run, int status)
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

static int begin(struct nezha_tune_state *run, struct nezha_tune_options *options)
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
	struct nezha_tune_state run = {
		.stop = &stop,
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
	free(options.own_output);
	free(options.own_library);
	free(options.own_worker);
	return exit_status;
}
