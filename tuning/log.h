/* SPDX-License-Identifier: BSD-3-Clause
 * Log lines: "nezha[host:rank] level: text\n" on stderr or in NEZHA_LOG_FILE, one write(2) a line so
 * that lines of several ranks never mix.  Start-up is silent unless something is wrong: error =
 * the job or a communicator cannot go on as asked, warn = something the user should know (once), info = one
 * line an event, debug = the rest.  Usable from any thread at any time; before nezha_log_open it
 * writes warnings and errors to stderr without a rank. */
#ifndef NEZHA_TUNING_LOG_H
#define NEZHA_TUNING_LOG_H

enum nezha_log_level { NEZHA_LOG_ERROR, NEZHA_LOG_WARN, NEZHA_LOG_INFO, NEZHA_LOG_DEBUG };

/* Sets level, file (NULL: stderr; "%r" in the name stands for the rank, "%h" for the host; appended to) and rank (-1: none).
 * Control characters
 * within a line become blanks or '?'.  If the file cannot be opened, says so and keeps stderr.  Called again,
 * replaces the former; calls must not overlap each other. */
void nezha_log_open(enum nezha_log_level level, const char *file, int rank);

/* "warn"; static storage. */
const char *nezha_log_level_name(enum nezha_log_level level);

/* The level in force: test it before costly formatting. */
enum nezha_log_level nezha_log_level(void);

/* printf-like; %m is errno's text; a missing '\n' is added; cut at 1 KiB. errno is preserved. */
void nezha_log(enum nezha_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define nezha_error(...) nezha_log(NEZHA_LOG_ERROR, __VA_ARGS__)
#define nezha_warn(...)  nezha_log(NEZHA_LOG_WARN, __VA_ARGS__)
#define nezha_info(...)  nezha_log(NEZHA_LOG_INFO, __VA_ARGS__)
#define nezha_debug(...) \
	do { \
		if (nezha_log_level() >= NEZHA_LOG_DEBUG) \
			nezha_log(NEZHA_LOG_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
