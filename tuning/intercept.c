/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/intercept.h"

#include <stdio.h>
#include <string.h>

#define STANDARD_ABI "libmpi_abi.so"      /* MPI 5's, other than either's own: pmpi/library.c leaves it alone */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* libmpi.so is the name of Open MPI's library and, with version 12, of the ABI that MPICH shares with its
 * descendants. */
static const char *mpi_of(const char *library)
{
	static const struct {
		const char *begin, *mpi;
	} names[] = {
		{ "libmpich.so", "MPICH" },        { "libmpichfort.so", "MPICH" },
		{ "libmpichcxx.so", "MPICH" },     { "libmpi.so.12", "MPICH" },
		{ "libmpifort.so", "MPICH" },      { "libmpicxx.so", "MPICH" },
		{ "libmpi.so.20", "Open MPI" },    { "libmpi.so.40", "Open MPI" },
		{ "libmpi_mpifh.so", "Open MPI" }, { "libmpi_usempi", "Open MPI" },
		{ "libmpi_cxx.so", "Open MPI" },   { "libmpi.so", "MPI" },
		{ STANDARD_ABI, "MPI" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (begins(library, names[i].begin))
			return names[i].mpi;
	return NULL;
}

static void find_mpi(const struct nezha_elf *elf, struct nezha_intercept *out)
{
	for (size_t i = 0; i < elf->needed_count && !out->mpi; i++) {
		out->mpi = mpi_of(elf->needed[i]);
		out->library = out->mpi ? elf->needed[i] : NULL;
	}
}

void nezha_intercept_judge(const struct nezha_elf *elf, bool privileged, struct nezha_intercept *out)
{
	static const char *const refusals[] = {
		[NEZHA_ELF_NONE] = "not an ELF program",
		[NEZHA_ELF_FOREIGN] = "built for another kind of machine than this Nezha",
		[NEZHA_ELF_OBJECT] = "an object file or a core, not a program",
		[NEZHA_ELF_STATIC] = "statically linked, nothing can be preloaded",
		[NEZHA_ELF_LIBRARY] = "a shared library, not a program",
	};

	*out = (struct nezha_intercept){ .can = false };
	find_mpi(elf, out);
	if (elf->kind != NEZHA_ELF_DYNAMIC)
		snprintf(out->why, sizeof out->why, "%s", refusals[elf->kind]);
	else if (privileged)
		snprintf(out->why, sizeof out->why,
		         "it runs with more rights than its caller (set-user-ID, set-group-ID or "
		         "capabilities), so the loader ignores LD_PRELOAD");
	else if (elf->defines_mpi)
		snprintf(out->why, sizeof out->why, "an MPI library is linked into it statically");
	else if (out->mpi && begins(out->library, STANDARD_ABI))
		snprintf(out->why, sizeof out->why,
		         "linked with %s, the ABI of MPI 5, which Nezha leaves alone (compiled with mpicc it can be)", out->library);
	else if (out->mpi)
		snprintf(out->why, sizeof out->why, "linked with %s", out->library);
	else
		snprintf(out->why, sizeof out->why,
		         "it does not link an MPI library itself; one that comes with another "
		         "library or at run time (as with mpi4py) is found as well");
	out->can = elf->kind == NEZHA_ELF_DYNAMIC && !privileged && !elf->defines_mpi &&
	           !(out->library && begins(out->library, STANDARD_ABI));
}

bool nezha_script_interpreter(const void *data, size_t size, char *interpreter, size_t len)
{
	const char *text = data, *end;
	size_t n;

	if (size < 3 || text[0] != '#' || text[1] != '!')
		return false;
	end = text + size;
	for (text += 2; text < end && (*text == ' ' || *text == '\t'); text++)
		;
	for (n = 0; text + n < end && !memchr(" \t\n", text[n], 3); n++)
		if (!text[n])
			return false;
	if (n == 0 || n >= len || text + n == end)
		return false;
	memcpy(interpreter, text, n);
	interpreter[n] = '\0';
	return true;
}
