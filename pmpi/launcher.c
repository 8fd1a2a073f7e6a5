/* SPDX-License-Identifier: BSD-3-Clause
 * Open MPI's launcher does not hand LD_PRELOAD and NEZHA_* on to other nodes by itself (Hydra does): when we
 * are loaded into it, ask it to, the way a user would.  In all other processes this does nothing. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "mca_base_env_list"
#define LIST "OMPI_MCA_" NAME
#define SITE "/etc/openmpi/openmpi-mca-params.conf"

extern char **environ;

static bool is_launcher(const char *program)
{
	static const char *const names[] = { "mpirun", "mpiexec", "orterun", "prterun" };
	const char *base = strrchr(program, '/');

	base = base ? base + 1 : program;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		/* Debian calls it mpirun.openmpi, too. */
		if (!strncmp(base, names[i], len) && (!base[len] || !strcmp(base + len, ".openmpi")))
			return true;
	}
	return false;
}

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(word, *words) != 0)
		words++;
	return *words != NULL;
}

static bool is_executable(const char *path)
{
	struct stat file;

	return !stat(path, &file) && S_ISREG(file.st_mode) && !access(path, X_OK);
}

static bool is_in_path(const char *name)
{
	const char *folder = getenv("PATH");
	char path[PATH_MAX];

	while (folder && *folder) {
		int len = (int)strcspn(folder, ":");

		if (snprintf(path, sizeof(path), "%.*s/%s", len, folder, name) < (int)sizeof(path) && is_executable(path))
			return true;
		folder += len + (folder[len] == ':');
	}
	return false;
}

/* Whether the program begins here, behind which everything is its own.  A name without a folder behind an option may be that one's
 * value ("--map-by node"), and is taken for it. */
static bool is_program(const char *word, const char *before)
{
	return strchr(word, '/') ? is_executable(word) : *before != '-' && is_in_path(word);
}

/* A file that can be read once more: what comes through a pipe is the launcher's. */
static FILE *open_regular(const char *path)
{
	struct stat file;

	return !stat(path, &file) && S_ISREG(file.st_mode) ? fopen(path, "re") : NULL;
}

/* Whether one of the files (with commas between) of options has -x, or the list. */
static bool do_export(const char *files)
{
	char path[PATH_MAX], word[256];
	bool found = false;

	while (*files && !found) {
		int len = (int)strcspn(files, ",");
		FILE *file = snprintf(path, sizeof(path), "%.*s", len, files) < (int)sizeof(path) ? open_regular(path) : NULL;

		while (file && !found && fscanf(file, "%255s", word) == 1)
			if (*word == '#')
				(void)!fscanf(file, "%*[^\n]");
			else
				found = !strcmp(word, "-x") || !strcmp(word, "--x") || !strncmp(word, NAME, strlen(NAME));
		if (file)
			fclose(file);
		files += len + (files[len] == ',');
	}
	return found;
}

/* With -x among its arguments, not the program's, Open MPI refuses the list: the user then gives -x LD_PRELOAD as well. */
static bool is_exporting(int argc, char **argv)
{
	static const char *const exports[] = { "-x", "--x", NULL };
	static const char *const parameters[] = { "-mca", "--mca", "-gmca", "--gmca", "--omca", "--gomca", "--prtemca", "--gprtemca",
		                                  "--pmixmca", "--gpmixmca", NULL };
	/* with a value that may be the name of a file */
	static const char *const files[] = { "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-default-hostfile",
		                             "--default-hostfile", "-rf", "--rankfile", "-app", "--app",
		                             "-launch-agent", "--launch-agent", "-prefix", "--prefix", "-wd", "-wdir", "--wdir",
		                             "-output-filename", "--output-filename", "-report-uri", "--report-uri", NULL };
	static const char *const options[] = { "-tune", "--tune", NULL };
	bool program = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], ":")) {
			program = false;        /* and now the next program's options */
		} else if (program) {
			continue;
		} else if (is_one_of(argv[i], parameters)) {
			if (i + 1 < argc && !strcmp(argv[i + 1], NAME))
				return true;
			i += 2;
		} else if (is_one_of(argv[i], options)) {
			if (++i < argc && do_export(argv[i]))
				return true;
		} else if (is_one_of(argv[i], files)) {
			i++;
		} else if (is_one_of(argv[i], exports)) {
			return true;
		} else {
			program = *argv[i] != '-' && is_program(argv[i], argv[i - 1]);
		}
	}
	return false;
}

/* Whether the list (names or NAME=VALUE, separated by ';') has the name already. */
static bool has_name(const char *list, const char *name, size_t len)
{
	for (; *list; list += strcspn(list, ";"), list += *list == ';')
		if (!strncmp(list, name, len) && (!list[len] || list[len] == ';' || list[len] == '='))
			return true;
	return false;
}

/* The list in a file of parameters ("NAME = VALUE" in lines, the last of which counts), to be freed; NULL: there is none. */
static char *list_in(const char *path)
{
	FILE *file = open_regular(path);
	char *line = NULL, *value = NULL, *next;
	size_t room = 0, len;

	while (file && getline(&line, &room, file) >= 0) {
		next = NULL;
		if (sscanf(line, " " NAME " = %m[^\n]", &next) != 1)
			continue;
		for (len = strlen(next); len && strchr(" \t", next[len - 1]); len--)
			next[len - 1] = '\0';
		free(value);
		value = next;
	}
	free(line);
	if (file)
		fclose(file);
	return value;
}

/* The list so far: ours in the environment will hide that of a file. */
static char *list_before(void)
{
	const char *given = getenv(LIST), *home = getenv("HOME");
	char path[PATH_MAX], *list = NULL;

	if (given)
		return strdup(given);
	if (home && snprintf(path, sizeof(path), "%s/.openmpi/mca-params.conf", home) < (int)sizeof(path))
		list = list_in(path);
	if (!list)
		list = list_in(SITE);
	return list ? list : calloc(1, 1);
}

static void extend_list(void)
{
	char *list = list_before();

	for (char **entry = environ; list && *entry; entry++) {
		size_t len = strcspn(*entry, "=");
		char *longer;

		if (strncmp(*entry, "NEZHA_", 6) && (len != 10 || strncmp(*entry, "LD_PRELOAD", 10)))
			continue;
		if (has_name(list, *entry, len))
			continue;
		if (asprintf(&longer, "%s%s%.*s", list, *list ? ";" : "", (int)len, *entry) < 0)
			break;
		free(list);
		list = longer;
	}
	if (list && *list)
		setenv(LIST, list, 1);
	free(list);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	if (argc > 0 && argv && argv[0] && is_launcher(argv[0]) && !is_exporting(argc, argv))
		extend_list();
}
