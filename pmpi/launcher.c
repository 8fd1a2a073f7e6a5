/* SPDX-License-Identifier: BSD-3-Clause
 * Open MPI's launcher does not hand LD_PRELOAD and NEZHA_* on to other nodes by itself (Hydra does): when we
 * are loaded into it, ask it to, the way a user would.  In all other processes this does nothing. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "OMPI_MCA_mca_base_env_list"

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

/* With -x among the arguments, Open MPI refuses the list: the user then gives -x LD_PRELOAD as well. */
static bool is_exporting(int argc, char **argv)
{
	static const char *const options[] = { "-x", "--x", "mca_base_env_list" };

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++)
			if (!strcmp(argv[i], options[k]))
				return true;
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

static void extend_list(void)
{
	const char *given = getenv(LIST);
	char *list = given ? strdup(given) : calloc(1, 1);

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
