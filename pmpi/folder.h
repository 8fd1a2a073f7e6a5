/* SPDX-License-Identifier: BSD-3-Clause
 * The folder that a loaded object came from. */
#ifndef NEZHA_PMPI_FOLDER_H
#define NEZHA_PMPI_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute folder of the object that contains `code`: the kernel's name for the mapping, since the
 * loader's may be relative to a folder that the program has left.  0, or -1 if it cannot be told or does
 * not fit. */
int nezha_folder_find(const void *code, char *out, size_t len);

#endif
