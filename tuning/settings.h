/* SPDX-License-Identifier: BSD-3-Clause
 * The settings that a user can give (environment NEZHA_*).  The one list below gives the struct,
 * the parser, nezha-info's help and the manual page. */
#ifndef NEZHA_TUNING_SETTINGS_H
#define NEZHA_TUNING_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "tuning/log.h"
#include "tuning/verbs_options.h"

enum nezha_policy_kind { NEZHA_POLICY_ECF, NEZHA_POLICY_STATIC, NEZHA_POLICY_SLICE, NEZHA_POLICY_SHARE };

/* Bits of what a job checks of itself while it runs. */
#define NEZHA_CHECK_PLAN 1u
#define NEZHA_CHECK_CRC 2u
#define NEZHA_CHECK_NATIVE 4u

/* X(field, NAME, kind, default text, what values are allowed, what it does)
 * kinds: bool (0|1|on|off|yes|no|true|false), text, report (as bool, or a text), policy, level, checks (names between commas), seconds (decimal,
 * 0.1 .. 3600), verbs (verbs_options.h) */
#define NEZHA_SETTINGS(X) \
	X(enable,       ENABLE,       bool,    "1",    "0 or 1", \
	  "0 hands every call to the MPI library") \
	X(rails,        RAILS,        text,    "auto", \
	  "auto, or a list of tcp:DEVICE, tcp:SUBNET/BITS, verbs:DEVICE[:PORT] and verbs:SUBNET/BITS separated by commas; " \
	  "with either up to 4 of ina:ADDRESS[:PORT][,fixed], one of which may be sharp[:DEVICE[:PORT]] instead", \
	  "which networks are rails") \
	X(verbs,        VERBS,        verbs,   "",     NEZHA_VERBS_ALLOWED, \
	  "how rails over InfiniBand and RoCE connect, and how much memory they may register") \
	X(table,        TABLE,        text,    "",     "the path of a tuning table", \
	  "the tuning table that rank 0 reads; built-in rules without it") \
	X(tune,         TUNE,         text,    "", \
	  "alg=ring|native|mix and, with commas, block=BYTES, rails=LIST, share=PART, call=WAY, min=BYTES, max=BYTES", \
	  "one rule that goes before the table's") \
	X(learned,      LEARNED,      text,    "",     "the name of a file in a folder that may be written to", \
	  "the tuning table that gets what the job has learnt, at its end") \
	X(policy,       POLICY,       policy,  "ecf",  "ecf, static, slice or share", \
	  "how a link picks a rail for the next block") \
	X(open_timeout, OPEN_TIMEOUT, seconds, "10",   "seconds, 0.1 to 3600", \
	  "how long MPI_Init waits for ranks without Nezha, and a new communicator for its connections") \
	X(reproducible, REPRODUCIBLE, bool,    "0",    "0 or 1", \
	  "1: decide by the table alone, never by what was measured: runs agree bit for bit") \
	X(check,        CHECK,        checks,  "",     "plan, crc, native, or several of them separated by commas", \
	  "what is checked on the way; plan: all ranks compare model and plan before a call, which fails if they differ; " \
	  "crc: blocks bear a CRC32C, and are sent again if they come wrong; native: each result is compared with the MPI " \
	  "library's, for debugging: slow") \
	X(report,       REPORT,       report,   "0",    "0, 1, or the name of a file that gets JSON", \
	  "a report of what was done, at the end") \
	X(trace,        TRACE,        text,    "", \
	  "the name of a file; %r in it stands for the rank, %h for the host; without %r only rank 0 writes one", \
	  "a timeline of calls, blocks and lost rails, as a Chrome trace for ui.perfetto.dev, at the end") \
	X(log,          LOG,          level,   "warn", "error, warn, info or debug", \
	  "how much is logged") \
	X(log_file,     LOG_FILE,     text,    "",     "the name of a file; %r in it stands for the rank, %h for the host", \
	  "where the log goes instead of standard error")

struct nezha_settings {
#define NEZHA_SETTING_C_bool bool
#define NEZHA_SETTING_C_text char *
#define NEZHA_SETTING_C_report char *
#define NEZHA_SETTING_C_policy enum nezha_policy_kind
#define NEZHA_SETTING_C_level enum nezha_log_level
#define NEZHA_SETTING_C_checks unsigned
#define NEZHA_SETTING_C_seconds double
#define NEZHA_SETTING_C_verbs struct nezha_verbs_options
#define X(field, NAME, kind, def, allowed, help) NEZHA_SETTING_C_##kind field;
	NEZHA_SETTINGS(X)
#undef X
};

/* Reads NEZHA_* out of `environ_block` (like environ: "NAME=VALUE" strings, NULL at the end).  An empty value
 * is as good as none; a malformed value keeps the default; an unknown NEZHA_* name is ignored; each such
 * thing is one line in *problems (malloc'd, lines end in '\n', names the value and what is allowed, an
 * unknown name with the nearest known one; "" if none; the caller frees it).  The caller logs it, once per
 * job.  *errors is how many of the problems are malformed values (unknown names are warnings only).  Returns
 * NEZHA_OK or NEZHA_ERR_NOMEM. */
int nezha_settings_read(char *const *environ_block, struct nezha_settings *out, char **problems, int *errors);

/* Frees what nezha_settings_read allocated inside. */
void nezha_settings_free(struct nezha_settings *settings);

/* All settings as "NEZHA_A=x\nNEZHA_B=y\n" (malloc'd, the caller frees; NULL: no memory) and back: rank
 * 0's are sent to all ranks, so that they agree whatever the launcher forwarded.  _unpack takes `len`
 * bytes that need no NUL at the end, treats them as untrusted and returns NEZHA_ERR_INVALID (logged) for
 * anything malformed, unknown, missing or given twice.  Neither depends on the locale. */
char *nezha_settings_pack(const struct nezha_settings *settings);
int nezha_settings_unpack(const char *text, size_t len, struct nezha_settings *out);

/* Documentation of one setting; NULL past the last. */
struct nezha_setting_doc {
	const char *name, *def, *allowed, *help;
};
const struct nezha_setting_doc *nezha_setting_doc(size_t index);

#endif
