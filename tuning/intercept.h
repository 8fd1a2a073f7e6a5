/* SPDX-License-Identifier: BSD-3-Clause
 * Whether the preload can step between a program and its MPI library. */
#ifndef NEZHA_TUNING_INTERCEPT_H
#define NEZHA_TUNING_INTERCEPT_H

#include <stdbool.h>
#include <stddef.h>

#include "tuning/elf.h"

struct nezha_intercept {
	bool can;
	const char *
		mpi; /* "MPICH", "Open MPI", "MPI" (which one cannot be told) or NULL: none linked directly */
	const char *library;       /* the name of that MPI library, points where elf->needed does; or NULL */
	char why[512];             /* a sentence, without a full stop */
};

/* Judges a program out of what its file says; `privileged`: it runs with more rights than its caller
 * (set-user-ID, set-group-ID, file capabilities).  Pure. */
void nezha_intercept_judge(const struct nezha_elf *elf, bool privileged, struct nezha_intercept *out);

/* The interpreter of a script ("#!/usr/bin/python3 -u" gives "/usr/bin/python3") out of the file's first
 * bytes; false: no script, or none that fits `len`. */
bool nezha_script_interpreter(const void *data, size_t size, char *interpreter, size_t len);

#endif
