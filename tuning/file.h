/* SPDX-License-Identifier: BSD-3-Clause
 * Whole files.  Errors are told by errno; nothing is logged. */
#ifndef NEZHA_TUNING_FILE_H
#define NEZHA_TUNING_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the rank for every "%r" of `name` and this host's name for every "%h".  Whether it fitted. */
bool nezha_file_name(const char *name, int rank, char *path, size_t len);

/* The name of the file that `name`, a link, leads to, malloc'd; NULL: it is none, or leads nowhere, or to what is no file. */
char *nezha_file_follow(const char *name);

/* Makes the name, malloc'd, one that stays the same file's when the working folder changes; it stays as it is if that is not
 * known.  NEZHA_ERR_NOMEM. */
int nezha_file_fix(char **name);

/* At most `most` + 1 bytes (so that too long a file is seen to be) from where fd stands, and a NUL behind them; the
 * caller frees it.  NULL: errno. */
char *nezha_file_read(int fd, size_t most, size_t *len);

/* Writes all of it.  NEZHA_ERR_SYSTEM: errno. */
int nezha_file_write(int fd, const char *text, size_t len);

#define NEZHA_FILE_PATIENCE 20.0    /* seconds: who replaces a table needs some ms, on a slow disk a second */

/* Opens and locks PATH.new, by which no other process that does the same can replace the file at `path` until nezha_file_release:
 * what is read of it in between is what is replaced.  Waits so many seconds at most.  -1: errno, EBUSY if another process has it
 * still.  Where files cannot be locked, as on some network file systems, nobody waits. */
int nezha_file_reserve(const char *path, double seconds);

/* PATH.new is gone then.  errno stays. */
void nezha_file_release(const char *path, int reserved);

/* Makes `text` the content of the file at `path`: written under a name of its own, PATH.new.XXXXXXXX, then renamed, so that
 * there is never half a file.  NEZHA_ERR_SYSTEM: errno; the file is then as it was. */
int nezha_file_replace(const char *path, const char *text);

/* Whether these may be expected to succeed, as far as can be told without touching anything.
 * NEZHA_ERR_SYSTEM: errno. */
int nezha_file_is_replaceable(const char *path);

#endif
