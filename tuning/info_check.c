/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tuning/info.h"
#include "tuning/intercept.h"
#include "tuning/json_text.h"
#include "tuning/status.h"

#define SCRIPTS_MAX 4          /* an interpreter may be a script itself */

struct program {
	const void *bytes;         /* mapped; NULL: an empty file */
	size_t len;
	bool privileged;
};

/* As a shell does: a name without '/' is looked up in PATH.  Outputs "" if it is not found there. */
static void find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	struct stat file;

	path[0] = '\0';
	if (strchr(name, '/')) {
		if (strlen(name) < PATH_MAX)
			strcpy(path, name);
		return;
	}
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");
		int n = snprintf(path, PATH_MAX, "%.*s/%s", len ? (int)len : 1, len ? dirs : ".", name);

		if (n < PATH_MAX && access(path, X_OK) == 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode))
			return;
		path[0] = '\0';
		dirs += len + (dirs[len] == ':');
	}
}

/* Maps the file; an error number otherwise. */
static int open_program(const char *path, struct program *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int error = 0;

	*out = (struct program){ .bytes = NULL };
	if (fd < 0)
		return errno;
	if (fstat(fd, &st)) {
		error = errno;
	} else if (!S_ISREG(st.st_mode)) {
		error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	} else {
		out->privileged = (st.st_mode & (S_ISUID | S_ISGID)) ||
		                  fgetxattr(fd, "security.capability", NULL, 0) > 0;
		out->len = (size_t)st.st_size;
		if (out->len)
			out->bytes = mmap(NULL, out->len, PROT_READ, MAP_PRIVATE, fd, 0);
		if (out->bytes == MAP_FAILED)
			error = errno;
	}
	close(fd);
	return error;
}

static void show(const char *program, const char *path, const struct nezha_elf *elf,
                 const struct nezha_intercept *verdict, json_t *json)
{
	if (json) {
		json_object_set_new(json, "check",
		                    json_pack("{s:o, s:o, s:b, s:s?, s:o, s:o}", "program", nezha_json_text(program), "file",
		                              nezha_json_text(path), "can_be_intercepted", (int)verdict->can, "mpi",
		                              verdict->mpi, "library", nezha_json_text(verdict->library), "why",
		                              nezha_json_text(verdict->why)));
		return;
	}
	printf("%s: %s\n", program, verdict->can ? "can be intercepted" : "cannot be intercepted");
	if (strcmp(program, path))
		printf("  %-14s %s\n", "runs", path);
	nezha_info_wrap("  why            ", verdict->why);
	if (verdict->mpi)
		printf("  %-14s %s\n", "MPI", verdict->mpi);
	if (verdict->can && elf->symbols_known)
		printf("  %-14s %s\n", "MPI_Allreduce",
		       elf->calls_allreduce ? "called by the program itself" :
		                              "not called by the program itself");
}

/* Judges the program, or the interpreter if it is a script.  *path is the file that was judged in the end. */
static bool check_file(const char *program, char path[PATH_MAX], json_t *json)
{
	for (int i = 0; i < SCRIPTS_MAX; i++) {
		struct program file;
		struct nezha_elf elf;
		struct nezha_intercept verdict;
		char interpreter[PATH_MAX];
		int error = open_program(path, &file);
		bool script = !error && file.bytes &&
		              nezha_script_interpreter(file.bytes, file.len, interpreter, sizeof interpreter);

		if (error) {
			nezha_info_problem(json, "%s cannot be read: %s", nezha_info_quote(path),
			                   error == EINVAL ? "not a regular file" : strerror(error));
			return false;
		}
		if (!script) {
			int status = nezha_elf_parse(file.bytes ? file.bytes : "", file.len, &elf);

			if (status == NEZHA_OK) {
				nezha_intercept_judge(&elf, file.privileged, &verdict);
				show(program, path, &elf, &verdict, json);
			} else {
				nezha_info_problem(json, "%s is a damaged ELF file", nezha_info_quote(path));
				verdict.can = false;
			}
		}
		if (file.bytes)
			munmap((void *)file.bytes, file.len);
		if (!script)
			return verdict.can;
		strcpy(path, interpreter);
	}
	nezha_info_problem(json, "%s is a script of a script of a script", nezha_info_quote(program));
	return false;
}

bool nezha_info_check(const char *program, json_t *json)
{
	char path[PATH_MAX];

	find_program(program, path);
	if (!*path) {
		nezha_info_problem(json, "there is no program %s%s", nezha_info_quote(program),
		                   strchr(program, '/') ? "" : " in PATH");
		return false;
	}
	return check_file(program, path, json);
}
