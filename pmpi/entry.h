/* SPDX-License-Identifier: BSD-3-Clause
 * Between the stub (libnezha_pmpi.so, one for all MPIs) and a backend (one per MPI).  The stub knows no
 * mpi.h: the arguments of a call are words, as they stand in the registers (Linux on x86-64 and aarch64
 * pass the first six that way); an int is the low half of its word. */
#ifndef NEZHA_PMPI_ENTRY_H
#define NEZHA_PMPI_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "pmpi/nezha.h"

typedef uintptr_t nezha_word;

/* The calls that are intercepted; each has a file in pmpi/. */
#define NEZHA_CALLS(X) \
	X(Allreduce) \
	X(Allreduce_c) \
	X(Init) \
	X(Init_thread) \
	X(Finalize) \
	X(Comm_set_info) \
	X(Comm_dup_with_info) \
	X(Pcontrol)

enum nezha_call {
#define X(name) NEZHA_CALL_##name,
	NEZHA_CALLS(X)
#undef X
	NEZHA_CALL_COUNT
};

/* A call's six words and the address that it returns to; the MPI library's functions do not look at what
 * they do not have. */
typedef int nezha_call_fn(nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f,
                          nezha_word caller);

/* What the stub gives. */
struct nezha_host {
	nezha_call_fn *native[NEZHA_CALL_COUNT];  /* the MPI library's own; never NULL */
	bool (*from_library)(const void *code);   /* whether it lies in the MPI library or a plugin; slow */
};

struct nezha_tuner;

/* What a backend gives: the functions to be called instead, never NULL, and its half of nezha.h. */
struct nezha_backend {
	nezha_call_fn *calls[NEZHA_CALL_COUNT];
	nezha_rail_counters_fn *rail_counters;
	const struct nezha_tuner *tuner;     /* for nezha-tune (tuner.h) */
};

/* The one symbol of a backend: called once, before the library's MPI_Init; `host` stays.  NULL: the
 * backend cannot be used, as it has logged.  The name changes with the interface, so that unlike halves
 * do not meet. */
#define NEZHA_BACKEND_SYMBOL "nezha_backend_3"
typedef const struct nezha_backend *nezha_backend_fn(const struct nezha_host *host);

#endif
