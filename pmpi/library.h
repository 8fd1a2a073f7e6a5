/* SPDX-License-Identifier: BSD-3-Clause
 * The MPI library in this process, found without being linked to one. */
#ifndef NEZHA_PMPI_LIBRARY_H
#define NEZHA_PMPI_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

struct nezha_library {
	void *handle;            /* dlsym finds the library's own symbols with it, not a tool's */
	const char *flavour;     /* "mpich" (and what shares its ABI) or "openmpi"; NULL: a library whose ABI is not known */
	char version[64];        /* the beginning of what it calls itself */
	uintptr_t low, high;     /* where it lies: [low, high) */
};

/* Finds the object that defines PMPI_Get_library_version among those that are loaded, also where a plugin has
 * brought it into a local scope (as mpi4py does), and makes its symbols global.  False: there is none. */
bool nezha_library_find(struct nezha_library *out);

/* Whether `code` lies in the library itself or in one of its plugins (mca_*.so). */
bool nezha_library_owns(const struct nezha_library *library, const void *code);

#endif
