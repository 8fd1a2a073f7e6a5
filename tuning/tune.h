/* SPDX-License-Identifier: BSD-3-Clause
 * The parts of nezha-tune.  Each says by nezha_tune_problem what is wrong before it returns an error. */
#ifndef NEZHA_TUNING_TUNE_H
#define NEZHA_TUNING_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/measured.h"

#define NEZHA_TUNE_SCALES 32      /* numbers of ranks in one run */

/* One line "nezha-tune: ..." on stderr. */
void nezha_tune_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Exit statuses. */
enum { NEZHA_TUNE_GOOD = 0, NEZHA_TUNE_BAD = 1, NEZHA_TUNE_USAGE = 2, NEZHA_TUNE_STOPPED = 128 };   /* STOPPED + the signal */

/* ---- what is wanted (tune_arguments.c) ---- */

struct nezha_tune_list {
	size_t count;
	uint64_t value[NEZHA_MEASURED_SIZES];   /* ascending, each once */
};

/* Reads "2,4,8": whole numbers from 2 to 100000, at most NEZHA_TUNE_SCALES.  NEZHA_ERR_INVALID. */
int nezha_tune_read_ranks(const char *text, struct nezha_tune_list *out);

/* Reads the number of ranks on a node: from 1 to 256, the most that Nezha takes (rails/node.h).  NEZHA_ERR_INVALID. */
int nezha_tune_read_ppn(const char *text, int *out);

/* Reads "64K,1M", "64K-64M" (in steps of two) or a list of both: multiples of 4 from 4 to 1G, at most
 * NEZHA_MEASURED_SIZES.  NEZHA_ERR_INVALID. */
int nezha_tune_read_sizes(const char *text, struct nezha_tune_list *out);

/* The blocks that are tried at a size: the built-in table's, half and twice as much, as far as they are blocks and
 * differ in effect.  The built-in one, for `ppn` ranks a node, is the first. */
void nezha_tune_blocks(const struct nezha_table *builtin, int ppn, uint64_t bytes, struct nezha_sweep_blocks *out);

/* Splits a command as a shell would, but for quoting ('...', "...", \c) nothing is special.  *out is one block of
 * memory that
 * ends with NULL, the caller frees it.  NEZHA_ERR_INVALID: empty, or a quotation mark lacks its other. */
int nezha_tune_split(const char *command, char ***out, size_t *count);

/* ---- the user's mpirun (tune_launcher.c) ---- */

enum nezha_tune_mpi { NEZHA_TUNE_UNKNOWN, NEZHA_TUNE_OPENMPI, NEZHA_TUNE_MPICH };

/* Whose launcher prints this for --version. */
enum nezha_tune_mpi nezha_tune_recognise(const char *version);

/* Asks `words --version`.  NEZHA_ERR_INVALID: it cannot be run, or it is neither's. */
int nezha_tune_ask(char *const *words, size_t count, enum nezha_tune_mpi *out);

/* ---- the command line (tune_options.c) ---- */

struct nezha_tune_options {
	struct nezha_tune_list ranks, sizes;
	char **words;                  /* of --mpirun; owned */
	size_t word_count;
	const char *output, *extend, *library, *worker;
	char *own_output, *own_library, *own_worker;  /* these, where they are not as they were given; owned */
	enum nezha_tune_mpi mpi;
	double seconds;
	int ppn;                       /* ranks on each node */
	bool again;
};

/* Reads it.  -1: go on; else what is to be said has been said, and this is the exit status.  options->words is the
 * caller's
 * to free in any case. */
int nezha_tune_options_read(int argc, char **argv, struct nezha_tune_options *options);

/* Fills in what the command line leaves open: whose mpirun it is, and Nezha's files, looked up on this host; and where -o leads.
 * NEZHA_ERR_INVALID. */
int nezha_tune_find_parts(struct nezha_tune_options *options);

/* ---- a job ---- */

struct nezha_tune_job {
	char *const *words;            /* the user's mpirun */
	size_t word_count;
	enum nezha_tune_mpi mpi;
	const char *library, *worker;
	double seconds;                /* what the measurement should take */
	int ranks, ppn;                /* in all, on each node */
	const struct nezha_tune_list *sizes;
	const struct nezha_table *builtin;
};

/* The settings that jobs do not get, since they would decide in the worker's place or cost time; NULL at the end. */
extern const char *const nezha_tune_own[];

/* The whole command of a job, in one block of memory that ends with NULL: words -n RANKS, how many of them on a node
 * if there are several, LD_PRELOAD and the user's NEZHA_* by -x or -genv, the worker and its arguments.  NULL: no memory. */
char **nezha_tune_command(const struct nezha_tune_job *job, char *const *environment);

/* ---- running (tune_job.c) ---- */

/* Called with each line, without its end; an error ends what says it. */
typedef int nezha_tune_line_fn(const char *line, void *context);

/* Runs a short command, its standard input empty, and passes on each line that it says.  NEZHA_ERR_SYSTEM: it could
 * not be run
 * or failed; NEZHA_ERR_TIMEOUT: it took more than 30 s.  Says nothing itself. */
int nezha_tune_listen(char *const *command, nezha_tune_line_fn *line, void *context);

/* Runs a command, its standard input empty, until it ends, `line` (called with the worker's lines, without their
 * mark) returns
 * an error or *stop is set; then it is ended.  Whatever it says
 * besides the worker's lines is shown if it failed.  `what` names it.  The worker's "end" is the job's: what the
 * launcher does after it does
 * not count.  NEZHA_ERR_SYSTEM: it could not be run or failed; NEZHA_ERR_TIMEOUT: nothing was heard for long;
 * or what `line` returned; NEZHA_INPROGRESS: stopped. */
int nezha_tune_run(char *const *command, const char *what, nezha_tune_line_fn *line, void *context,
                   const volatile int *stop);

/* ---- what is kept (tune_store.c) ---- */

/* The table at `path`; a new one, with the rules for all that is not measured, if there is none.  NEZHA_ERR_INVALID. */
int nezha_tune_load(const char *path, struct nezha_table **out, bool *is_new);

/* Until nezha_file_release (file.h) no job with NEZHA_LEARNED writes the table at `path`.  Waits for one that does; -1: in vain. */
int nezha_tune_reserve(const char *path);

/* Writes the table under another name, and renames it: there is never half a table at `path`.  NEZHA_ERR_SYSTEM. */
int nezha_tune_save(const struct nezha_table *table, const char *path);

/* The table at the output (tune_output.c). */
struct nezha_tune_output {
	const char *path;
	struct nezha_table *table;     /* owned */
	bool apart;                    /* --extend names another file */
	bool written;                  /* what is at the path has something of this run */
};

/* Reads it, or the one that --extend names, NULL if none is.  NEZHA_ERR_INVALID. */
int nezha_tune_output_open(const char *path, const char *extend, struct nezha_tune_output *out);
void nezha_tune_output_close(struct nezha_tune_output *output);

/* Whether what it has was measured `here`.  NEZHA_ERR_INVALID: not so. */
int nezha_tune_output_check(const struct nezha_tune_output *output, const struct nezha_fingerprint *here);

/* Puts a scale that is measured into it, and writes it.  NEZHA_ERR_INVALID, NEZHA_ERR_NOMEM, NEZHA_ERR_SYSTEM. */
int nezha_tune_output_put(struct nezha_tune_output *output, const struct nezha_measured *measured);

/* Writes it as it is.  NEZHA_ERR_SYSTEM. */
int nezha_tune_output_copy(const struct nezha_tune_output *output);

/* The journal beside the output, "PATH.journal". */
struct nezha_tune_journal {
	char *path;
	int fd;                        /* open for appending */
	size_t count;
	struct nezha_measured *scale;  /* NEZHA_TUNE_SCALES, one for each scale that it has, or gets */
};

/* Opens or begins it and reads what it has; a last line without an end is dropped.  As long as it is open no other nezha-tune can
 * have it.  NEZHA_ERR_SYSTEM. */
int nezha_tune_journal_open(const char *output, struct nezha_tune_journal *out);

/* The scale of so many ranks, `ppn` of them on a node, made if there is none.  NULL: no room. */
struct nezha_measured *nezha_tune_journal_scale(struct nezha_tune_journal *journal, int ranks, int ppn);

/* Whether it has a size of that scale that is finished. */
bool nezha_tune_journal_has(const struct nezha_tune_journal *journal, int ranks, int ppn);

/* Appends lines, durable when it returns.  NEZHA_ERR_SYSTEM. */
int nezha_tune_journal_add(struct nezha_tune_journal *journal, const char *lines);

/* The scale is in the table: the journal needs it no more.  NEZHA_ERR_SYSTEM. */
int nezha_tune_journal_conclude(struct nezha_tune_journal *journal, struct nezha_measured *scale);

/* Whether it has a size that is finished, of a scale that is not in the table. */
bool nezha_tune_journal_holds(const struct nezha_tune_journal *journal);

/* Closes it; and removes it, if it holds nothing. */
void nezha_tune_journal_close(struct nezha_tune_journal *journal);

/* ---- what the user sees (tune_progress.c) ---- */

struct nezha_tune_progress {
	bool terminal;
	double seconds;                /* that the measurement of one scale should take, */
	double job_seconds;            /* and that of the job that runs, */
	double after_seconds;          /* and further jobs of this scale, if some will follow */
	size_t scales_left;            /* behind this one */
	int ranks;
	const struct nezha_tune_list *sizes;
	size_t done;                   /* of the sizes */
};

/* Seconds that are left, about. */
double nezha_tune_left(const struct nezha_tune_progress *progress);

void nezha_tune_show_head(void);
void nezha_tune_show_at(const struct nezha_tune_progress *progress, uint64_t bytes);
void nezha_tune_show_size(const struct nezha_tune_progress *progress, const struct nezha_measured_size *size);

/* A line for itself. */
void nezha_tune_show(const struct nezha_tune_progress *progress, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "ring 64K, 10.1.0.0/16 alone" or "61.3 % native, ring 64K" into buf. */
void nezha_tune_describe(const struct nezha_rule *rule, char *buf, size_t len);

/* ---- one number of ranks (tune_scale.c) ---- */

/* One run of the tool. */
struct nezha_tune_state {
	const struct nezha_tune_options *options;
	const volatile int *stop;      /* not 0: the user wants an end */
	struct nezha_table *builtin;
	struct nezha_tune_output output;
	struct nezha_tune_journal journal;
	struct nezha_tune_progress progress;
	/* of the scale that is being measured, or was last */
	struct nezha_measured *measured;
	struct nezha_fingerprint before;   /* where the journal has what it had of it; its own is then the job's */
	bool told_where;               /* that was looked at */
	char lines[16384];             /* of the size that is being measured, for the journal */
	size_t len;
};

/* Measures what the journal lacks of so many ranks, into run->measured.  NEZHA_INPROGRESS: stopped; or an error. */
int nezha_tune_scale(struct nezha_tune_state *run, int ranks);

#endif
