/* SPDX-License-Identifier: BSD-3-Clause
 * What nezha-tune shows: a line for each size, at most 80 columns; and on a terminal, below it, what is being
 * measured. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/tune.h"

#define START_SECONDS 3       /* what a job takes besides its measurement */
#define CLEAR "\r\033[K"

double nezha_tune_left(const struct nezha_tune_progress *progress)
{
	double all = 0, left = 0;

	for (size_t i = 0; i < progress->sizes->count; i++) {
		double weight = nezha_sweep_weight(progress->sizes->value[i]);

		all += weight;
		if (i >= progress->done)
			left += weight;
	}
	return (double)progress->scales_left * (progress->seconds + START_SECONDS) + progress->after_seconds +
	       (all > 0 ? progress->job_seconds * left / all : 0);
}

static void print_left(const struct nezha_tune_progress *progress, char *buf, size_t len)
{
	int seconds = (int)(nezha_tune_left(progress) + 0.5);

	snprintf(buf, len, "%d:%02d", seconds / 60, seconds % 60);
}

static void print_time(double ns, char *buf, size_t len)
{
	if (ns <= 0)
		snprintf(buf, len, "-");
	else if (ns < 999.5e3)
		snprintf(buf, len, "%.*f us", ns < 99.95e3 ? 1 : 0, ns / 1e3);
	else if (ns < 999.5e6)
		snprintf(buf, len, "%.*f ms", ns < 9.995e6 ? 2 : 1, ns / 1e6);
	else
		snprintf(buf, len, "%.2f s", ns / 1e9);
}

void nezha_tune_describe(const struct nezha_rule *rule, char *buf, size_t len)
{
	char block[24], rails[NEZHA_RAIL_SET_TEXT];

	if (rule->alg == NEZHA_ALG_NATIVE) {
		snprintf(buf, len, "native");
		return;
	}
	nezha_bytes_print(rule->block, block, sizeof block);
	nezha_rail_set_print(&rule->rails, ',', rails, sizeof rails);
	if (rule->alg == NEZHA_ALG_MIX)
		snprintf(buf, len, "%.1f %% native, ring %s", 100.0 * rule->share / NEZHA_SHARE_WHOLE, block);
	else if (rule->rails.count == 1)
		snprintf(buf, len, "ring %s, %s alone", block, strchr(rails, ':') + 1);
	else
		snprintf(buf, len, "ring %s%s%s", block, *rails ? ", " : "", rails);
}

void nezha_tune_show_head(void)
{
	printf("%5s %6s  %-36s%9s %9s %6s\n", "ranks", "bytes", "best", "time", "native", "left");
	fflush(stdout);
}

void nezha_tune_show_at(const struct nezha_tune_progress *progress, uint64_t bytes)
{
	char size[24], left[16];

	if (!progress->terminal)
		return;
	nezha_bytes_print(bytes, size, sizeof size);
	print_left(progress, left, sizeof left);
	printf(CLEAR "%5d %6s  measuring, %zu of %zu sizes done, about %s left", progress->ranks, size,
	       progress->done, progress->sizes->count, left);
	fflush(stdout);
}

void nezha_tune_show_size(const struct nezha_tune_progress *progress, const struct nezha_measured_size *size)
{
	const struct nezha_measured_time *choice = nezha_choose(size);
	char bytes[24], best[64], time[16], native[16] = "-", left[16];

	for (size_t i = 0; i < size->count; i++)
		if (size->time[i].rule.alg == NEZHA_ALG_NATIVE)
			print_time(size->time[i].ns, native, sizeof native);
	nezha_bytes_print(size->bytes, bytes, sizeof bytes);
	nezha_tune_describe(&choice->rule, best, sizeof best);
	print_time(choice->ns, time, sizeof time);
	print_left(progress, left, sizeof left);
	printf("%s%5d %6s%c %-36.36s%9s %9s %6s\n", progress->terminal ? CLEAR : "", progress->ranks, bytes,
	       size->jobs > 1 ? '+' : ' ', best, time, native, left);
	fflush(stdout);
}

void nezha_tune_show(const struct nezha_tune_progress *progress, const char *format, ...)
{
	va_list args;

	if (progress->terminal)
		fputs(CLEAR, stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}
