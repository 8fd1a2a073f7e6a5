/* SPDX-License-Identifier: BSD-3-Clause
 * The user's mpirun: whose it is, and the command that starts a job with it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/settings.h"
#include "tuning/status.h"
#include "tuning/tune.h"

#define OWN "libnezha_pmpi.so"

enum nezha_tune_mpi nezha_tune_recognise(const char *version)
{
	static const struct {
		const char *text;
		enum nezha_tune_mpi mpi;
	} marks[] = {
		{ "Open MPI", NEZHA_TUNE_OPENMPI }, { "OpenRTE", NEZHA_TUNE_OPENMPI },
		{ "PRRTE", NEZHA_TUNE_OPENMPI },    { "HYDRA", NEZHA_TUNE_MPICH },
		{ "MPICH", NEZHA_TUNE_MPICH },      { "Intel(R) MPI", NEZHA_TUNE_MPICH },
	};

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (strstr(version, marks[i].text))
			return marks[i].mpi;
	return NEZHA_TUNE_UNKNOWN;
}

struct answer {
	size_t len;
	char text[4096];
};

static int take_answer(const char *line, void *context)
{
	struct answer *answer = context;
	int len = snprintf(answer->text + answer->len, sizeof answer->text - answer->len, "%s\n", line);

	answer->len += (size_t)len;
	if (answer->len >= sizeof answer->text)
		answer->len = sizeof answer->text - 1;
	return NEZHA_OK;
}

int nezha_tune_ask(char *const *words, size_t count, enum nezha_tune_mpi *out)
{
	struct answer answer = { .len = 0 };
	char **command = malloc((count + 2) * sizeof *command);
	int status;

	if (!command) {
		nezha_tune_problem("no memory");
		return NEZHA_ERR_NOMEM;
	}
	memcpy(command, words, count * sizeof *command);
	command[count] = "--version";
	command[count + 1] = NULL;
	status = nezha_tune_listen(command, take_answer, &answer);
	free(command);
	*out = nezha_tune_recognise(answer.text);
	if (*out != NEZHA_TUNE_UNKNOWN)
		return NEZHA_OK;
	if (status == NEZHA_OK)
		nezha_tune_problem("--mpirun: \"%s ... --version\" does not tell whether it is Open MPI's or MPICH's"
		                   "%s%.*s: say --launcher openmpi or --launcher mpich", words[0],
		                   *answer.text ? ", but says: " : "", (int)strcspn(answer.text, "\n"),
		                   answer.text);
	else
		nezha_tune_problem("--mpirun: \"%s\" cannot be run: allowed is a command that starts MPI jobs, such "
		                   "as \"mpirun -host a,b\"%s%.*s", words[0], *answer.text ? "; it says: " : "",
		                   (int)strcspn(answer.text, "\n"), answer.text);
	return NEZHA_ERR_INVALID;
}

const char *const nezha_tune_own[] = {
	"NEZHA_ENABLE", "NEZHA_TABLE", "NEZHA_TUNE", "NEZHA_LEARNED", "NEZHA_REPORT", "NEZHA_TRACE", NULL
};

/* Whether the ranks get this variable of the user's. */
static bool is_passed(const char *entry)
{
	size_t len = strcspn(entry, "=");

	if (strncmp(entry, "NEZHA_", 6) || !entry[len])
		return false;
	for (const char *const *own = nezha_tune_own; *own; own++)
		if (strlen(*own) == len && !memcmp(entry, *own, len))
			return false;
	return true;
}

/* What else the user preloads (a sanitizer, say) stays, and stays first. */
static char *make_preload(const char *library, char *const *environment)
{
	const char *given = "", *between = "";
	char *text = NULL;
	size_t size, len;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return NULL;
	for (; *environment; environment++)
		if (!strncmp(*environment, "LD_PRELOAD=", 11))
			given = *environment + 11;
	fputs("LD_PRELOAD=", file);
	for (; *given; given += len + (given[len] != '\0')) {
		len = strcspn(given, ": ");
		if (!len || memmem(given, len, OWN, strlen(OWN)))
			continue;
		fprintf(file, "%s%.*s", between, (int)len, given);
		between = ":";
	}
	fprintf(file, "%s%s", between, library);
	if (!fclose(file))
		return text;
	free(text);
	return NULL;
}

/* A list of words and their characters in one stream: words end with '\0'. */
struct writer {
	FILE *file;
	size_t count;
};

__attribute__((format(printf, 2, 3))) static void word(struct writer *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(w->file, format, args);
	va_end(args);
	fputc('\0', w->file);
	w->count++;
}

static void pass_on(struct writer *w, enum nezha_tune_mpi mpi, const char *entry)
{
	int name = (int)strcspn(entry, "=");

	if (mpi == NEZHA_TUNE_OPENMPI) {
		word(w, "-x");
		word(w, "%s", entry);
	} else {
		word(w, "-genv");
		word(w, "%.*s", name, entry);
		word(w, "%s", entry + name + 1);
	}
}

static void place(struct writer *w, enum nezha_tune_mpi mpi, int ppn)
{
	if (mpi == NEZHA_TUNE_OPENMPI) {
		word(w, "--map-by");
		word(w, "ppr:%d:node", ppn);
	} else {
		word(w, "-ppn");
		word(w, "%d", ppn);
	}
}

static void write_sizes(struct writer *w, const struct nezha_tune_job *job)
{
	for (size_t i = 0; i < job->sizes->count; i++) {
		struct nezha_sweep_blocks blocks;

		nezha_tune_blocks(job->builtin, job->ppn, job->sizes->value[i], &blocks);
		fprintf(w->file, "%" PRIu64, job->sizes->value[i]);
		for (size_t b = 0; b < blocks.count; b++)
			fprintf(w->file, "%c%" PRIu32, b ? ',' : ':', blocks.bytes[b]);
		word(w, "%s", "");
	}
}

/* The words of `text`, which has `count` of them in `len` bytes, behind an array that points to them. */
static char **index_words(const char *text, size_t len, size_t count)
{
	char **words = malloc((count + 1) * sizeof *words + len);
	char *at = (char *)(words + count + 1);

	if (!words)
		return NULL;
	memcpy(at, text, len);
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
		words[i] = at;
	words[count] = NULL;
	return words;
}

char **nezha_tune_command(const struct nezha_tune_job *job, char *const *environment)
{
	char *preload = make_preload(job->library, environment), *text = NULL, **words = NULL;
	size_t len;
	struct writer w = { .file = open_memstream(&text, &len) };
	bool failed = true;

	if (!preload || !w.file)
		goto done;
	for (size_t i = 0; i < job->word_count; i++)
		word(&w, "%s", job->words[i]);
	word(&w, "-n");
	word(&w, "%d", job->ranks);
	if (job->ppn > 1)
		place(&w, job->mpi, job->ppn);
	pass_on(&w, job->mpi, preload);
	for (char *const *entry = environment; *entry; entry++)
		if (is_passed(*entry))
			pass_on(&w, job->mpi, *entry);
	word(&w, "%s", job->worker);
	word(&w, "%d", job->ppn);
	word(&w, "%g", job->seconds);
	write_sizes(&w, job);
	failed = ferror(w.file);
done:
	if (w.file)
		failed |= fclose(w.file) != 0;
	if (!failed)
		words = index_words(text, len, w.count);
	if (!words)
		nezha_tune_problem("no memory");
	free(text);
	free(preload);
	return words;
}
