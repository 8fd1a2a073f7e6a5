/* SPDX-License-Identifier: BSD-3-Clause
 * What an ELF file says about whether a preloaded library can step between it and MPI. */
#ifndef NEZHA_TUNING_ELF_H
#define NEZHA_TUNING_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_ELF_NEEDED_MAX 256
#define NEZHA_ELF_NAME_MAX 4096       /* bytes of a library's name */

enum nezha_elf_kind {
	NEZHA_ELF_NONE,          /* no ELF file */
	NEZHA_ELF_FOREIGN,       /* of another processor, word size or byte order than this program */
	NEZHA_ELF_OBJECT,        /* neither a program nor a library: an object file, a core */
	NEZHA_ELF_STATIC,        /* a program without a loader */
	NEZHA_ELF_LIBRARY,       /* a shared library */
	NEZHA_ELF_DYNAMIC,       /* a program with a loader: LD_PRELOAD works */
};

struct nezha_elf {
	enum nezha_elf_kind kind;
	size_t needed_count;
	const char *needed[NEZHA_ELF_NEEDED_MAX];   /* point into the file's bytes */
	bool symbols_known;      /* the file has a table of symbols */
	bool defines_mpi;        /* it contains MPI_Allreduce itself: an MPI library linked in */
	bool calls_allreduce;    /* it refers to MPI_Allreduce or one of its Fortran names */
};

/* Looks at the `len` bytes of a file (untrusted; any alignment).  *out is valid as long as `data` is.
 * NEZHA_ERR_INVALID: it begins like an ELF file of this machine but contradicts itself; what is no such
 * file is told by out->kind. */
int nezha_elf_parse(const void *data, size_t len, struct nezha_elf *out);

#endif
